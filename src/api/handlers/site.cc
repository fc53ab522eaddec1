// What the web page shows of this site.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/handlers/handlers.h"
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

/// The projects of which the caller is a member, as "cluster\nproject".
std::set<std::string> projects_of(const Services& services, const Call& call) {
  std::set<std::string> projects;
  QueryTimer timer(*services.metrics, Query::kProjects);
  auto rows = timer.run(
      [&] { return services.reader->projects({.members = access::own_projects(call.identity)}); });
  const auto cluster = store::find_field(store::project_fields(), "cluster_id");
  const auto name = store::find_field(store::project_fields(), "name");
  while (rows && cluster && name) {
    const auto row = timer.run([&] { return (*rows)->next(); });
    if (!row || !*row) {
      break;
    }
    projects.insert(fmt::format("{}\n{}", (*rows)->text(*cluster), (*rows)->text(*name)));
  }
  return projects;
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
  const bool all = access::admin_area(call.identity) == access::Decision::kAllow;
  const std::set<std::string> own =
      all || site.budgets.empty() ? std::set<std::string>() : projects_of(services, call);
  answer_data(*call.response,
              "[" + site_json(site, facts, [&](const Budget& budget) {
                return all || own.contains(fmt::format("{}\n{}", budget.cluster, budget.project));
              }) + "]");
}

}  // namespace ceems::api
