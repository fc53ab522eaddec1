#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ceems::host {

/// The CPU numbers in a list such as "0-3,8" (cpuset(7), List format). Nothing if the list is
/// malformed or has more than 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace ceems::host
