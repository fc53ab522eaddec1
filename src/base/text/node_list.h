#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems {

/// Returns the node names of a SLURM host list such as "n[08-11,15]-x,login1": names separated by
/// commas. Brackets hold numbers and ranges, padded to the width of the range's first number.
/// Several brackets expand left to right (hostlist expressions, scontrol(1)). kParse for anything
/// else and for more than 65536 names.
Result<std::vector<std::string>> expand_node_list(std::string_view text);

}  // namespace ceems
