#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/database.h"
#include "store/nodes.h"

namespace ceems::store::postgres {

/// store::open_database() for the server of `options.url`.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock);

/// store::import_bills() for a server.
Result<BillReport> import_bills(const DatabaseOptions& options,
                                const std::vector<Bill>& bills,
                                bool replace);

}  // namespace ceems::store::postgres
