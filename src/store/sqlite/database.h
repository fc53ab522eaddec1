#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/database.h"
#include "store/nodes.h"

namespace ceems::store::sqlite {

/// store::open_database() for a file in `options.directory`.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock);

/// store::open_reader() for a file in `options.directory`.
Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options);

/// store::import_bills() for a file.
Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace);

}  // namespace ceems::store::sqlite
