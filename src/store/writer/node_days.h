#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/nodes.h"
#include "store/sql/session.h"

namespace ceems::store {

/// The end of the last NodeUpdate of the cluster (epoch ms); nothing before the first.
Result<std::optional<std::int64_t>> read_nodes_until(Session& session,
                                                     const std::string& cluster_id);

/// Adds the energies to the day, and keeps what the nodes are. kInvalidArgument if the update does
/// not begin where the last one ended, so that nothing is counted twice. Call it in a transaction.
Result<> put_nodes(Session& session, const NodeUpdate& update);

/// Adds bills in a transaction of its own (store::import_bills()). kInvalidArgument if the database
/// has not this version of ceems_schema.
Result<BillReport> put_bills(Session& session,
                             std::int64_t version,
                             const std::vector<Bill>& bills,
                             bool replace);

}  // namespace ceems::store
