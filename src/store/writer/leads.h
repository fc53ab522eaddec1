#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/sql/session.h"

namespace ceems::store {

/// Makes these the leads of the cluster's projects, names by project: takes out who leads no more
/// and puts in who is new. Within a transaction; errors are the session's. Names that are empty,
/// longer than 512 bytes or hold a NUL are left out.
Result<> write_leads(Session& session,
                     const std::string& cluster_id,
                     const std::map<std::string, std::vector<std::string>>& leads);

}  // namespace ceems::store
