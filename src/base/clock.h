#pragma once

#include <chrono>
#include <cstdint>

namespace ceems {

/// Time as a dependency, so that tests can control it. Implementations are safe for concurrent use.
class Clock {
 public:
  using SystemTime = std::chrono::system_clock::time_point;
  using SteadyTime = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  /// Wall clock, which may jump. For timestamps that people see.
  [[nodiscard]] virtual SystemTime now() const = 0;
  /// now() in milliseconds since the epoch.
  [[nodiscard]] std::int64_t now_ms() const;
  /// Monotonic clock; for intervals and deadlines.
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;
};

/// The clocks of the machine. The object lives as long as the program.
const Clock& real_clock();

}  // namespace ceems
