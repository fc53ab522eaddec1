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

// The tables ceems_gaps and ceems_gap_units: windows without some of their metrics
// (docs/api/database.md, "Gaps"). Call the functions that write in a transaction. Errors come
// from the session.

/// The gaps of one cluster, oldest first.
Result<std::vector<Gap>> read_gaps(Session& session, std::string_view cluster_id);
/// Nothing if there is no such gap.
Result<std::optional<Gap>> read_gap(Session& session, std::int64_t gap_id);
/// The units of a gap, with uuid, start, end and the times that the window counted.
Result<std::vector<model::Unit>> read_gap_units(Session& session, std::int64_t gap_id);

/// Stores the gaps of a window. `counted` are the units that the window counted, with these times.
Result<> insert_gaps(Session& session,
                     const ClusterUpdate& update,
                     std::span<const model::Unit> counted);
/// Stores the parts that are still missing. Deletes the gap if `parts` is empty.
Result<> set_gap_parts(Session& session,
                       std::int64_t gap_id,
                       const std::vector<std::string>& parts);

/// Deletes the gaps of windows that ended before the cutoff (epoch ms).
Result<> purge_gaps(Session& session, std::int64_t cutoff_ms);

}  // namespace ceems::store
