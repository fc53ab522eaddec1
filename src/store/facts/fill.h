#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "store/sql/session.h"

namespace ceems::store {

/// How many units of an old database have no facts yet.
Result<std::int64_t> units_without_facts(Session& session);

/// Writes the facts of at most `units` of them, the newest first, and returns how many it looked
/// at; 0: there are none left. A unit whose facts the database refuses is logged and left out. Call
/// it in a transaction.
Result<std::int64_t> fill_some_facts(Session& session, std::int64_t units);

}  // namespace ceems::store
