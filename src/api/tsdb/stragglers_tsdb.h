#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/tsdb/series_tsdb.h"
#include "base/result.h"
#include "fleet/stragglers.h"

namespace ceems::api {

/// A run of a unit, of which at most the last two hours are read while it runs.
struct StragglerRequest {
  std::string uuid;
  std::int64_t started_ms = 0;
  std::int64_t until_ms = 0;  ///< its end, or now
  bool running = false;
};

/// The slow members of a unit, by at most three queries. A unit that is too small or too young has
/// none and is not asked for. GPUs that it shares with others are left out, because their clock and
/// power are not its own. Passes on errors of tsdb::Client; kUnavailable for more series than are
/// read.
Result<std::vector<fleet::Straggler>> read_stragglers(const ClusterTsdb& tsdb,
                                                      std::string_view cluster_id,
                                                      const StragglerRequest& request);

/// A running unit that has slow members.
struct StragglersOfUnit {
  std::string uuid;
  std::vector<fleet::Straggler> rows;
};

/// The running units of a cluster with members that were slow in the last 20 minutes, by four
/// queries whatever the number of units. The 1,000 widest units are looked at. Errors as above.
Result<std::vector<StragglersOfUnit>> read_all_stragglers(const ClusterTsdb& tsdb,
                                                          std::string_view cluster_id,
                                                          std::int64_t now_ms);

}  // namespace ceems::api
