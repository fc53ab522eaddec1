#pragma once

#include <cstddef>

namespace ceems::promql {

/// The work that checking one request may take, in steps of about 0.2 µs. It bounds a request
/// whatever its text is, and unlike a clock it counts the same on every machine. Not thread-safe.
class WorkBudget {
 public:
  /// About 20 ms.
  static constexpr std::size_t kDefaultSteps = 100'000;

  explicit WorkBudget(std::size_t steps = kDefaultSteps) : limit_(steps) {}

  /// Uses steps. Returns false if there are not enough left, and then for ever: the caller must not
  /// do the work.
  bool take(std::size_t steps) {
    exhausted_ = exhausted_ || steps > limit_ - used_;
    if (!exhausted_) {
      used_ += steps;
    }
    return !exhausted_;
  }
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t limit_;
  std::size_t used_ = 0;
  bool exhausted_ = false;
};

/// The same with a budget that may be null, which has no limit.
inline bool take_steps(WorkBudget* budget, std::size_t steps) {
  return budget == nullptr || budget->take(steps);
}

}  // namespace ceems::promql
