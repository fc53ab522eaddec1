#pragma once

#include <string>

#include "base/result.h"
#include "store/postgres/connection.h"

namespace ceems::store::postgres {

/// Brings the database behind the connection to the current tables: creates them in an empty one,
/// upgrades older ones step by step, each step in one transaction. Programs that start at the same
/// time do this one after the other.
///
/// kInvalidArgument for a database that is not in UTF-8, is newer than this program, or holds a
/// table `units` that is not ours; it is left as it is.
Result<> upgrade(Connection& connection);

/// The statements that lead from the version before to this one, from 1 to kOwnVersion.
std::string upgrade_sql(int version);

}  // namespace ceems::store::postgres
