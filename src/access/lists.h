#pragma once

#include <string>
#include <vector>

#include "access/policy.h"
#include "store/facts.h"

namespace ceems::access {

// What lists and sums over units may read and show (docs/api/access.md).

/// The rows of everybody, or of these users: for admins and support, nobody's for others. `names`
/// as below.
void list_everybodys(const Identity& identity,
                     const std::vector<std::string>& users,
                     store::FactFilter& filter);

/// The caller's own rows, those of service accounts of the filter's projects and those of led
/// projects, or a part of them. Sets `owners` and `names` of the filter.
void list_own(const Identity& identity, Part part, store::FactFilter& filter);

/// The rows of everybody in the projects that the caller is a member of or leads, or in a part of
/// them: for sums, as those of own_projects(). Shows no names.
void list_projects(const Identity& identity, Part part, store::FactFilter& filter);

}  // namespace ceems::access
