#pragma once

#include "store/reader.h"
#include "store/sql/sql.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {

/// The statement of Reader::current_usage(): rows of units or days in the plan's rest, and with
/// runs, also those of sums, and how many of their spans there are. Reads everybody's rows by their
/// last update only, whichever clusters and projects are asked for.
Sql usage_statement(Dialect dialect,
                    const CurrentUsageQuery& query,
                    const SpanPlan& plan,
                    int reference = kNewestReference);

}  // namespace ceems::store
