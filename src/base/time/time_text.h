#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems {

/// Parses YYYY-MM-DDTHH:MM:SS with an offset such as +0200, as SLURM prints it with
/// %Y-%m-%dT%H:%M:%S%z, into epoch milliseconds. Nothing on any other text ("Unknown", "None",
/// dates that do not exist).
std::optional<std::int64_t> parse_localz(std::string_view text);

/// Completes YYYY-MM-DD, YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS to the last form. Nothing on any
/// other text.
std::optional<std::string> complete_local(std::string_view text);

/// "HH:MM:SS", or "D-HH:MM:SS" from one day on, as SLURM prints it. Negative times are printed as
/// 0.
std::string elapsed_text(std::int64_t seconds);

/// The two largest parts of a duration as people read it, without a second part of zero: "0.42 s",
/// "7 s", "3 min 05 s", "2 h 09 min", "2 h", "4 d 3 h". Below 10 s it has two digits. `day` is the
/// sign of a day, `comma` the decimal separator. Negative times are printed as 0. The page writes
/// the same (tests/formats.json).
std::string duration_text(double seconds, std::string_view day = "d", char comma = '.');

}  // namespace ceems
