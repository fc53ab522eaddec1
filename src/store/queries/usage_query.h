#pragma once

#include "store/reader.h"
#include "store/sql/sql.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {

/// The statement of Reader::current_usage(): rows of units or days in the plan's rest, and with
/// runs, also rows of sums, and the number of their spans. Finds the rows of all users by their
/// last update only, whatever the clusters and projects of the query.
Sql usage_statement(Dialect dialect,
                    const CurrentUsageQuery& query,
                    const SpanPlan& plan,
                    int reference = kNewestReference);

}  // namespace ceems::store
