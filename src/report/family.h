#pragma once

#include <cstddef>
#include <cstdint>

namespace ceems::report {

// A family are the runs of the same user, project, partition, name and size (docs/report.md).

inline constexpr std::size_t kMaxFamily = 20;                             ///< runs
inline constexpr std::int64_t kFamilyMs = std::int64_t{90} * 86'400'000;  ///< how old they may be

}  // namespace ceems::report
