#pragma once

#include <string>

#include "base/json_members.h"

namespace ceems::store {

/// The id that SLURM shows of a task of an array, or of a part of a heterogeneous job, from what
/// was allocated to it; of an array that has not been split up yet, that of the array. Empty for
/// other units.
std::string array_id(const JsonMembers& allocation);

}  // namespace ceems::store
