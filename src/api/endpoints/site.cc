// What the web page shows of this site.
#include <string>
#include <utility>
#include <vector>

#include "api/accounting/accounting.h"
#include "api/endpoints/all.h"
#include "api/endpoints/own_projects.h"
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

}  // namespace

Endpoints site_endpoints() {
  return {
      {.path = "site",
       .caller = Caller::kUser,
       .summary = "What the web page shows of this site.",
       .handler = get_site,
       .data =
           {.name = "Site",
            .definitions = R"json("Site": {
        "type": "object",
        "required": ["name", "currency", "help_url", "time_zone", "unit_word", "version", "languages", "unit_links", "priced", "tokens", "price_kwh", "price_core_hour", "price_gpu_hour", "pue", "budgets", "clusters"],
        "additionalProperties": false,
        "properties": {
          "name": {"type": "string", "description": "Name of the site."},
          "currency": {"type": "string", "description": "Currency of the prices."},
          "help_url": {"type": "string", "description": "Where users get help."},
          "time_zone": {"type": "string", "description": "Time zone of days and months."},
          "unit_word": {"type": "string", "enum": ["", "unit", "job", "vm", "pod"], "description": "What the page calls units; empty: what the managers call them, if all agree."},
          "version": {"type": "string", "description": "Version of the server."},
          "languages": {"type": "array", "items": {"type": "string"}, "description": "Languages of texts of the server."},
          "priced": {"type": "boolean", "description": "Whether answers have costs."},
          "tokens": {"type": "boolean", "description": "Whether people can make personal API tokens."},
          "price_kwh": {"type": ["number", "null"], "description": "Price of a kWh of the block ui; null if it comes from prices.yml."},
          "price_core_hour": {"type": ["number", "null"], "description": "Price of a core for an hour."},
          "price_gpu_hour": {"type": ["number", "null"], "description": "Price of a GPU for an hour."},
          "pue": {"type": ["number", "null"], "description": "Power usage effectiveness of the site."},
          "budgets": {
            "type": "array",
            "description": "Budgets of the caller's projects; all for support and admins.",
            "items": {
              "type": "object",
              "required": ["cluster", "project", "kwh_per_month"],
              "additionalProperties": false,
              "properties": {
                "cluster": {"type": "string"},
                "project": {"type": "string"},
                "kwh_per_month": {"type": "number"}
              }
            }
          },
          "clusters": {
            "type": "array",
            "description": "Configured clusters, and what there is to show of them.",
            "items": {
              "type": "object",
              "required": ["id", "manager", "series", "nodes", "gpus", "partitions", "updated"],
              "additionalProperties": false,
              "properties": {
                "id": {"type": "string"},
                "manager": {"type": "string"},
                "series": {"type": "boolean"},
                "nodes": {"type": "boolean"},
                "gpus": {"type": "boolean"},
                "partitions": {"type": "boolean"},
                "updated": {"type": ["integer", "null"], "description": "To when its data was read, in milliseconds since 1970."}
              }
            }
          },
          "unit_links": {
            "type": "array",
            "description": "Links for the page of each unit.",
            "items": {
              "type": "object",
              "required": ["name", "url", "clusters"],
              "additionalProperties": false,
              "properties": {
                "name": {"type": "string", "description": "Text of the link."},
                "url": {"type": "string", "description": "URL, in which {uuid}, {cluster}, {user}, {project}, {from_ms} and {to_ms} stand for what they are of the unit."},
                "clusters": {"type": "array", "items": {"type": "string"}, "description": "Clusters whose units have it. Empty: all."}
              }
            }
          }
        }
      })json",
            .example =
                R"({"name":"Example HPC","currency":"EUR","help_url":"https://example.org/help",)"
                R"("time_zone":"Europe/Paris","unit_word":"","version":"0.1.0","languages":["en"],)"
                R"("unit_links":[{"name":"Profiles","url":"https://grafana.example.org/d/profiles)"
                R"(?var-service={uuid}&from={from_ms}&to={to_ms}","clusters":["hpc-a"]}],)"
                R"("priced":true,"tokens":true,"price_kwh":0.24,"price_core_hour":null,"price_gpu_hour":null,"pue":1.2,)"
                R"("budgets":[{"cluster":"hpc-a","project":"fluids","kwh_per_month":3000}],)"
                R"("clusters":[{"id":"hpc-a","manager":"slurm","series":true,"nodes":true,"gpus":true,)"
                R"("partitions":true,"updated":1767225600000}]})"},
       .tagged = false,
       .audited = false}};
}

}  // namespace ceems::api
