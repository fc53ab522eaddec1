#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sql/session.h"
#include "store/units/unit_row.h"

namespace ceems::store {

/// The rows of a cluster's units with these uuids, at the index of each uuid. One statement reads
/// all of them, because statements cost more than rows; pass a few hundred uuids at most.
Result<std::vector<std::vector<StoredUnit>>> find_units(Session& session,
                                                        std::string_view cluster_id,
                                                        std::span<const std::string_view> uuids);

}  // namespace ceems::store
