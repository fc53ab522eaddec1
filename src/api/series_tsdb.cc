#include "api/series_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "ingest/update_source.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMaxPoints = 300;
// People wait for the page, so a slower answer would be of no use.
constexpr milliseconds kTimeout = std::chrono::seconds(20);

struct Chart {
  std::string_view name;
  std::string_view unit;
  std::string_view query;  ///< {0} matcher of the unit, {1} range of rates
};

// Energy is that of the domain "node" where it is known, otherwise the sum of the other domains, as
// in unit_counters.h. Here "node" includes the GPUs, because the page shows the whole power of the
// unit.
constexpr std::array<Chart, 3> kCharts{{
    {"cpu", "cores",
     "sum(rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}[{1}]) + "
     "rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}[{1}]))"},
    {"memory", "bytes", "sum(ceems_compute_unit_memory_used_bytes{{{0}}})"},
    {"power", "watts",
     "sum(rate(ceems_compute_unit_energy_joules_total{{{0},domain=\"node\"}}[{1}])) or "
     "sum(rate(ceems_compute_unit_energy_joules_total{{{0},domain!=\"node\"}}[{1}])) or "
     "sum(uuid:ceems_host_power_watts:pue{{{0}}})"},
}};

/// The step in whole seconds that gives at most kMaxPoints points and is not shorter than the
/// scrape interval.
milliseconds step_for(std::int64_t length_ms, milliseconds scrape_interval) {
  const std::int64_t seconds = (length_ms / 1000 + kMaxPoints - 2) / (kMaxPoints - 1);
  const milliseconds step = std::chrono::seconds(std::max<std::int64_t>(seconds, 1));
  return std::max(step, scrape_interval);
}

}  // namespace

TsdbSeriesSource::TsdbSeriesSource(
    std::map<std::string, std::unique_ptr<tsdb::Client>, std::less<>> clients)
    : clients_(std::move(clients)) {}

Result<std::unique_ptr<TsdbSeriesSource>> TsdbSeriesSource::create(
    const std::vector<ingest::ClusterConfig>& clusters,
    const std::vector<ingest::UpdaterConfig>& updaters,
    const Clock& clock) {
  std::map<std::string, std::unique_ptr<tsdb::Client>, std::less<>> clients;
  for (const auto& cluster : clusters) {
    auto endpoint = ingest::tsdb_of_cluster(cluster, updaters);
    if (!endpoint) {
      return fail(std::move(endpoint).error());
    }
    if (!*endpoint) {
      continue;
    }
    auto& [url, web] = **endpoint;
    web.timeout = std::min(web.timeout, kTimeout);
    auto transport = tsdb::http_transport(std::move(web));
    if (!transport) {
      return fail(std::move(transport).error().with_context("cluster " + cluster.cluster.id));
    }
    clients.emplace(cluster.cluster.id,
                    std::make_unique<tsdb::Client>(url, std::move(*transport), clock));
  }
  return std::make_unique<TsdbSeriesSource>(std::move(clients));
}

Result<std::vector<Series>> TsdbSeriesSource::series(const std::string& cluster_id,
                                                     const std::string& uuid,
                                                     std::int64_t from_ms,
                                                     std::int64_t to_ms) {
  const auto client = clients_.find(cluster_id);
  if (client == clients_.end()) {
    return fail(ErrorCode::kNotFound, "no TSDB is configured for cluster {}",
                printable(cluster_id, 40));
  }
  if (uuid.empty() || from_ms < 0 || to_ms <= from_ms) {
    return fail(ErrorCode::kInvalidArgument, "expected a unit and a period");
  }
  const tsdb::Settings settings = client->second->settings();
  const milliseconds step = step_for(to_ms - from_ms, settings.scrape_interval);
  const std::string matcher = fmt::format("uuid=\"{}\"", tsdb::quote_text(uuid));
  const std::string range = tsdb::duration_text(std::max(step, settings.rate_interval()));
  std::vector<Series> result;
  for (const auto& chart : kCharts) {
    auto answer = client->second->query_range(
        fmt::format(fmt::runtime(chart.query), matcher, range), from_ms, to_ms, step);
    if (!answer) {
      return fail(std::move(answer).error().with_context(chart.name));
    }
    Series series{.name = std::string(chart.name), .unit = std::string(chart.unit), .points = {}};
    if (!answer->series.empty()) {
      for (const auto& sample : answer->series.front().samples) {
        if (std::isfinite(sample.value)) {
          series.points.emplace_back(sample.time_ms, sample.value);
        }
      }
    }
    result.push_back(std::move(series));
  }
  return result;
}

}  // namespace ceems::api
