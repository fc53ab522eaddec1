#pragma once

#include <vector>

#include "store/reader.h"
#include "store/sql/sql.h"

namespace ceems::store {

// Conditions on the owners of units, for queries of `units` and ceems_unit_facts. Of the query only
// owners, projects, clusters and uuids count. Pure functions.

/// The conditions of the owners one by one, none of which selects a row of another. An index has
/// the units of one user or of one project by their end, but not of several.
std::vector<Sql> single_owners(Dialect dialect, const UnitQuery& query);

/// All owners in one condition.
Sql every_owner(Dialect dialect, const UnitQuery& query);

}  // namespace ceems::store
