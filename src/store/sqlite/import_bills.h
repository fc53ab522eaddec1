#pragma once

#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/nodes.h"

namespace ceems::store::sqlite {

/// store::import_bills() for a file.
Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace);

}  // namespace ceems::store::sqlite
