#pragma once

#include <algorithm>
#include <cmath>

namespace ceems::exporter::energy {

/// A counter of joules that adds small amounts for years without losing them, by compensated
/// summation (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen",
/// 1974). It never decreases.
class JouleCounter {
 public:
  /// Adds `joules`; negative and non-finite amounts are ignored.
  void add(double joules) {
    if (!(joules > 0) || !std::isfinite(joules)) {
      return;
    }
    const double sum = sum_ + joules;
    // The larger operand keeps its digits in `sum`. What the smaller one lost goes to the carry.
    carry_ += sum_ >= joules ? (sum_ - sum) + joules : (joules - sum) + sum_;
    sum_ = sum;
    // Rounding may lower the total by one unit in the last place, which a counter must not show.
    value_ = std::max(value_, sum_ + carry_);
  }
  [[nodiscard]] double value() const { return value_; }

 private:
  double sum_ = 0;
  double carry_ = 0;
  double value_ = 0;
};

}  // namespace ceems::exporter::energy
