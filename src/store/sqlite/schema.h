#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

/// Version of the reference's tables that this program reads and writes (CEEMS 0.10.2).
inline constexpr int kSchemaVersion = 9;

/// Brings an open database to the current schema: creates an empty one, upgrades one of the
/// reference (versions 1 to 9) step by step, and adds our own tables and columns. A database that
/// holds tables and has to change is copied to "<file>.v<version>-<UTC time>.bak" first.
///
/// Then takes over what the reference wrote since we had the file last: times as epoch
/// milliseconds, watermarks and admins (docs/api/database.md).
///
/// kInvalidArgument for a database that is dirty, newer than kSchemaVersion or not one of CEEMS;
/// it is left as it is.
Result<> upgrade(Connection& connection,
                 const std::string& path,
                 const TimeZone& zone,
                 std::int64_t now_ms);

/// Creates tables up to `version` of the reference only; for tests of upgrades.
Result<> create_reference_schema(Connection& connection, int version);

}  // namespace ceems::store::sqlite
