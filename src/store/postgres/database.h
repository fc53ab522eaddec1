#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/database.h"

namespace ceems::store::postgres {

/// store::open_database() for the server of `options.url`.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock);

}  // namespace ceems::store::postgres
