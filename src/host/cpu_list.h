#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ceems::host {

/// "0-3,8" (cpuset(7), List format) as numbers; nothing on a malformed list or one with more than
/// 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace ceems::host
