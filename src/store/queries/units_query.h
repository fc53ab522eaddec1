#pragma once

#include "store/reader.h"
#include "store/sql/sql.h"

namespace ceems::store {

/// The statement of Reader::units(): the fields, then the columns that order the rows. With
/// UnitOrder::kByEnd, a query with a limit reads at most that many rows of each owner (a user, or a
/// project that the scope leads) by an index, up to 200 owners; so does a query of everybody.
Sql units_statement(Dialect dialect,
                    const UnitQuery& query,
                    FieldList fields,
                    int reference = kNewestReference);

}  // namespace ceems::store
