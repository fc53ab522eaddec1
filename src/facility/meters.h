#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time/time_zone.h"

namespace ceems::facility {

/// What a meter of the building counts: kWh, and m³ of water.
enum class MeterKind : std::uint8_t { kTotal, kIt, kCooling, kWater, kHeatReused, kRenewable };
inline constexpr std::size_t kMeterKinds = 6;
/// "total", "it", "cooling", "water", "heat_reused", "renewable".
std::string_view name_of(MeterKind kind);

/// What was metered in each hour that was read as a whole, by the beginning of the hour (epoch
/// milliseconds, whole hours in UTC). An hour that is not there was not read.
using Hours = std::map<std::int64_t, double>;

/// Reads a file with a line `time,value` and then one line for each interval of `every_ms`, in the
/// order of time: the amount in the interval that begins at the time. Intervals are parts of an
/// hour, an hour or a day (kDayMs); a day begins at midnight of the zone and is divided evenly
/// between its hours (of a zone with half an hour, between the whole ones that begin next). Times
/// are local ones of the zone or have an offset. Missing intervals are gaps, and hours with one are
/// left out. Times out of order, intervals that overlap, and values that are negative or no finite
/// numbers are refused. `file` is for messages. kInvalidArgument with file and line.
Result<Hours> parse_meter_file(std::string_view text,
                               std::string_view file,
                               std::int64_t every_ms,
                               const TimeZone& zone);

/// The sum of two meters, for the hours in which both were read.
Hours sum_of(const Hours& a, const Hours& b);

}  // namespace ceems::facility
