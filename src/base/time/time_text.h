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

}  // namespace ceems
