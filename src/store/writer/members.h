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

/// Remembers which members of the cluster's projects joined or left in this window, before
/// `projects`, which are all of them, replace the stored ones. A project that was not known, or had
/// no members, tells nothing. A user who is back within a week has not left: lists are incomplete
/// at times.
Result<> note_members(Session& session,
                      const std::string& cluster_id,
                      const model::Window& window,
                      const std::vector<model::Project>& projects);

}  // namespace ceems::store
