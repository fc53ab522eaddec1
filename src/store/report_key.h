#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace ceems::store {

/// One run of a unit. Each has at most one report.
struct ReportKey {
  std::string cluster_id = {}, uuid = {};
  std::int64_t started_at_ts = 0;
  auto operator<=>(const ReportKey&) const = default;
};

}  // namespace ceems::store
