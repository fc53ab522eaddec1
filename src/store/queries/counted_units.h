#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/reader.h"
#include "store/sql/sql.h"

namespace ceems::store {

// Statements that count units. What they read is what makes them fast, so each says which index it
// is written for.

/// Counts by cluster, project and user: of all units, or of those that ended in the range or still
/// run. The columns are those names, and how many units there are, have ended, and run. Reads the
/// index ceems_units_counts, and nothing else, once from end to end.
Sql count_all_units(Dialect dialect,
                    const std::vector<std::string>& clusters,
                    const std::optional<TimeRange>& ended);
/// The same, for a range with few units: finds them by the index ceems_units_ended and reads their
/// rows.
Sql count_few_units(Dialect dialect,
                    const std::vector<std::string>& clusters,
                    const TimeRange& ended);
/// One row: how many units ended in the range or run, counted up to a twentieth of all units, and
/// that twentieth. Reads ceems_units_ended.
Sql estimate_units(Dialect dialect, const TimeRange& ended);

/// One row: the number that Reader::count_member_units() returns. Looks up the units by cluster and
/// id, and of the projects only theirs. `since` as in Sql::and_seen_among().
Sql count_members_of(Dialect dialect,
                     const Scope& members,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids,
                     bool since);

}  // namespace ceems::store
