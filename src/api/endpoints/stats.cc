// Counts of units.
#include <utility>

#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

void get_stats(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kStats);
  auto stats = timer.run([&] { return services.reader->stats(call.params.clusters, call.window); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(stats),
                     .format = all_of(store::stat_fields())});
}

}  // namespace

Endpoints stats_endpoints() {
  Endpoint stats{.path = "stats/global/admin",
                 .caller = Caller::kAdmin,
                 .summary = "Number of units per cluster.",
                 .handler = get_stats,
                 .data = {.name = "Stat", .fields = store::stat_fields()},
                 .params = {Param::kClusterId},
                 .audited = false};
  Endpoint current = stats.for_admins(
      "stats/current/admin", "Number of units per cluster that ended in the window or are running.",
      {Param::kFrom, Param::kTo});
  current.window = WindowKind::kEnded;
  return {stats, current};
}

}  // namespace ceems::api
