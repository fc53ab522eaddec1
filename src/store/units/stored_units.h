#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/session.h"
#include "store/units/unit_row.h"

namespace ceems::store {

/// The rows of a cluster with each of the ids, at the id's index. All ids are asked for at once, as
/// a statement costs a database more than a row does: a few hundred ids at most.
Result<std::vector<std::vector<StoredUnit>>> find_units(Session& session,
                                                        std::string_view cluster_id,
                                                        std::span<const std::string_view> uuids);

}  // namespace ceems::store
