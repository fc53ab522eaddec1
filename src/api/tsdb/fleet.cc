#include "api/tsdb/fleet.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "tsdb/answer.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSilentMs = 5 * kMinuteMs;
constexpr double kIdlePercent = 5;
constexpr std::size_t kMaxNodes = 50'000;
constexpr std::size_t kMaxIdleUnits = 2000;

/// A matcher of the cluster's series: empty or {ceems_id="hpc-a"}, with further ones after it.
std::string matchers(const ClusterTsdb& tsdb, const std::string& cluster_id, std::string more) {
  if (!tsdb.cluster_label.empty()) {
    more += fmt::format("{}{}=\"{}\"", more.empty() ? "" : ",", tsdb.cluster_label,
                        tsdb::quote_text(cluster_id));
  }
  return more;
}

/// A query and the value that it gives of each host. `{0}` is the cluster's matcher, `{1}` the same
/// after a comma, `{2}` the range of rates, `{3}` the range of the month.
struct Question {
  std::string_view query;
  void (*take)(Node& node, double value);
};

constexpr std::array<Question, 13> kQuestions{{
    // When it was seen; this query finds the nodes, also those that came after its last step.
    {"max by (hostname) (max_over_time(timestamp(ceems_cpu_count{{{0}}})[1d:5m]))"
     " or max by (hostname) (timestamp(ceems_cpu_count{{{0}}}))",
     [](Node& node, double value) {
       node.seen_ms = std::max(node.seen_ms.value_or(0), tsdb::moment_ms(value));
     }},
    {"max by (hostname) (timestamp(ceems_cpu_count{{{0}}}))",
     [](Node& node, double value) {
       node.seen_ms = std::max(node.seen_ms.value_or(0), tsdb::moment_ms(value));
     }},
    {"sum by (hostname) (ceems_cpu_count{{{0}}})",
     [](Node& node, double value) { node.cpus = value; }},
    {"100 * (1 - sum by (hostname) (rate(ceems_cpu_seconds_total{{mode=~\"idle|iowait\"{1}}}[{2}]))"
     " / sum by (hostname) (ceems_cpu_count{{{0}}}))",
     [](Node& node, double value) { node.cpu = std::clamp(value, 0.0, 100.0); }},
    {"100 * (1 - max by (hostname) (ceems_meminfo_MemAvailable_bytes{{{0}}})"
     " / max by (hostname) (ceems_meminfo_MemTotal_bytes{{{0}}}))",
     [](Node& node, double value) { node.mem = std::clamp(value, 0.0, 100.0); }},
    {"max by (hostname) (max_over_time(ceems_compute_units{{{0}}}[{2}]))",
     [](Node& node, double value) { node.units = value; }},
    {"100 * avg by (hostname) (avg_over_time(ceems_gpu_utilization_ratio{{{0}}}[{2}]))",
     [](Node& node, double value) { node.gpu = std::clamp(value, 0.0, 100.0); }},
    {"count by (hostname) (ceems_gpu_utilization_ratio{{{0}}})",
     [](Node& node, double value) { node.gpus = value; }},
    // A rate over more time than a counter exists is too low.
    {"sum by (hostname) (rate(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{2}])"
     " and ceems_node_energy_joules_total{{domain=\"node\"{1}}} offset {2}) or"
     " sum by (hostname) (irate(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{2}])) or"
     " sum by (hostname) (rate(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{2}])"
     " and ceems_node_energy_joules_total{{domain!=\"node\"{1}}} offset {2}) or"
     " sum by (hostname) (irate(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{2}]))",
     [](Node& node, double value) { node.watts = value; }},
    {"sum by (hostname) (increase(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{3}])) or"
     " sum by (hostname) (increase(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{3}]))",
     [](Node& node, double value) { node.month_kwh = value / kJoulesPerKwh; }},
    {"max by (hostname) (count_over_time(ceems_unallocated_energy_joules_total{{{0}}}[{3}:1h]))",
     [](Node& node, double value) { node.month_hours = value; }},
    {"sum by (hostname) "
     "(increase(ceems_unallocated_energy_joules_total{{domain=\"node\"{1}}}[{3}]))"
     " or sum by (hostname)"
     " (increase(ceems_unallocated_energy_joules_total{{domain!=\"node\"{1}}}[{3}]))",
     [](Node& node, double value) { node.idle_kwh = value / kJoulesPerKwh; }},
    {"max by (hostname) (max_over_time(timestamp(sum by (hostname) (ceems_compute_units{{{0}}})"
     " > 0)[2d:10m]))",
     [](Node& node, double value) { node.idle_since_ms = tsdb::moment_ms(value); }},
}};

/// A line of a node's charts. `{0}` is the matcher of the node, `{1}` the same after a comma, `{2}`
/// the range of rates.
struct NodeLine {
  std::string_view name, unit, query;
};

constexpr std::array<NodeLine, 5> kNodeLines{{
    {"cpu", "percent",
     "clamp(100 * (1 - sum(rate(ceems_cpu_seconds_total{{mode=~\"idle|iowait\"{1}}}[{2}]))"
     " / sum(ceems_cpu_count{{{0}}})), 0, 100)"},
    {"memory", "percent",
     "100 * (1 - max(ceems_meminfo_MemAvailable_bytes{{{0}}})"
     " / max(ceems_meminfo_MemTotal_bytes{{{0}}}))"},
    {"gpu", "percent", "100 * avg(avg_over_time(ceems_gpu_utilization_ratio{{{0}}}[{2}]))"},
    {"power", "watts",
     "sum(rate(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{2}])"
     " and ceems_node_energy_joules_total{{domain=\"node\"{1}}} offset {2}) or"
     " sum(irate(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{2}])) or"
     " sum(rate(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{2}])"
     " and ceems_node_energy_joules_total{{domain!=\"node\"{1}}} offset {2}) or"
     " sum(irate(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{2}]))"},
    {"units", "units", "max(max_over_time(ceems_compute_units{{{0}}}[{2}]))"},
}};

void set_state(Node& node, std::int64_t now) {
  if (now - node.seen_ms.value_or(0) > kSilentMs) {
    node.state = "silent";
  } else if (node.units.value_or(0) > 0 || node.cpu.value_or(100) >= kIdlePercent) {
    node.state = "busy";
  } else {
    node.state = "idle";
  }
  if (node.state != "idle") {
    node.idle_since_ms.reset();
  }
}

/// The providers that the page prefers, best first; others come before them by name.
int rank_of(std::string_view provider) {
  constexpr std::array<std::string_view, 4> kKnown{"rte", "emaps", "owid", "global"};
  const auto found = std::ranges::find(kKnown, provider);
  return found == kKnown.end() ? 0 : static_cast<int>(found - kKnown.begin()) + 1;
}

}  // namespace

Result<const ClusterTsdb*> Fleet::tsdb_of(const std::string& cluster_id) const {
  const auto found = tsdbs_->find(cluster_id);
  if (found == tsdbs_->end()) {
    return fail(ErrorCode::kNotFound, "no TSDB is configured for cluster {}",
                printable(cluster_id, 40));
  }
  return &found->second;
}

Result<std::vector<Node>> Fleet::ask(const ClusterTsdb& tsdb,
                                     const std::string& cluster_id,
                                     std::int64_t month_ms) const {
  const std::int64_t now = clock_->now_ms();
  const std::string only = matchers(tsdb, cluster_id, "");
  const std::string also = only.empty() ? "" : "," + only;
  const std::int64_t month_s = std::max<std::int64_t>((now - month_ms) / kSecondMs, 600);
  ByHost hosts;
  bool first = true;
  for (const Question& question : kQuestions) {
    const auto answer =
        tsdb.client->query({.query = fmt::format(fmt::runtime(question.query), only, also, "10m",
                                                 fmt::format("{}s", month_s)),
                            .time_ms = now,
                            .timeout = kFleetTimeout,
                            .max_series = kMaxNodes});
    if (!answer) {
      if (first || tsdb::CancelScope::cancelled()) {  // what is kept must not lack the rest
        return fail(answer.error());
      }
      continue;  // the rest of what is known is of use
    }
    for (const tsdb::Series& series : answer->series) {
      const std::string host(series.labels.get("hostname"));
      if (host.empty() || series.samples.empty() || !std::isfinite(series.samples.front().value)) {
        continue;
      }
      auto found = hosts.find(host);
      if (found == hosts.end() && first) {
        found = hosts.emplace(host, Node{.host = host}).first;
      }
      if (found != hosts.end()) {
        question.take(found->second, series.samples.front().value);
      }
    }
    first = false;
  }
  std::vector<Node> nodes;
  for (auto& [host, node] : hosts) {
    set_state(node, now);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<Node>> Fleet::nodes(const std::string& cluster_id, std::int64_t month_ms) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(cluster_id);
    if (found != kept_.end() && now < found->second.until) {
      return found->second.nodes;
    }
  }
  auto nodes = ask(*tsdb, cluster_id, month_ms);
  if (nodes) {
    const MutexLock lock(mutex_);
    kept_[cluster_id] = {.until = now + kFleetKept, .nodes = *nodes};
  }
  return nodes;
}

Result<std::vector<std::string>> Fleet::units_on(const std::string& cluster_id,
                                                 const std::string& host,
                                                 std::int64_t from_ms,
                                                 std::int64_t to_ms) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::string matcher =
      matchers(*tsdb, cluster_id, fmt::format("hostname=\"{}\"", tsdb::quote_text(host)));
  CEEMS_TRY(answer,
            tsdb->client->query(
                {.query = fmt::format(
                     "count by (uuid) (count_over_time(ceems_compute_unit_cpus{{{}}}[{}s]))",
                     matcher, std::max<std::int64_t>((to_ms - from_ms) / kSecondMs, 60)),
                 .time_ms = to_ms,
                 .timeout = kFleetTimeout,
                 .max_series = kMaxIdleUnits}));
  std::set<std::string> ids;
  for (const tsdb::Series& series : answer.series) {
    if (const std::string_view uuid = series.labels.get("uuid"); !uuid.empty()) {
      ids.emplace(uuid);
    }
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

std::span<const std::string_view> Fleet::node_series_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, kNodeLines.size()> names{};
    std::ranges::transform(kNodeLines, names.begin(), &NodeLine::name);
    return names;
  }();
  return kNames;
}

Result<std::vector<Series>> Fleet::node_series(const std::string& cluster_id,
                                               const std::string& host,
                                               const std::vector<std::string>& names,
                                               std::int64_t from_ms,
                                               std::int64_t to_ms) {
  constexpr std::int64_t kMaxPoints = 300;
  constexpr std::int64_t kMinStepS = 60;
  constexpr std::int64_t kMinRangeS = 600;  // two scrapes, also where they are minutes apart
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::int64_t length_s = (to_ms - from_ms) / kSecondMs;
  const std::int64_t step_s = std::max((length_s + kMaxPoints - 2) / (kMaxPoints - 1), kMinStepS);
  const std::string only =
      matchers(*tsdb, cluster_id, fmt::format("hostname=\"{}\"", tsdb::quote_text(host)));
  const std::string range = fmt::format("{}s", std::max(step_s, kMinRangeS));
  std::vector<Series> all;
  all.reserve(kNodeLines.size());
  for (const NodeLine& line : kNodeLines) {
    if (!names.empty() && std::ranges::find(names, line.name) == names.end()) {
      continue;
    }
    CEEMS_TRY(answer, tsdb->client->query_range(
                          fmt::format(fmt::runtime(line.query), only, "," + only, range), from_ms,
                          to_ms, milliseconds(step_s * kSecondMs)));
    Series& series = all.emplace_back(
        Series{.name = std::string(line.name), .unit = std::string(line.unit), .points = {}});
    if (!answer.series.empty()) {
      for (const tsdb::Sample& sample : answer.series.front().samples) {
        if (std::isfinite(sample.value)) {
          series.points.emplace_back(sample.time_ms, sample.value);
        }
      }
    }
  }
  return all;
}

Result<std::vector<GridSeries>> Fleet::grid(std::int64_t from_ms, std::int64_t to_ms) {
  constexpr std::int64_t kMaxPoints = 700;
  constexpr std::int64_t kMinStepMs = 15 * kMinuteMs;
  return ask_grid(
      "max by (provider, country_code) (ceems_emissions_gCo2_kWh)", from_ms, to_ms,
      milliseconds(std::max((to_ms - from_ms) / kMaxPoints / kSecondMs * kSecondMs, kMinStepMs)));
}

Result<std::vector<GridSeries>> Fleet::grid_hours(std::int64_t from_ms, std::int64_t to_ms) {
  return ask_grid("max by (provider, country_code) (avg_over_time(ceems_emissions_gCo2_kWh[1h]))",
                  from_ms, to_ms, milliseconds(kHourMs));
}

Result<std::vector<GridSeries>> Fleet::ask_grid(const std::string& query,
                                                std::int64_t from_ms,
                                                std::int64_t to_ms,
                                                milliseconds step) const {
  std::optional<Error> failure;
  for (const auto& [cluster, tsdb] : *tsdbs_) {
    const auto answer = tsdb.client->query_range(query, from_ms, to_ms, step);
    if (!answer) {
      failure = answer.error();
      continue;
    }
    std::vector<GridSeries> all;
    for (const tsdb::Series& series : answer->series) {
      GridSeries one{.provider = std::string(series.labels.get("provider")),
                     .country = std::string(series.labels.get("country_code"))};
      for (const tsdb::Sample& sample : series.samples) {
        if (std::isfinite(sample.value) && sample.value >= 0) {
          one.points.emplace_back(sample.time_ms, sample.value);
        }
      }
      if (!one.points.empty()) {
        all.push_back(std::move(one));
      }
    }
    if (!all.empty()) {
      std::ranges::sort(all, [](const GridSeries& a, const GridSeries& b) {
        return std::tuple(rank_of(a.provider), a.provider, a.country) <
               std::tuple(rank_of(b.provider), b.provider, b.country);
      });
      return all;
    }
  }
  if (failure) {
    return fail(std::move(*failure));
  }
  return std::vector<GridSeries>{};
}

}  // namespace ceems::api
