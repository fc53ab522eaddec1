#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/session.h"
#include "store/store.h"

namespace ceems::store {

// Windows whose metrics are not complete (docs/api/database.md, "Gaps"): the tables ceems_gaps and
// ceems_gap_units. Writing belongs into a transaction of the caller.

/// Of one cluster, oldest first.
Result<std::vector<Gap>> read_gaps(Session& session, std::string_view cluster_id);
/// Nothing when there is no such gap.
Result<std::optional<Gap>> read_gap(Session& session, std::int64_t gap_id);
/// With uuid, start, end and the times that were counted.
Result<std::vector<model::Unit>> read_gap_units(Session& session, std::int64_t gap_id);

/// `counted` are the units that the window counted, with the times that it did.
Result<> insert_gaps(Session& session,
                     const ClusterUpdate& update,
                     std::span<const model::Unit> counted);
/// No parts: the gap goes.
Result<> set_gap_parts(Session& session,
                       std::int64_t gap_id,
                       const std::vector<std::string>& parts);

/// Gaps of windows that ended before go.
Result<> purge_gaps(Session& session, std::int64_t cutoff_ms);

}  // namespace ceems::store
