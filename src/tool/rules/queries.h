#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/rules/discovery.h"
#include "tsdb/client.h"

namespace ceems::tool::rules {

/// A query of the TSDB updater of ceems_api_server.
struct UpdaterQuery {
  std::string metric;      ///< "avg_cpu_usage"
  std::string sub_metric;  ///< "global"
  std::string query;       ///< with {{.UUIDs}} and other variables of the updater
};

/// The queries for the records that exist in this time, sorted by metric and sub-metric. Emissions
/// get one for each provider.
Result<std::vector<UpdaterQuery>> updater_queries(tsdb::Client& client, TimeRange range);

/// The YAML text of the key `queries` of the updater.
std::string updater_queries_text(const std::vector<UpdaterQuery>& queries);

}  // namespace ceems::tool::rules
