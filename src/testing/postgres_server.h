#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::testing {

/// A PostgreSQL server in a temporary directory, reachable by a Unix socket only, without
/// durability. It runs as the user postgres or nobody if the test runs as root, ends with the test
/// program, and takes about a second to start.
class PostgresServer {
 public:
  /// Fails with kNotFound and the name of what is missing if PostgreSQL is not installed.
  static Result<PostgresServer> start();
  PostgresServer(PostgresServer&& other) noexcept;
  PostgresServer& operator=(PostgresServer&&) = delete;
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  /// The server that all tests of this program share, started at the first call. Null if it cannot
  /// start; `why_not` then holds the reason.
  static PostgresServer* shared(std::string& why_not);

  /// The URL of a database for the superuser "ceems". The database "postgres" exists from the
  /// start.
  [[nodiscard]] std::string url(std::string_view database) const;

  /// Stops the server as an administrator does: sessions are ended, data is kept.
  void shut_down();
  /// Kills the server as a failing machine would.
  void crash();
  /// Starts the server again after shut_down() or crash().
  Result<> restart();

 private:
  PostgresServer() = default;
  Result<> wait_until_ready();
  void end(int signal);

  std::string programs_;   ///< directory of initdb and postgres
  std::string directory_;  ///< holds data, socket and log; removed at the end
  pid_t pid_ = 0;
};

}  // namespace ceems::testing
