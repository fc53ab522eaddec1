#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace ceems::report {

// A family are the runs of the same user, project, partition, name and size (docs/report.md).

inline constexpr std::size_t kMaxFamily = 20;                             ///< runs
inline constexpr std::int64_t kFamilyMs = std::int64_t{90} * 86'400'000;  ///< how old they may be

struct Statistics {
  std::size_t n = 0;
  double median = 0;
  double mad = 0;  ///< median of the distances from the median
  double p95 = 0;  ///< nearest rank
  double max = 0;
  double min = 0;
};
/// Nothing if there are no values.
std::optional<Statistics> statistics_of(std::span<const double> values);

}  // namespace ceems::report
