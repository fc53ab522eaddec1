#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
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

}  // namespace ceems::cacct
