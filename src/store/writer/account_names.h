#pragma once

#include <string>

#include "base/result.h"
#include "model/account_names.h"
#include "store/sql/session.h"

namespace ceems::store {

/// Reads the names that were given to ids, and the names in usage that no id has. Passes on errors
/// of the session.
Result<model::AccountNames> read_account_names(Session& session, const std::string& cluster_id);

/// Adds names to those that are stored. Call it in a transaction. kUnavailable, with nothing
/// changed for good, if one of the ids has a name already or one of the names an id: another
/// program has given names in between, so they must be read again. Names and ids that are empty,
/// are longer than 1,024 bytes or contain a NUL are left out.
Result<> add_account_names(Session& session,
                           const std::string& cluster_id,
                           const model::AccountNames& names);

}  // namespace ceems::store
