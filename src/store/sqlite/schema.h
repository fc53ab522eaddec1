#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "store/schema/column.h"
#include "store/sqlite/connection.h"

namespace ceems::store::sqlite {

/// The versions of the reference's tables that this program reads and writes: that of CEEMS 0.10.2,
/// and that of CEEMS 0.15, which has the columns of custom metrics.
inline constexpr int kSchemaVersion = kOldestReference;
inline constexpr int kCustomStatsVersion = kNewestReference;

/// What an open database holds.
struct SchemaState {
  bool empty = false;    ///< no tables
  int version = 0;       ///< of the reference's schema
  int own = 0;           ///< of our additions
  bool complete = true;  ///< it has all columns of its version
};

/// What an upgrade is to do.
struct SchemaTarget {
  /// The least version of the reference's tables: kSchemaVersion or kCustomStatsVersion. A newer
  /// one stays.
  int version = kSchemaVersion;
  /// Completes an interrupted upgrade to kCustomStatsVersion, which is refused otherwise. Every
  /// other upgrade that was interrupted is refused.
  bool finish = false;
};

/// Reads the state without changing anything. Passes on errors of upgrade().
Result<SchemaState> schema_state(Connection& connection,
                                 const std::string& path,
                                 const SchemaTarget& target = {});
/// How many bytes of free space an upgrade needs beside a file of `bytes`; 0: it has nothing to do.
std::uint64_t space_to_upgrade(const SchemaState& state,
                               std::int64_t bytes,
                               const SchemaTarget& target = {});

/// Brings an open database to the current schema: creates an empty one, upgrades one of the
/// reference (versions 1 to 10) step by step, and adds our own tables and columns. Before a
/// database with tables is changed, it is copied to "<file>.v<version>-<UTC time>.bak". Until the
/// copy is whole and on the disk, its name ends in ".part". Returns the
/// version of the reference's tables: kSchemaVersion or kCustomStatsVersion.
///
/// Then derives our columns and tables from what the reference has written to the file since this
/// program last used it: times as epoch milliseconds, watermarks and admins (docs/api/database.md).
///
/// kInvalidArgument if the database is marked dirty, is newer than kCustomStatsVersion, was not
/// created by CEEMS or holds an unfinished copy (schema/copying.h). It is not changed then. Logs
/// the progress with large files. `stop` ends it early with an error; a later call continues.
Result<int> upgrade(Connection& connection,
                    const std::string& path,
                    const TimeZone& zone,
                    std::int64_t now_ms,
                    const SchemaTarget& target = {},
                    const std::stop_token& stop = {});

/// Prepares an open database for being read while it is upgraded, and returns how many bytes the
/// upgrade has to work through; 0 if it has next to nothing to do. Passes on errors of upgrade()
/// and check_space().
Result<std::int64_t> bytes_to_upgrade(Connection& connection,
                                      const std::string& path,
                                      const SchemaTarget& target = {});

/// kUnavailable with both numbers if an upgrade needs more than the available bytes.
Result<> check_space(const std::string& path, std::uint64_t needed, std::uint64_t available);

/// Creates the tables of a version of the reference, for tests of upgrades.
Result<> create_reference_schema(Connection& connection, int version);

}  // namespace ceems::store::sqlite
