#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems {

/// YYYY-MM-DDTHH:MM:SS and an offset such as +0200, as SLURM prints it with %Y-%m-%dT%H:%M:%S%z, in
/// epoch milliseconds; nothing on any other text ("Unknown", "None", dates that do not exist).
std::optional<std::int64_t> parse_localz(std::string_view text);

/// YYYY-MM-DD, YYYY-MM-DDTHH:MM or YYYY-MM-DDTHH:MM:SS completed to the last form; nothing on
/// anything else.
std::optional<std::string> complete_local(std::string_view text);

/// "HH:MM:SS", from a day on "D-HH:MM:SS", as SLURM prints it; negative is 0.
std::string elapsed_text(std::int64_t seconds);

}  // namespace ceems
