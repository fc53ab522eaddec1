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

/// Reads a size in bytes: a number with K, M, G, T, P or E, which are powers of 1024 and may be
/// followed by B, b, "bytes" ("9 Mbytes", "3.2G", "8388608kb"). Without a letter it is in
/// `default_unit` bytes; "b" or "w" (PBS: a word of 8 bytes) alone mean 1 and 8. Nothing for any
/// other text and for negative or absurd sizes.
std::optional<double> parse_size(std::string_view text, double default_unit);

}  // namespace ceems::ingest
