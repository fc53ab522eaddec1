#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/unit.h"
#include "store/sql/session.h"

namespace ceems::store {

/// Adds the users and projects of the cluster's usage to the lists: see
/// ClusterUpdate::members_of_usage.
Result<> add_members_of_usage(Session& session,
                              const std::string& cluster_id,
                              std::vector<model::User>& users,
                              std::vector<model::Project>& projects);

}  // namespace ceems::store
