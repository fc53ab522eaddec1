#pragma once

#include "store/reader.h"
#include "store/sql/sql.h"

namespace ceems::store {

/// The statement of Reader::units(): the fields, then what the rows are ordered by. With
/// UnitOrder::kByEnd, a query of one user, or of everybody, reads only as many rows as its limit.
Sql units_statement(Dialect dialect, const UnitQuery& query, FieldList fields);

}  // namespace ceems::store
