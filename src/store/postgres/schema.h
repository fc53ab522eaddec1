#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "store/postgres/connection.h"

namespace ceems::store::postgres {

/// Brings a database to the current schema: creates the tables in an empty one and upgrades older
/// ones step by step, each step in one transaction. Programs that start at the same time do this
/// one after the other.
///
/// kInvalidArgument if the database is not in UTF-8, is newer than this program, or has a table
/// `units` that is not ours, or holds an unfinished copy (schema/copying.h). It is not changed
/// then. After a stop, the step that runs is the last,
/// unless it is cancelled, and a later call continues. If a stop is possible, waits without a limit
/// for another program that upgrades the database.
Result<> upgrade(Connection& connection, const std::stop_token& stop = {});

/// How many bytes the tables have that an upgrade works through; 0 if there are none, or they are
/// current. Passes on errors of upgrade().
Result<std::int64_t> bytes_to_upgrade(Connection& connection);

/// The statements that upgrade to this version from the one before, for 1 to kOwnVersion.
std::string upgrade_sql(int version);

}  // namespace ceems::store::postgres
