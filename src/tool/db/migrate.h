#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tool/db/info.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// What an upgrade would do.
struct MigrationPlan {
  std::string database = {};
  bool postgres = false;
  Versions from = {};
  std::int64_t to = 0;               ///< version of CEEMS's tables
  std::int64_t to_own = 0;           ///< version of the additions
  bool needed = false;               ///< the schema changes
  bool rereads = false;              ///< rows that the reference has written are read
  std::int64_t bytes = 0;            ///< of the database
  std::int64_t space_needed = 0;     ///< beside the file, for a copy, the log and indexes
  std::int64_t space_available = 0;  ///< in its directory; SQLite only
};

/// Finds out without changing anything. With `custom_stats`, a SQLite file is to get the columns of
/// custom metrics. kInvalidArgument if the database cannot be upgraded.
Result<MigrationPlan> plan_migration(Tables& tables, bool custom_stats);
std::string plan_text(const MigrationPlan& plan);
std::string plan_json(const MigrationPlan& plan);

}  // namespace ceems::tool::db
