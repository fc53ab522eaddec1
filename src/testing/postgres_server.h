#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::testing {

/// A PostgreSQL server of its own in a temporary directory, on a Unix socket only, without
/// durability. It runs as the user postgres or nobody where the test is root, dies with the test
/// program, and takes about a second to start.
class PostgresServer {
 public:
  /// kNotFound, with what is missing, on machines without the server's programs.
  static Result<PostgresServer> start();
  PostgresServer(PostgresServer&& other) noexcept;
  PostgresServer& operator=(PostgresServer&&) = delete;
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  /// The one server of this test program, started at the first call; null with the reason in
  /// `why_not` where there cannot be one.
  static PostgresServer* shared(std::string& why_not);

  /// Of a data base, for the superuser "ceems"; "postgres" is there from the start.
  [[nodiscard]] std::string url(std::string_view database) const;

  /// Stops as an administrator does: sessions are ended, data is kept.
  void shut_down();
  /// As when the machine fails.
  void crash();
  /// Starts again after either.
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
