#include "cacct/series/tsdb.h"

#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"

namespace ceems::cacct {

Result<std::unique_ptr<tsdb::Client>> connect_tsdb(const Config& config, const std::string& user) {
  net::ClientOptions options = config.tsdb_client;
  const auto set = [&options](const std::string& name, const std::string& value) {
    std::erase_if(options.headers,
                  [&](const auto& header) { return same_in_any_case(header.first, name); });
    options.headers[name].values = {value};
  };
  set(config.user_header, user);
  if (!config.cluster_id.empty()) {
    set("X-Ceems-Cluster-Id", config.cluster_id);
  }
  CEEMS_TRY_IN("tsdb.web", transport, tsdb::http_transport(std::move(options)));
  return std::make_unique<tsdb::Client>(config.tsdb_url, std::move(transport), real_clock());
}

std::chrono::milliseconds scrape_interval(const Config& config, tsdb::Client& client) {
  return config.scrape_interval ? *config.scrape_interval : client.settings().scrape_interval;
}

tsdb::QueryVariables tsdb_variables(const Config& config, tsdb::Client& client) {
  const auto scrape = scrape_interval(config, client);
  const auto evaluation = config.evaluation_interval ? *config.evaluation_interval
                                                     : client.settings().evaluation_interval;
  return {.uuids = {},
          .scrape_interval = tsdb::duration_text(scrape),
          .scrape_interval_milli = fmt::format("{}", scrape.count()),
          .evaluation_interval = tsdb::duration_text(evaluation),
          .evaluation_interval_milli = fmt::format("{}", evaluation.count()),
          .rate_interval = tsdb::duration_text(4 * scrape),
          .range = {}};
}

}  // namespace ceems::cacct
