#include "cacct/series/tsdb.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"

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

Field instant_field(const SeriesQuery& query) {
  Field field;
  field.name = to_lower(query.name);
  field.label = terminal_safe(query.name);
  field.tag = query.name;
  field.title = terminal_safe(query.title);
  field.max = 12;
  field.kind = FieldKind::kAmount;
  field.help = terminal_safe(query.help);
  field.instant = true;
  return field;
}

Result<> add_instant_value(tsdb::Client& client,
                           const SeriesQuery& query,
                           InstantWindow window,
                           tsdb::QueryVariables variables,
                           std::vector<Record>& units) {
  std::vector<std::string> uuids;
  uuids.reserve(units.size());
  for (const Record& unit : units) {
    uuids.emplace_back(unit.text("uuid"));
  }
  std::ranges::sort(uuids);
  uuids.erase(std::ranges::unique(uuids).begin(), uuids.end());
  variables.range =
      tsdb::duration_text(std::chrono::seconds(std::max<std::int64_t>(window.to - window.from, 1)));
  CEEMS_TRY(answer, client.query({.query = query.render(uuids, std::move(variables)),
                                  .time_ms = window.to * 1000}));
  std::map<std::string, std::map<std::string, double>, std::less<>> values;
  for (const tsdb::Series& series : answer.series) {
    const double value = series.samples.empty() ? 0 : series.samples.front().value;
    if (std::isfinite(value)) {
      values[std::string(series.labels.get("uuid"))]
            [terminal_safe(series.labels.get("provider"))] += value;
    }
  }
  for (Record& unit : units) {
    if (const auto found = values.find(unit.text("uuid")); found != values.end()) {
      unit.metrics[query.name].assign(found->second.begin(), found->second.end());
    }
  }
  return {};
}

}  // namespace ceems::cacct
