#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace ceems::api::login {

/// Slows guessing down: after five wrong passwords for one user from one address, or fifty for any
/// users from one address, more are refused until fifteen minutes after the first of them. Others
/// are never kept out by what one address does: a user's own address has a count of its own. Memory
/// is bounded. Times are of a monotonic clock. Safe for concurrent use.
class Attempts {
 public:
  /// 0: may try; else how long to wait.
  [[nodiscard]] std::chrono::seconds wait(std::string_view user,
                                          std::string_view address,
                                          std::chrono::steady_clock::time_point now);
  void failed(std::string_view user,
              std::string_view address,
              std::chrono::steady_clock::time_point now);
  /// The user's own count begins anew; that of the address stays.
  void succeeded(std::string_view user, std::string_view address);

  static constexpr int kPerUser = 5;
  static constexpr int kPerAddress = 50;
  static constexpr std::chrono::minutes kWindow{15};
  static constexpr std::size_t kMostCounts = 20'000;

 private:
  struct Count {
    std::chrono::steady_clock::time_point begun = {};
    int failures = 0;
  };
  [[nodiscard]] std::chrono::seconds wait_for(const std::string& key,
                                              int limit,
                                              std::chrono::steady_clock::time_point now)
      CEEMS_REQUIRES(mutex_);
  void add(const std::string& key, std::chrono::steady_clock::time_point now)
      CEEMS_REQUIRES(mutex_);
  void make_room(std::chrono::steady_clock::time_point now) CEEMS_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_map<std::string, Count> counts_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api::login
