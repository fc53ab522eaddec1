#include "api/tsdb/series_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "ingest/update_source.h"
#include "tsdb/breaker.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMaxPoints = 300;
// People wait for the page, so a slower answer would be of no use.
constexpr milliseconds kTimeout = std::chrono::seconds(20);
/// Each part of a period is a request for each chart.
constexpr std::ptrdiff_t kMaxParts = 20;
constexpr std::int64_t kResolutionMs = 1000;

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

/// The length of the parts of a period in which the unit lived, which the points are spread over.
std::int64_t length_of(const std::vector<gate::Evaluation>& parts) {
  std::int64_t length = 0;
  for (const gate::Evaluation& part : parts) {
    length += part.end_ms - part.start_ms;
  }
  return length;
}

/// How the parts of a request are read.
struct Plan {
  std::vector<gate::Evaluation> parts;
  std::string matcher;
  std::string range;
};

Plan plan_of(const SeriesRequest& request, const tsdb::Settings& settings) {
  // The settings of the TSDB, which says how far back a query without a range reads.
  const std::int64_t lookback = settings.lookback_delta.count();
  gate::Evaluation whole{
      .start_ms = request.from_ms, .end_ms = request.to_ms, .step_ms = kResolutionMs};
  const auto lived = gate::own_parts(whole, {}, 0, {.own = request.lives.own, .others = {}});
  const milliseconds step = step_for(length_of(lived), settings.scrape_interval);
  const milliseconds range = std::max(step, settings.rate_interval());
  whole.step_ms = step.count();
  Plan plan{.parts = gate::own_parts(whole, {.from_ms = -range.count(), .to_ms = 0}, lookback,
                                     request.lives),
            .matcher = fmt::format("uuid=\"{}\"", tsdb::quote_text(request.uuid)),
            .range = tsdb::duration_text(range)};
  if (std::ssize(plan.parts) > kMaxParts) {  // the latest
    plan.parts.erase(plan.parts.begin(), plan.parts.end() - kMaxParts);
  }
  return plan;
}

/// Appends the points of one part.
void append_points(const tsdb::QueryAnswer& answer, Series& series) {
  if (answer.series.empty()) {
    return;
  }
  for (const auto& sample : answer.series.front().samples) {
    if (std::isfinite(sample.value)) {
      series.points.emplace_back(sample.time_ms, sample.value);
    }
  }
}

/// Without trailing slashes, so that the same TSDB has the same text.
std::string plain_url(std::string url) {
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return url;
}

}  // namespace

Result<ClusterTsdbs> cluster_tsdbs(const std::vector<ingest::ClusterConfig>& clusters,
                                   const std::vector<ingest::UpdaterConfig>& updaters,
                                   const SeriesOptions& options,
                                   const Clock& clock) {
  ClusterTsdbs tsdbs;
  std::map<std::string, std::vector<ClusterTsdb*>> by_url;
  for (const auto& cluster : clusters) {
    CEEMS_TRY(endpoint, ingest::tsdb_of_cluster(cluster, updaters));
    if (!endpoint) {
      continue;
    }
    auto& [url, web] = *endpoint;
    web.timeout = std::min(web.timeout, kTimeout);
    CEEMS_TRY_IN("cluster " + cluster.cluster.id, transport, tsdb::http_transport(std::move(web)));
    auto& tsdb = tsdbs[cluster.cluster.id];
    tsdb.client = std::make_unique<tsdb::Client>(
        url, tsdb::with_breaker(std::move(transport), cluster.cluster.id, clock), clock);
    by_url[plain_url(url)].push_back(&tsdb);
  }
  for (const auto& [url, sharing] : by_url) {
    for (ClusterTsdb* const tsdb : sharing) {
      const bool pinned = options.pin_cluster.value_or(sharing.size() > 1);
      tsdb->cluster_label = pinned ? options.cluster_label : "";
    }
  }
  return tsdbs;
}

Result<std::vector<Series>> TsdbSeriesSource::series(const SeriesRequest& request) {
  const auto found = tsdbs_.find(request.cluster_id);
  if (found == tsdbs_.end()) {
    return fail(ErrorCode::kNotFound, "no TSDB is configured for cluster {}",
                printable(request.cluster_id, 40));
  }
  if (request.uuid.empty() || request.from_ms < 0 || request.to_ms <= request.from_ms) {
    return fail(ErrorCode::kInvalidArgument, "expected a unit and a period");
  }
  const auto& [client, label] = found->second;
  const Plan plan = plan_of(request, client->settings());
  const std::string cluster =
      label.empty() ? std::string()
                    : fmt::format(",{}=\"{}\"", label, tsdb::quote_text(request.cluster_id));
  std::vector<Series> result;
  bool any = false;
  for (const auto& chart : kCharts) {
    Series series{.name = std::string(chart.name), .unit = std::string(chart.unit), .points = {}};
    for (const auto& part : plan.parts) {
      CEEMS_TRY_IN(chart.name, answer,
                   client->query_range(
                       fmt::format(fmt::runtime(chart.query), plan.matcher + cluster, plan.range),
                       part.start_ms, part.end_ms, milliseconds(part.step_ms)));
      append_points(answer, series);
    }
    any = any || !series.points.empty();
    result.push_back(std::move(series));
  }
  if (any || label.empty()) {
    return result;
  }
  // An empty chart would hide that the label is missing.
  for (const auto& part : plan.parts) {
    CEEMS_TRY_IN(
        "series without a cluster", unlabelled,
        client->query_range(fmt::format("count(ceems_compute_unit_memory_used_bytes{{{},{}=\"\"}})",
                                        plan.matcher, label),
                            part.start_ms, part.end_ms, milliseconds(part.step_ms)));
    if (!unlabelled.series.empty()) {
      return fail(ErrorCode::kPermissionDenied,
                  "the TSDB holds several clusters and its series have no label '{}'", label);
    }
  }
  return result;
}

}  // namespace ceems::api
