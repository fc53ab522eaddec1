#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

#include "store/database.h"

namespace ceems::store {

/// Copies a database at regular intervals, on a thread of its own; the first time after one
/// interval. Each copy and each failure is logged.
class Backups {
 public:
  /// `database` must outlive the object. `directory` is that of Database::backup().
  Backups(Database& database, std::string directory, std::chrono::milliseconds interval);
  /// Stops the thread. A copy under way is abandoned.
  ~Backups() = default;
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

 private:
  void run(const std::stop_token& stop);

  Database& database_;
  const std::string directory_;
  const std::chrono::milliseconds interval_;
  std::jthread thread_;  // last: stops before anything else goes away
};

}  // namespace ceems::store
