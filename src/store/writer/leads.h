#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/sql/session.h"

namespace ceems::store {

/// Stores who leads the cluster's projects (user names by project): deletes those who no longer
/// lead one and adds the new ones. Call it in a transaction; passes on errors of the session. Names
/// that are empty, are longer than 512 bytes or contain a NUL are left out.
Result<> write_leads(Session& session,
                     const std::string& cluster_id,
                     const std::map<std::string, std::vector<std::string>>& leads);

}  // namespace ceems::store
