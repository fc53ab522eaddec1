#include "api/tsdb/series_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "ingest/update_source.h"
#include "tsdb/breaker.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

// People wait for the page, so a slower answer would be of no use.
constexpr milliseconds kTimeout = std::chrono::seconds(20);
constexpr milliseconds kAllCharts = std::chrono::seconds(10);
/// Each part of a period is a request for each chart.
constexpr std::ptrdiff_t kMaxParts = 20;
/// Of a line whose samples are few: a rate needs two in its range, which is two steps.
constexpr std::int64_t kFewPoints = 13;
constexpr std::int64_t kResolutionMs = 1000;
/// A matcher with more devices is longer than some servers accept; then all of the cluster are
/// read.
constexpr std::size_t kMaxNamedDevices = 64;
/// Over the period, to see what is there, as devices may come and go.
constexpr std::int64_t kLooks = 10;
constexpr std::array<std::string_view, 3> kUsual{"cpu", "memory", "power"};
constexpr std::array<std::string_view, 5> kQuantiles{"0", "0.25", "0.5", "0.75", "1"};

/// The step in whole seconds that gives at most `points` points and is not shorter than the scrape
/// interval.
milliseconds step_for(std::int64_t length_ms, std::int64_t points, milliseconds scrape_interval) {
  const std::int64_t gaps = std::max<std::int64_t>(points - 1, 1);
  const std::int64_t seconds = (length_ms / 1000 + gaps - 1) / gaps;
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
  ChartScope scope;
  bool short_life = false;  ///< too short for rates
};

/// How closely the unit was sampled: as it is scraped, or much less, as servers keep old samples.
enum class Samples : std::uint8_t { kAll, kFew };

Plan plan_of(const SeriesRequest& request,
             const tsdb::Settings& settings,
             const std::string& cluster,
             Samples samples = Samples::kAll) {
  // The settings of the TSDB, which says how far back a query without a range reads.
  const std::int64_t lookback = settings.lookback_delta.count();
  gate::Evaluation whole{
      .start_ms = request.from_ms, .end_ms = request.to_ms, .step_ms = kResolutionMs};
  const auto lived = gate::own_parts(whole, {}, 0, {.own = request.lives.own, .others = {}});
  const std::int64_t length = length_of(lived);
  const bool few = samples == Samples::kFew;
  const std::int64_t points = few ? std::min(request.max_points, kFewPoints) : request.max_points;
  const milliseconds step = step_for(length, points, settings.scrape_interval);
  const milliseconds range = std::max(few ? 2 * step : step, settings.rate_interval());
  whole.step_ms = step.count();
  Plan plan{.parts = gate::own_parts(whole, {.from_ms = -range.count(), .to_ms = 0}, lookback,
                                     request.lives),
            .scope = {.unit = fmt::format("uuid=\"{}\"{}{}", tsdb::quote_text(request.uuid),
                                          cluster.empty() ? "" : ",", cluster),
                      .cluster = cluster,
                      .devices = {},
                      .range = tsdb::duration_text(range)},
            .short_life = length < 2 * settings.scrape_interval.count()};
  if (std::ssize(plan.parts) > kMaxParts) {  // the latest
    plan.parts.erase(plan.parts.begin(), plan.parts.end() - kMaxParts);
  }
  return plan;
}

/// The labels of a line, in the order in which they are listed.
std::vector<std::pair<std::string, std::string>> labels_of_line(const tsdb::Labels& labels) {
  std::vector<std::pair<std::string, std::string>> some;
  for (const std::string_view name :
       {"hostname", "index", "gpuuuid", "gpuiid", "domain", "quantile"}) {
    if (const std::string_view value = labels.get(name); !value.empty()) {
      some.emplace_back(name, value);
    }
  }
  return some;
}

/// Whether the id of a device stands for itself in a pattern.
bool is_plain_id(const std::string& id) {
  return !id.empty() && std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  });
}

/// In the order of hosts and numbers.
void sort_lines(std::vector<Series>& lines) {
  const auto key = [](const Series& line) {
    std::vector<std::pair<std::int64_t, std::string_view>> texts;
    texts.reserve(line.labels.size());
    for (const auto& [name, value] : line.labels) {
      texts.emplace_back(name == "index" ? parse_int<std::int64_t>(value).value_or(0) : 0, value);
    }
    return texts;
  };
  std::ranges::stable_sort(lines, {}, key);
}

/// What one request asks of one TSDB.
class Reading {
 public:
  Reading(tsdb::Client& client, const SeriesRequest& request, Plan plan, Plan few)
      : client_(&client), request_(&request), plan_(std::move(plan)), few_(std::move(few)) {}

  [[nodiscard]] const Plan& plan() const { return plan_; }

  /// Finds the devices, where the charts have lines of them, and how many lines there will be.
  Result<> count_lines() {
    if (request_->by == ChartBy::kSum || request_->by == ChartBy::kComponent) {
      return {};
    }
    const bool devices = request_->by == ChartBy::kGpu;
    const std::string query =
        devices
            ? devices_query(plan_.scope)
            : fmt::format("count by (hostname) (ceems_compute_unit_cpus{{{}}})", plan_.scope.unit);
    std::set<std::string> lines, ids;
    for (const auto& part : plan_.parts) {
      CEEMS_TRY(answer, looks_of(query, part));
      for (const tsdb::Series& series : answer.series) {
        std::string key;
        for (const auto& [name, value] : labels_of_line(series.labels)) {
          key += value + '\n';
        }
        lines.insert(std::move(key));
        ids.emplace(series.labels.get("gpuuuid"));
      }
    }
    many_ = lines.size() > request_->max_lines;
    many_devices_ = devices ? ids.size() > kMaxNamedDevices : many_;
    if (devices && !ids.empty() && ids.size() <= kMaxNamedDevices &&
        std::ranges::all_of(ids, is_plain_id)) {
      plan_.scope.devices = fmt::format("gpuuuid=~\"{}\"", fmt::join(ids, "|"));
      few_.scope.devices = plan_.scope.devices;
    }
    return {};
  }

  Result<> add_chart(const UnitChart& chart, bool usual, std::vector<Series>& all) {
    const ChartBy by = has_lines(chart, request_->by) ? request_->by : ChartBy::kSum;
    CEEMS_TRY_IN(chart.name, sources, sources_of(chart));
    plan_.scope.sources = few_.scope.sources = sources;
    const std::string query = chart_query(chart, by, plan_.scope);
    CEEMS_TRY_IN(chart.name, lines, lines_of(query, by, plan_));
    if (const std::string wider = chart_query(chart, by, few_.scope);
        lines.empty() && wider != query && !plan_.short_life) {
      CEEMS_TRY_IN(chart.name, sparse, lines_of(wider, by, few_));
      lines = std::move(sparse);
    }
    if (!usual && !lines.empty()) {
      CEEMS_TRY_IN(chart.name, limits, limits_of(chart, by));
      for (Series& line : lines) {
        const auto found = std::ranges::find(limits, line.labels, &Series::labels);
        if (found != limits.end() && !found->points.empty()) {
          line.limit = found->points.back().second;
        }
      }
    }
    if (lines.empty()) {
      Series& none = lines.emplace_back();
      if (!usual) {
        none.none = plan_.short_life ? NoLine::kTooShort : NoLine::kNotCollected;
        none.collector = chart.collector;
      }
    }
    for (Series& line : lines) {
      line.name = chart.name;
      line.unit = chart.unit;
    }
    std::ranges::move(lines, std::back_inserter(all));
    return {};
  }

 private:
  Result<tsdb::QueryAnswer> looks_of(const std::string& query, const gate::Evaluation& part) {
    const std::int64_t step = std::max((part.end_ms - part.start_ms) / kLooks, part.step_ms);
    return client_->query_range(query, part.start_ms, part.end_ms, milliseconds(step));
  }

  /// Which sources of the chart have values. For each other one, a TSDB reads all devices in vain,
  /// at each step and for each quantile.
  Result<std::uint32_t> sources_of(const UnitChart& chart) {
    constexpr std::uint32_t kAll = ~0U;
    std::uint32_t found = 0;
    if (many_devices_ && chart.finest == ChartBy::kGpu) {
      for (const auto& part : plan_.parts) {
        CEEMS_TRY(answer, looks_of(sources_query(chart, few_.scope), part));
        for (const tsdb::Series& series : answer.series) {
          const auto source = parse_int<std::uint32_t>(series.labels.get("source"));
          found |= source && *source < chart.first.size() ? 1U << *source : 0;
        }
      }
    }
    return found == 0 ? kAll : found;
  }

  Result<std::vector<Series>> limits_of(const UnitChart& chart, ChartBy by) {
    const std::string query = limit_query(chart, by, plan_.scope);
    return query.empty() || (many_ && by != ChartBy::kSum) ? std::vector<Series>()
                                                           : lines_of(query, by, plan_);
  }

  /// The lines that a query gives, over all parts of the period.
  Result<std::vector<Series>> lines_of(const std::string& query, ChartBy by, const Plan& plan) {
    std::string text = query;
    if (many_ && by != ChartBy::kSum && by != ChartBy::kComponent) {
      text.clear();
      for (const std::string_view quantile : kQuantiles) {
        text +=
            fmt::format("{0}label_replace(quantile({1}, {2}), \"quantile\", \"{1}\", \"\", \"\")",
                        text.empty() ? "" : " or ", quantile, query);
      }
    }
    std::vector<Series> lines;
    std::map<decltype(Series::labels), std::size_t> places;
    for (const auto& part : plan.parts) {
      CEEMS_TRY(answer,
                client_->query_range(text, part.start_ms, part.end_ms, milliseconds(part.step_ms)));
      for (const tsdb::Series& series : answer.series) {
        auto labels = labels_of_line(series.labels);
        auto found = places.find(labels);
        if (found == places.end()) {
          if (lines.size() >= std::max(request_->max_lines, kQuantiles.size())) {
            continue;
          }
          lines.push_back({.name = {}, .unit = {}, .points = {}, .labels = labels});
          found = places.emplace(std::move(labels), lines.size() - 1).first;
        }
        Series& line = lines[found->second];
        for (const auto& sample : series.samples) {
          if (std::isfinite(sample.value)) {
            line.points.emplace_back(sample.time_ms, sample.value);
          }
        }
      }
    }
    std::erase_if(lines, [](const Series& line) { return line.points.empty(); });
    sort_lines(lines);
    return lines;
  }

  tsdb::Client* client_;
  const SeriesRequest* request_;
  Plan plan_;
  Plan few_;           ///< for rates of which plan_ finds none
  bool many_ = false;  ///< more lines than may be sent
  bool many_devices_ = false;
};

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
  const std::string cluster =
      label.empty() ? std::string()
                    : fmt::format("{}=\"{}\"", label, tsdb::quote_text(request.cluster_id));
  Reading reading(*client, request, plan_of(request, client->settings(), cluster),
                  plan_of(request, client->settings(), cluster, Samples::kFew));
  const auto until = std::chrono::steady_clock::now() + kAllCharts;
  CEEMS_TRY(reading.count_lines());
  std::vector<Series> result;
  const auto add = [&](std::string_view name, bool usual) -> Result<> {
    const UnitChart* const chart = find_unit_chart(name);
    if (chart == nullptr) {
      return fail(ErrorCode::kInvalidArgument, "no chart is called {}", printable(name, 40));
    }
    if (std::chrono::steady_clock::now() > until) {
      return fail(ErrorCode::kUnavailable, "the TSDB took more than {} s for all charts",
                  kAllCharts.count() / 1000);
    }
    return reading.add_chart(*chart, usual, result);
  };
  for (const std::string& name : request.charts) {
    CEEMS_TRY(add(name, false));
  }
  for (const std::string_view name :
       request.charts.empty() ? std::span(kUsual) : std::span<const std::string_view>()) {
    CEEMS_TRY(add(name, true));
  }
  const bool any =
      std::ranges::any_of(result, [](const Series& line) { return !line.points.empty(); });
  if (any || label.empty()) {
    return result;
  }
  // An empty chart would hide that the label is missing.
  for (const auto& part : reading.plan().parts) {
    CEEMS_TRY_IN(
        "series without a cluster", unlabelled,
        client->query_range(
            fmt::format("count(ceems_compute_unit_memory_used_bytes{{uuid=\"{}\",{}=\"\"}})",
                        tsdb::quote_text(request.uuid), label),
            part.start_ms, part.end_ms, milliseconds(part.step_ms)));
    if (!unlabelled.series.empty()) {
      return fail(ErrorCode::kPermissionDenied,
                  "the TSDB holds several clusters and its series have no label '{}'", label);
    }
  }
  return result;
}

}  // namespace ceems::api
