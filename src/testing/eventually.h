#pragma once

#include <chrono>
#include <thread>

namespace ceems::testing {

/// How long a test waits for what must happen. It is so long that only a fault exceeds it, not a
/// busy machine, and a test that expects something to be quick asserts no less than this.
inline constexpr std::chrono::seconds kPatience{60};

/// Waits until the condition holds. False if it does not within kPatience.
template <typename Condition>
[[nodiscard]] bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace ceems::testing
