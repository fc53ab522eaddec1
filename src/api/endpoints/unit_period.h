#pragma once

#include <optional>

#include "api/endpoints/endpoint.h"
#include "gate/shared_ids.h"
#include "store/reader.h"

namespace ceems::api {

/// What a caller may see of one unit in a TSDB or a profile server.
struct UnitPeriod {
  store::TimeRange range;  ///< from `from` to `to`; empty or negative outside the unit's lives
  gate::SharedId lives;    ///< of its ID: those that the caller may see, and all others
};

/// Reads `cluster_id`, `uuid`, `from` and `to`, and whether the unit is the caller's
/// (access::series_rows()). Marks calls for units of other users. Nothing if it has answered with
/// an error: parameters that are wrong, or a unit that the caller may not see.
///
/// The period extends a minute beyond the lives to include the first and last samples of short
/// units. It is limited, because ids are reused and the unit of another time may belong to somebody
/// else.
std::optional<UnitPeriod> period_of_unit(const Services& services, Call& call);

}  // namespace ceems::api
