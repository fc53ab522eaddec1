#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/database.h"

namespace ceems::store::sqlite {

/// store::open_database() for a file in `options.directory`.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock);

/// store::open_reader() for a file in `options.directory`.
Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options);

}  // namespace ceems::store::sqlite
