#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace ceems::cacct {

/// Parses a time as --starttime and --endtime take it, in the local time zone (that of $TZ, or else
/// of the machine), into epoch seconds. Besides the forms of the reference,
/// YYYY-MM-DD[THH:MM[:SS]], these are the forms of sacct (https://slurm.schedmd.com/sacct.html):
///
///   HH:MM[:SS]                        today
///   MMDD[YY][-HH:MM[:SS]], MM/DD[/YY][-HH:MM[:SS]], MM.DD[.YY][-HH:MM[:SS]]
///   now, now-2hours, now+30minutes    a number without a unit means seconds
///   today, midnight, yesterday, tomorrow, noon, teatime (16:00)
///
/// kInvalidArgument "invalid time format '...'" for anything else, including dates that do not
/// exist. Not thread-safe while another thread changes $TZ.
Result<std::int64_t> parse_time(std::string_view text, std::int64_t now);

/// The first second of the local day that contains `now`.
std::int64_t day_start(std::int64_t now);

}  // namespace ceems::cacct
