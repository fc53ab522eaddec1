#pragma once

#include <string>

#include "base/result.h"
#include "store/postgres/connection.h"

namespace ceems::store::postgres {

/// Brings a database to the current schema: creates the tables in an empty one and upgrades older
/// ones step by step, each step in one transaction. Programs that start at the same time do this
/// one after the other.
///
/// kInvalidArgument if the database is not in UTF-8, is newer than this program, or has a table
/// `units` that is not ours. It is not changed then.
Result<> upgrade(Connection& connection);

/// The statements that upgrade to this version from the one before, for 1 to kOwnVersion.
std::string upgrade_sql(int version);

}  // namespace ceems::store::postgres
