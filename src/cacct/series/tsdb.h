#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cacct/output/answer.h"
#include "cacct/output/fields.h"
#include "cacct/series/config.h"
#include "tsdb/client.h"
#include "tsdb/query_template.h"

namespace ceems::cacct {

/// A client for `tsdb.web`, which may be the load balancer: the name of the user and the cluster
/// are sent with each request, so that its rules of access hold.
Result<std::unique_ptr<tsdb::Client>> connect_tsdb(const Config& config, const std::string& user);

/// From the configuration, else from the TSDB, else a minute.
std::chrono::milliseconds scrape_interval(const Config& config, tsdb::Client& client);

/// The variables for queries that are the same for all units.
tsdb::QueryVariables tsdb_variables(const Config& config, tsdb::Client& client);

/// The field that shows an instant query of the configuration.
Field instant_field(const SeriesQuery& query);

/// A period in epoch seconds.
struct InstantWindow {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Runs the query at the end of the window, for all units at once, and adds its values to the
/// units with the same `uuid`. If a unit has several series, their values are told apart by the
/// label `provider`, and those that have the same are added up.
Result<> add_instant_value(tsdb::Client& client,
                           const SeriesQuery& query,
                           InstantWindow window,
                           tsdb::QueryVariables variables,
                           std::vector<Record>& units);

}  // namespace ceems::cacct
