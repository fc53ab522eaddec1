#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/database.h"

namespace ceems::store::sqlite {

/// Database::open() for a file in `options.directory`.
Result<std::unique_ptr<Database>> open_database(const DatabaseOptions& options,
                                                const TimeZone& zone,
                                                const Clock& clock);

/// As store::open_reader().
Result<std::shared_ptr<Reader>> open_reader(const DatabaseOptions& options);

}  // namespace ceems::store::sqlite
