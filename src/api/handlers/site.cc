// What the web page shows of this site.
#include <string>
#include <utility>
#include <vector>

#include "api/accounting/accounting.h"
#include "api/handlers/handlers.h"
#include "api/handlers/own_projects.h"
#include "store/facts.h"

namespace ceems::api {
namespace {

/// What the newest units of a cluster have. It tells nothing about any of them.
ClusterFacts facts_of(const Services& services, const std::string& cluster) {
  constexpr std::size_t kLookedAt = 500;
  store::FactListQuery query;
  query.filter.owners.everybody = true;
  query.filter.clusters = {cluster};
  query.columns = {store::Fact::kGpus, store::Fact::kPartition};
  query.limit = kLookedAt;
  ClusterFacts facts;
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run([&] { return services.reader->unit_facts(query); });
  while (rows) {
    const auto row = timer.run([&] { return (*rows)->next(); });
    if (!row || !*row) {
      break;
    }
    facts.gpus = facts.gpus || (*rows)->integer(0) > 0;
    facts.partitions = facts.partitions || !(*rows)->text(1).empty();
  }
  return facts;
}

}  // namespace

void get_site(const Services& services, Call& call) {
  const SiteOptions& site = *services.site;
  std::vector<ClusterFacts> facts;
  QueryTimer timer(*services.metrics, Query::kClusters);
  const auto updated = timer.run([&] { return services.reader->watermarks(); });
  facts.reserve(site.clusters.size());
  for (const SiteCluster& cluster : site.clusters) {
    ClusterFacts& known = facts.emplace_back(facts_of(services, cluster.id));
    if (updated && updated->contains(cluster.id)) {
      known.updated_ms = updated->at(cluster.id);
    }
  }
  const SeenBudgets seen(services, call);
  answer_data(
      *call.response,
      "[" + site_json(site, facts, services.accounting->priced(), [&](const Budget& budget) {
        return seen.sees(budget.cluster, budget.project);
      }) + "]");
}

}  // namespace ceems::api
