#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ceems {
namespace {

double median_of(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace

std::optional<Statistics> statistics_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::erase_if(sorted, [](double value) { return !std::isfinite(value); });
  if (sorted.empty()) {
    return std::nullopt;
  }
  std::ranges::sort(sorted);
  Statistics result{.n = sorted.size(), .median = median_of(sorted)};
  constexpr double kRank = 0.95;
  const auto rank = static_cast<std::size_t>(std::ceil(kRank * static_cast<double>(sorted.size())));
  result.p95 = sorted[rank - 1];
  result.max = sorted.back();
  result.min = sorted.front();
  for (double& value : sorted) {
    value = std::abs(value - result.median);
  }
  std::ranges::sort(sorted);
  result.mad = median_of(sorted);
  return result;
}

}  // namespace ceems
