// Clusters that have units.
#include <utility>

#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

void get_clusters(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kClusters);
  auto clusters = timer.run([&] { return services.reader->clusters(); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(clusters),
                     .format = all_of(store::cluster_fields())});
}

}  // namespace

Endpoints clusters_endpoints() {
  return {{.path = "clusters/admin",
           .caller = Caller::kAdmin,
           .summary = "Clusters that have units.",
           .handler = get_clusters,
           .data = {.name = "Cluster", .fields = store::cluster_fields()},
           .audited = false}};
}

}  // namespace ceems::api
