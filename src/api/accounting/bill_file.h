#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/nodes.h"

namespace ceems::api {

/// Reads bills of a utility from CSV: a line with the names of the columns, then one line for each
/// bill. `period_start`, `period_end` and `kwh` are needed; `cost`, `currency` and `kgco2_market`
/// may follow or be empty. A period ends before `period_end`. Times are dates, which begin at
/// midnight of the zone, local times, or times with an offset (docs/budgets-and-bills.md). `file`
/// is for messages, `cluster_id` for the bills. kInvalidArgument with file and line.
Result<std::vector<store::Bill>> parse_bills(std::string_view text,
                                             std::string_view file,
                                             const std::string& cluster_id,
                                             const TimeZone& zone);

}  // namespace ceems::api
