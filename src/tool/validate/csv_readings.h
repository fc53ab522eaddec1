#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "tool/validate/run.h"

namespace ceems::tool::validate {

/// Watts that a node may draw.
inline constexpr double kMaxMeterWatts = 1e5;

/// The watts, if they are above 0 and at most kMaxMeterWatts. kParse otherwise: a meter
/// without a reading reports NaN, 0 or the largest number of its register.
Result<double> checked_watts(double watts);

/// Readings of a wattmeter with a memory of its own: lines "time,watts" or "time;watts", the time
/// in UNIX seconds or as in RFC 3339. A first line that cannot be read is a heading; blank lines
/// and lines that begin with '#' are skipped. `offset` seconds are added to the times. The result
/// is sorted by time. kParse, with the number of the line, and for a text without readings.
Result<std::vector<WattReading>> parse_csv_readings(std::string_view text, double offset);

}  // namespace ceems::tool::validate
