#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/flavor.h"
#include "store/sql/session.h"

namespace ceems::store {

/// Makes these the flavors of the cluster, by changing the rows that differ. Flavors that a
/// database cannot store, and repeated ones, are left out. Call it in a transaction.
Result<> write_flavors(Session& session,
                       const std::string& cluster_id,
                       const std::vector<model::Flavor>& flavors);

}  // namespace ceems::store
