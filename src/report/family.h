#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::report {

/// The name with each run of digits as '#', so that "run-17" and "run-18" are the same job.
std::string family_name(std::string_view name);

/// What runs of one family have in common. Array tasks belong to one family.
struct FamilyKey {
  std::string partition = {}, name = {};  ///< `name` is family_name()
  std::int64_t nodes = 0, cpus = 0, gpus = 0;
  bool operator==(const FamilyKey&) const = default;
};

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
