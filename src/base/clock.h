#pragma once

#include <chrono>

namespace ceems {

/// Time as a dependency, so that tests move it. Implementations are safe for concurrent use.
class Clock {
 public:
  using SystemTime = std::chrono::system_clock::time_point;
  using SteadyTime = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  /// Wall clock; may jump. For time stamps people see.
  [[nodiscard]] virtual SystemTime now() const = 0;
  /// Monotonic clock; for intervals and deadlines.
  [[nodiscard]] virtual SteadyTime steady_now() const = 0;
};

/// The machine's clocks. Lives as long as the program.
const Clock& real_clock();

}  // namespace ceems
