#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace ceems::api::login {

/// Slows down the guessing of passwords. After five wrong passwords for one user from one address,
/// or fifty from one address for any users, further attempts are refused until fifteen minutes
/// after the first one. Counts are per address, so a user at another address cannot be locked out.
/// Memory is bounded. Times are from a monotonic clock. Safe for concurrent use.
class Attempts {
 public:
  /// How long the user must wait before the next attempt; 0: not at all.
  [[nodiscard]] std::chrono::seconds wait(std::string_view user,
                                          std::string_view address,
                                          std::chrono::steady_clock::time_point now);
  void failed(std::string_view user,
              std::string_view address,
              std::chrono::steady_clock::time_point now);
  /// Resets the count of the user. The count of the address stays.
  void succeeded(std::string_view user, std::string_view address);

  static constexpr int kPerUser = 5;
  static constexpr int kPerAddress = 50;
  static constexpr std::chrono::minutes kWindow{15};
  static constexpr std::size_t kMaxCounts = 20'000;

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
