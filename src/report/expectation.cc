#include "report/expectation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "report/family.h"

namespace ceems::report {
namespace {

constexpr double kTail = (1 - kHeldShare) / 2;
constexpr std::size_t kLeastResiduals = 9;  // the 10th percentile is not below the least of them
constexpr std::size_t kLeastBefore = 3;
constexpr double kUsualSpread = 0.18;
constexpr std::size_t kUsualRuns = 2;

double middle_of(std::span<const double> values) {
  std::array<double, kMaxFamily> sorted{};
  const std::size_t n = std::min(values.size(), sorted.size());
  std::ranges::copy(values.first(n), sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n));
  return (sorted.at(n / 2) + sorted.at((n - 1) / 2)) / 2;
}

/// The order statistic at this share of n + 1, between two values where it is not a whole rank.
double quantile_of(const std::vector<double>& sorted, double share) {
  const auto n = static_cast<double>(sorted.size());
  const double rank = std::clamp(share * (n + 1), 1.0, n);
  const auto below = static_cast<std::size_t>(rank) - 1;
  const double part = rank - std::floor(rank);
  return below + 1 < sorted.size() ? sorted[below] + part * (sorted[below + 1] - sorted[below])
                                   : sorted.back();
}

/// The 90th percentile of Student's t distribution.
double student(std::size_t freedom) {
  constexpr std::array<double, 15> kQuantiles{3.078, 1.886, 1.638, 1.533, 1.476,
                                              1.440, 1.415, 1.397, 1.383, 1.372,
                                              1.363, 1.356, 1.350, 1.345, 1.341};
  return kQuantiles.at(std::clamp<std::size_t>(freedom, 1, kQuantiles.size()) - 1);
}

/// The variance of the logarithm of a value divided by the median of n others, in terms of that of
/// one value: a median of n has π/2n of it.
double widened(std::size_t n) {
  return std::sqrt(1 + std::numbers::pi / 2 / static_cast<double>(n));
}

/// The logarithms of the last values divided by the median of those before each, as far as `n`
/// values before it would make them.
std::vector<double> residuals_of(std::span<const double> values) {
  std::vector<double> all;
  const double usual = widened(std::min(values.size(), kMaxFamily));
  for (std::size_t i = 0; i < kMaxFamily && i + kLeastBefore < values.size(); ++i) {
    const auto before = values.subspan(i + 1, std::min(values.size() - i - 1, kMaxFamily));
    all.push_back(std::log(values[i] / middle_of(before)) * usual / widened(before.size()));
  }
  return all;
}

Range by_residuals(double mid, std::vector<double> residuals) {
  std::ranges::sort(residuals);
  return {.mid = mid,
          .low = mid * std::exp(quantile_of(residuals, kTail)),
          .high = mid * std::exp(quantile_of(residuals, 1 - kTail))};
}

Range by_spread(double mid, std::span<const double> values) {
  constexpr double kNormal = 1.4826;  // standard deviation of a normal distribution by its MAD
  std::vector<double> logs;
  for (const double value : values) {
    logs.push_back(std::log(value));
  }
  const auto n = static_cast<double>(values.size());
  const double seen = kNormal * statistics_of(logs).value_or(Statistics{}).mad;
  const double squares =
      static_cast<double>(kUsualRuns) * kUsualSpread * kUsualSpread + (n - 1) * seen * seen;
  const std::size_t freedom = kUsualRuns + values.size() - 1;
  const double spread = std::sqrt(squares / static_cast<double>(freedom) * (1 + 1 / n));
  const double factor = std::exp(student(freedom) * spread);
  return {.mid = mid, .low = mid / factor, .high = mid * factor};
}

/// Values such as times in the queue are 0 often, so they have no logarithms.
Range by_order(double mid, std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {.mid = mid, .low = quantile_of(sorted, kTail), .high = quantile_of(sorted, 1 - kTail)};
}

}  // namespace

std::optional<Range> expect(std::span<const double> values) {
  std::vector<double> known;
  for (const double value : values) {
    if (std::isfinite(value) && value >= 0 && known.size() < kMaxExpectation) {
      known.push_back(value);
    }
  }
  if (known.empty()) {
    return std::nullopt;
  }
  const std::span last = std::span<const double>(known).first(std::min(known.size(), kMaxFamily));
  const double mid = middle_of(last);
  if (std::ranges::min(known) <= 0) {
    return by_order(mid, last);
  }
  auto residuals = residuals_of(known);
  Range range = residuals.size() >= kLeastResiduals ? by_residuals(mid, std::move(residuals))
                                                    : by_spread(mid, last);
  range.low = std::min(range.low, mid);
  range.high = std::max(range.high, mid);
  return range;
}

Held hold_back(std::span<const double> values, std::size_t least, std::size_t most) {
  Held held;
  for (std::size_t i = 0; i < most && i + std::max<std::size_t>(least, 1) < values.size(); ++i) {
    if (const auto range = expect(values.subspan(i + 1))) {
      ++held.of;
      held.held += values[i] >= range->low && values[i] <= range->high ? 1 : 0;
    }
  }
  return held;
}

}  // namespace ceems::report
