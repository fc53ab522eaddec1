#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace ceems {

struct Statistics {
  std::size_t n = 0;
  double median = 0;
  double mad = 0;  ///< median of the distances from the median
  double p95 = 0;  ///< nearest rank
  double max = 0;
  double min = 0;
};
/// Values that are not finite are left out. Nothing if there are no others.
std::optional<Statistics> statistics_of(std::span<const double> values);

}  // namespace ceems
