#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The tables ceems_ended_units and ceems_export_targets (store/ended_units.h). The columns of the
/// first have names that `units` does not have, because both are joined.
std::string create_ended_tables(Dialect dialect);

/// The greatest place that was ever given away, which is NULL at first, as an expression: rows are
/// deleted only when all targets are past them.
std::string last_place_text();

/// Appends a unit that has ended, unless its report says that this end was known before. Only where
/// there are targets. To be run before the report is queued. The values are the cluster, the id,
/// the start and the end, twice.
std::string queue_ended_text();

/// Appends the units of a gap, whose id is the value, that have ended.
std::string queue_filled_text();

}  // namespace ceems::store
