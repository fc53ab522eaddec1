#pragma once

#include <string>
#include <vector>

#include "access/policy.h"
#include "store/facts.h"

namespace ceems::access {

// What lists and sums over units may read and show (docs/api/access.md).

/// The rows of all users, or of these: for admins and support. Others get no rows. `names` as
/// below.
void list_everybodys(const Identity& identity,
                     const std::vector<std::string>& users,
                     store::FactFilter& filter);

/// The rows of the caller, of service accounts in the filter's projects and of projects the caller
/// leads, or a part of them. Sets `owners` and `names` of the filter.
void list_own(const Identity& identity, Part part, store::FactFilter& filter);

/// The caller's own rows and all rows in the projects that the caller is a member of or leads, or a
/// part of them: for sums, like own_projects(). Shows no names.
void list_projects(const Identity& identity, Part part, store::FactFilter& filter);

/// All rows, with their names, for statistics that show neither a unit nor a person, and rest on
/// several people (api/check/past_runs.h).
void list_statistics(store::FactFilter& filter);

}  // namespace ceems::access
