// What all nodes did over the last day.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/fleet.h"
#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxDaySeries = 100'000;
constexpr double kIdleBelow = 5;  // percent of the CPUs

/// `{0}` is the matcher of the cluster, `{1}` the same after a comma, `{2}` the period.
constexpr std::string_view kCpu =
    "clamp(100 * (1 - sum by (hostname) (rate(ceems_cpu_seconds_total{{mode=~\"idle|iowait\"{1}}}"
    "[{2}])) / sum by (hostname) (max_over_time(ceems_cpu_count{{{0}}}[{2}]))), 0, 100)";
constexpr std::string_view kUnits =
    "max by (hostname) (max_over_time(ceems_compute_units{{{0}}}[{2}]))";
constexpr std::string_view kMemory =
    "100 * (1 - max by (hostname) (avg_over_time(ceems_meminfo_MemAvailable_bytes{{{0}}}[{2}]))"
    " / max by (hostname) (max_over_time(ceems_meminfo_MemTotal_bytes{{{0}}}[{2}])))";
constexpr std::string_view kPower =
    "sum by (hostname) (rate(ceems_node_energy_joules_total{{domain=\"node\"{1}}}[{2}])) or"
    " sum by (hostname) (rate(ceems_node_energy_joules_total{{domain!=\"node\"{1}}}[{2}]))";
constexpr std::string_view kGpus =
    "100 * max by (hostname, index, gpuiid)"
    " (avg_over_time(ceems_gpu_utilization_ratio{{{0}}}[{2}]))";

constexpr std::array<std::string_view, 5> kMetrics{"power", "cpu", "memory", "gpu", "state"};

/// The values of a series by hour.
HourValues by_hour(const tsdb::Series& series, std::int64_t first_ms) {
  HourValues values(kFleetHours);
  for (const tsdb::Sample& sample : series.samples) {
    const std::int64_t hour = (sample.time_ms - first_ms + kHourMs / 2) / kHourMs;
    if (hour >= 0 && std::cmp_less(hour, kFleetHours) && std::isfinite(sample.value)) {
      values[static_cast<std::size_t>(hour)] = sample.value;
    }
  }
  return values;
}

/// The mean of the GPUs that are known.
HourValues mean_of(const std::vector<GpuDay>& gpus) {
  HourValues means(kFleetHours);
  for (std::size_t hour = 0; hour < kFleetHours; ++hour) {
    double sum = 0;
    int count = 0;
    for (const GpuDay& gpu : gpus) {
      sum += gpu.values[hour].value_or(0);
      count += gpu.values[hour] ? 1 : 0;
    }
    if (count > 0) {
      means[hour] = sum / count;
    }
  }
  return means;
}

void sort_gpus(std::vector<GpuDay>& gpus) {
  const auto number = [](const GpuDay& gpu) {
    return parse_int<std::int64_t>(gpu.index).value_or(1'000'000);
  };
  std::ranges::sort(gpus, [&number](const GpuDay& a, const GpuDay& b) {
    return std::tuple(number(a), std::string_view(a.index), std::string_view(a.instance)) <
           std::tuple(number(b), std::string_view(b.index), std::string_view(b.instance));
  });
}

/// A letter for each hour, as Fleet::nodes() calls the states.
std::string states_of(const HourValues& cpu, const HourValues& units) {
  std::string states(kFleetHours, 's');
  for (std::size_t hour = 0; hour < kFleetHours; ++hour) {
    const auto used = hour < cpu.size() ? cpu[hour] : std::nullopt;
    const auto ran = hour < units.size() ? units[hour] : std::nullopt;
    if (used || ran) {
      states[hour] = ran.value_or(0) > 0 || used.value_or(100) >= kIdleBelow ? 'b' : 'i';
    }
  }
  return states;
}

}  // namespace

std::span<const std::string_view> Fleet::day_metrics() {
  return kMetrics;
}

Result<std::shared_ptr<const FleetDay>> Fleet::day(const std::string& cluster_id,
                                                   std::string_view metric,
                                                   std::int64_t now_ms) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const std::int64_t end_ms = now_ms / kMinuteMs * kMinuteMs;
  const std::string key = fmt::format("{} {}", metric, cluster_id);
  {
    const MutexLock lock(mutex_);
    const auto found = days_.find(key);
    if (found != days_.end() && found->second.minute_ms == end_ms) {
      return found->second.day;
    }
  }
  const std::int64_t first_ms = end_ms - static_cast<std::int64_t>(kFleetHours - 1) * kHourMs;
  const std::string only =
      tsdb->cluster_label.empty()
          ? std::string()
          : fmt::format("{}=\"{}\"", tsdb->cluster_label, tsdb::quote_text(cluster_id));
  const std::string also = only.empty() ? "" : "," + only;
  const auto ask = [&](std::string_view query) -> Result<std::vector<tsdb::Series>> {
    CEEMS_TRY(answer, tsdb->client->query_range(fmt::format(fmt::runtime(query), only, also, "1h"),
                                                first_ms, end_ms, milliseconds(kHourMs)));
    if (answer.series.size() > kMaxDaySeries) {
      return fail(ErrorCode::kUnavailable, "the TSDB has more than {} series", kMaxDaySeries);
    }
    return std::move(answer.series);
  };
  using ByName = std::map<std::string, HourValues>;
  const auto ask_by_node = [&](std::string_view query) -> Result<ByName> {
    CEEMS_TRY(series, ask(query));
    ByName values;
    for (const tsdb::Series& one : series) {
      values[std::string(one.labels.get("hostname"))] = by_hour(one, first_ms);
    }
    return values;
  };
  CEEMS_TRY(cpu, ask_by_node(kCpu));
  CEEMS_TRY(units, ask_by_node(kUnits));
  auto day = std::make_shared<FleetDay>();
  for (std::size_t i = 0; i < kFleetHours; ++i) {
    day->ends_ms.push_back(first_ms + static_cast<std::int64_t>(i) * kHourMs);
  }
  if (metric == "power" || metric == "memory") {
    CEEMS_TRY(values, ask_by_node(metric == "power" ? kPower : kMemory));
    for (auto& [host, hours] : values) {
      day->nodes[host].values = std::move(hours);
    }
  } else if (metric == "gpu") {
    CEEMS_TRY(series, ask(kGpus));
    CEEMS_TRY(now,
              tsdb->client->query({.query = fmt::format(fmt::runtime(kGpus), only, also, "10m"),
                                   .time_ms = end_ms,
                                   .max_series = kMaxDaySeries}));
    std::map<std::array<std::string_view, 3>, double> last;
    const auto name_of = [](const tsdb::Labels& labels) {
      return std::array{labels.get("hostname"), labels.get("index"), labels.get("gpuiid")};
    };
    for (const tsdb::Series& one : now.series) {
      if (!one.samples.empty() && std::isfinite(one.samples.front().value)) {
        last[name_of(one.labels)] = one.samples.front().value;
      }
    }
    for (const tsdb::Series& one : series) {
      const auto name = name_of(one.labels);
      const auto found = last.find(name);
      day->nodes[std::string(name[0])].gpus.push_back(
          {.index = std::string(name[1]),
           .instance = std::string(name[2]),
           .now = found == last.end() ? std::nullopt : std::optional(found->second),
           .values = by_hour(one, first_ms)});
    }
    for (auto& [host, node] : day->nodes) {
      sort_gpus(node.gpus);
      node.values = mean_of(node.gpus);
    }
  }
  for (const ByName* known : {&cpu, &units}) {
    for (const auto& [host, hours] : *known) {
      NodeDay& node = day->nodes[host];
      if (node.states.empty()) {
        node.states = states_of(cpu[host], units[host]);
      }
    }
  }
  if (metric == "cpu") {
    for (auto& [host, hours] : cpu) {
      day->nodes[host].values = std::move(hours);
    }
  }
  const MutexLock lock(mutex_);
  days_[key] = {.minute_ms = end_ms, .day = day};
  return std::shared_ptr<const FleetDay>(std::move(day));
}

}  // namespace ceems::api
