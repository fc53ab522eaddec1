#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time/time_zone.h"

// Texts that the commands of batch systems print.
namespace ceems::ingest {

/// Reads a time as ctime(3) prints it: "Wed Apr 14 23:34:19 2021", with or without the weekday, the
/// seconds and the year. Without a year it is the last such time that is at most a day after
/// `now_ms`. A letter behind it (bjobs appends L, E or X to estimates) is ignored. Epoch
/// milliseconds; nothing for any other text.
std::optional<std::int64_t> parse_ctime(std::string_view text,
                                        const TimeZone& zone,
                                        std::int64_t now_ms);

}  // namespace ceems::ingest
