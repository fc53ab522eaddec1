#include "api/report/measurements_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kCounters =
    "ceems_compute_unit_(cpus|cpu_user_seconds_total|cpu_system_seconds_total|cpu_used_max|"
    "memory_peak_bytes|memory_total_bytes|memory_fail_count|idle_seconds_total|"
    "energy_joules_total|idle_energy_joules_total|gpu_busy_seconds_total|gpu_sm_seconds_total|"
    "gpu_memory_peak_bytes)|ceems_ebpf_(read|write)_bytes_total";
constexpr std::string_view kOfRuns =
    "ceems_compute_unit_(memory_peak_bytes|cpu_used_max|gpu_busy_seconds_total)";
/// How far back the last values are looked for; the node may not have been scraped at the end.
constexpr milliseconds kLastValues = std::chrono::minutes(10);
constexpr std::size_t kMaxSeries = 200'000;
constexpr std::size_t kMaxHosts = 200;  // whose machines are looked at
/// A limit of memory that is none, as cgroup v1 shows it.
constexpr double kNoLimit = 9e18;

/// Values of one series at the end, of which several targets may have copies.
void keep_largest(Number& number, double value) {
  if (std::isfinite(value)) {
    number = std::max(number.value_or(value), value);
  }
}

/// The nodes of one unit as their series come.
class Collector {
 public:
  void add(const tsdb::Series& series) {
    const tsdb::Labels& labels = series.labels;
    const double value = series.samples.front().value;
    if (!std::isfinite(value) || value < 0) {
      return;
    }
    std::string_view name = labels.get("__name__");
    const bool io = name.starts_with("ceems_ebpf_");
    constexpr std::string_view kPrefix = "ceems_compute_unit_";
    if (!io && !name.starts_with(kPrefix)) {
      return;
    }
    Node& node = node_of(labels);
    if (io) {
      keep_largest(node.io[fmt::format("{}\n{}", name, labels.get("mountpoint"))], value);
      return;
    }
    name.remove_prefix(kPrefix.size());
    if (name.starts_with("gpu_")) {
      add_gpu(node, name, labels, value);
    } else if (name == "energy_joules_total" || name == "idle_energy_joules_total") {
      auto& joules = name.starts_with("idle") ? node.all.idle_joules : node.all.joules;
      double& energy = joules[std::string(labels.get("domain"))];
      energy = std::max(energy, value);
    } else {
      add_number(node, name, value);
    }
  }

  void add_coverage(const tsdb::Series& series, double seconds_per_sample) {
    const auto found = nodes_.find(key_of(series.labels));
    if (found != nodes_.end()) {
      double& covered = found->second.all.covered_seconds;
      covered = std::max(covered, series.samples.front().value * seconds_per_sample);
    }
  }

  /// Facts of a machine.
  void add_machine(const tsdb::Series& series) {
    for (auto& [key, node] : nodes_) {
      if (node.all.node == series.labels.get("hostname")) {
        const bool cpus = series.labels.get("__name__") == "ceems_cpu_count";
        keep_largest(cpus ? node.all.node_cpus : node.all.node_mem, series.samples.front().value);
      }
    }
  }
  void add_gpu_memory(const tsdb::Series& series) {
    for (auto& [key, node] : nodes_) {
      for (auto& [id, gpu] : node.gpus) {
        if (!gpu.uuid.empty() && gpu.uuid == series.labels.get("gpuuuid")) {
          keep_largest(gpu.mem_total, series.samples.front().value);
        }
      }
    }
  }
  /// GPUs whose counters started anew during the run have lost what they had counted.
  void forget_busy(const tsdb::Series& series) {
    const auto found = nodes_.find(key_of(series.labels));
    if (found == nodes_.end() || series.samples.front().value <= 0) {
      return;
    }
    const auto gpu = found->second.gpus.find(gpu_key(series.labels));
    if (gpu != found->second.gpus.end()) {
      gpu->second.busy_seconds.reset();
      gpu->second.sm_seconds.reset();
    }
  }

  [[nodiscard]] std::vector<std::string> hosts() const {
    std::vector<std::string> all;
    for (const auto& [key, node] : nodes_) {
      if (std::ranges::find(all, node.all.node) == all.end() && all.size() < kMaxHosts) {
        all.push_back(node.all.node);
      }
    }
    return all;
  }
  [[nodiscard]] bool has_gpus() const {
    return std::ranges::any_of(nodes_,
                               [](const auto& entry) { return !entry.second.gpus.empty(); });
  }

  [[nodiscard]] std::vector<NodeMeasurements> take() {
    std::vector<NodeMeasurements> all;
    for (auto& [key, node] : nodes_) {
      NodeMeasurements& result = all.emplace_back(std::move(node.all));
      if (node.user || node.system) {
        result.cpu_seconds = node.user.value_or(0) + node.system.value_or(0);
      }
      for (const auto& [name, bytes] : node.io) {
        result.io_bytes = result.io_bytes.value_or(0) + bytes.value_or(0);
      }
      for (auto& [id, gpu] : node.gpus) {
        result.gpus.push_back(std::move(gpu));
      }
      std::ranges::stable_sort(result.gpus, {}, [](const auto& gpu) {
        return std::tuple(parse_int<int>(gpu.index).value_or(1 << 20), gpu.index);
      });
    }
    std::ranges::stable_sort(all, {}, &NodeMeasurements::node);
    return all;
  }

 private:
  struct Node {
    NodeMeasurements all;
    Number user, system;
    std::map<std::string, Number> io;
    std::map<std::string, NodeMeasurements::Gpu> gpus;
  };

  static std::string key_of(const tsdb::Labels& labels) {
    const std::string_view host = labels.get("hostname");
    return fmt::format("{}\n{}\n{}", host.empty() ? labels.get("instance") : host,
                       labels.get("cgrouphostname"), labels.get("manager"));
  }
  static std::string gpu_key(const tsdb::Labels& labels) {
    return fmt::format("{}\n{}\n{}", labels.get("gpuuuid"), labels.get("gpuiid"),
                       labels.get("index"));
  }

  Node& node_of(const tsdb::Labels& labels) {
    Node& node = nodes_[key_of(labels)];
    if (node.all.node.empty()) {
      const std::string_view host = labels.get("hostname");
      node.all.node = host.empty() ? labels.get("instance") : host;
    }
    return node;
  }

  static void add_gpu(Node& node, std::string_view name, const tsdb::Labels& labels, double value) {
    auto& gpu = node.gpus[gpu_key(labels)];
    gpu.index = labels.get("index");
    gpu.uuid = labels.get("gpuuuid");
    keep_largest(name == "gpu_busy_seconds_total" ? gpu.busy_seconds
                 : name == "gpu_sm_seconds_total" ? gpu.sm_seconds
                                                  : gpu.mem_peak,
                 value);
  }

  static void add_number(Node& node, std::string_view name, double value) {
    if (name == "memory_total_bytes" && value >= kNoLimit) {
      return;
    }
    for (const auto& [metric, number] : {std::pair(std::string_view("cpus"), &node.all.cpus),
                                         {"cpu_user_seconds_total", &node.user},
                                         {"cpu_system_seconds_total", &node.system},
                                         {"cpu_used_max", &node.all.cpu_used_max},
                                         {"memory_peak_bytes", &node.all.mem_peak},
                                         {"memory_total_bytes", &node.all.mem_total},
                                         {"memory_fail_count", &node.all.mem_fail_count},
                                         {"idle_seconds_total", &node.all.idle_seconds}}) {
      if (name == metric) {
        keep_largest(*number, value);
      }
    }
  }

  std::map<std::string, Node> nodes_;
};

/// The queries about units of one cluster.
class Asker {
 public:
  Asker(const ClusterTsdb& tsdb, std::string_view cluster_id)
      : client_(*tsdb.client), settings_(tsdb.client->settings()) {
    if (!tsdb.cluster_label.empty()) {
      cluster_ = fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
    }
  }

  Result<UnitMeasurements> measure(const UnitRun& run) {
    const milliseconds life(std::max<std::int64_t>(run.until_ms - run.started_ms, 1000));
    const milliseconds back = std::min(life, std::max(kLastValues, 5 * settings_.scrape_interval));
    const std::string unit = fmt::format("uuid=\"{}\"{}", tsdb::quote_text(run.uuid), cluster_);
    Collector collector;
    const auto values =
        ask(fmt::format("last_over_time({{__name__=~\"{}\",{}}}[{}])", kCounters, unit,
                        tsdb::duration_text(back)),
            run.until_ms, [&](const tsdb::Series& series) { collector.add(series); });
    if (!values) {
      return fail(values.error());
    }
    const milliseconds step = step_for(life);
    const double interval = std::chrono::duration<double>(step).count();
    const std::string all =
        step > settings_.scrape_interval
            ? fmt::format("[{}:{}]", tsdb::duration_text(life), tsdb::duration_text(step))
            : fmt::format("[{}]", tsdb::duration_text(life));
    const auto coverage = ask(
        fmt::format("count_over_time(ceems_compute_unit_cpus{{{}}}{})", unit, all), run.until_ms,
        [&](const tsdb::Series& series) { collector.add_coverage(series, interval); });
    if (!coverage) {
      return fail(coverage.error());
    }
    if (collector.has_gpus()) {
      const auto resets =
          ask(fmt::format("resets(ceems_compute_unit_gpu_busy_seconds_total{{{}}}{})", unit, all),
              run.until_ms, [&](const tsdb::Series& series) { collector.forget_busy(series); });
      if (!resets) {
        return fail(resets.error());
      }
    }
    UnitMeasurements result;
    if (const auto hosts = collector.hosts(); !hosts.empty()) {
      if (auto done = ask_machines(hosts, run, collector, result); !done) {
        return fail(std::move(done).error());
      }
    }
    result.nodes = collector.take();
    return result;
  }

  Result<std::vector<RunMeasurements>> measure_runs(const std::vector<UnitRun>& runs) {
    std::vector<RunMeasurements> all(runs.size());
    std::string query;
    for (const UnitRun& run : runs) {
      // The end of each run is in its own selector: one query reads all.
      const milliseconds back(
          std::clamp<std::int64_t>(run.until_ms - run.started_ms, 1000,
                                   std::max(kLastValues, 5 * settings_.scrape_interval).count()));
      query += fmt::format("{}last_over_time({{__name__=~\"{}\",uuid=\"{}\"{}}}[{}] @ {})",
                           query.empty() ? "" : " or ", kOfRuns, tsdb::quote_text(run.uuid),
                           cluster_, tsdb::duration_text(back), tsdb::seconds_text(run.until_ms));
    }
    if (query.empty()) {
      return all;
    }
    const auto answer = ask(query, runs.front().until_ms, [&](const tsdb::Series& series) {
      const auto run = std::ranges::find(runs, series.labels.get("uuid"), &UnitRun::uuid);
      if (run != runs.end()) {
        add(series, all[static_cast<std::size_t>(run - runs.begin())]);
      }
    });
    if (!answer) {
      return fail(answer.error());
    }
    return all;
  }

 private:
  /// Of long runs only some times are looked at, or the TSDB would refuse the number of samples.
  [[nodiscard]] milliseconds step_for(milliseconds life) const {
    constexpr std::int64_t kMaxPoints = 1500;
    const milliseconds step = std::chrono::ceil<std::chrono::seconds>(life / kMaxPoints);
    return std::max(step, settings_.scrape_interval);
  }

  template <typename Each>
  Result<> ask(std::string query, std::int64_t time_ms, const Each& each) {
    const auto answer = client_.query({.query = std::move(query),
                                       .time_ms = time_ms,
                                       .lookback = milliseconds(0),
                                       .timeout = settings_.query_timeout,
                                       .complete = true,
                                       .max_series = kMaxSeries});
    if (!answer) {
      return fail(answer.error());
    }
    for (const tsdb::Series& series : answer->series) {
      if (!series.samples.empty()) {
        each(series);
      }
    }
    return {};
  }

  Result<> ask_machines(const std::vector<std::string>& hosts,
                        const UnitRun& run,
                        Collector& collector,
                        UnitMeasurements& result) {
    const std::string on =
        fmt::format("hostname=~\"{}\"{}", tsdb::quote_text(tsdb::exact_regex(hosts)), cluster_);
    constexpr std::array<std::string_view, 3> kMethods{"measured", "derived", "modelled"};
    std::size_t weakest = 0;
    bool known = false;
    auto done =
        ask(fmt::format("{{__name__=~\"ceems_cpu_count|ceems_meminfo_MemTotal_bytes|"
                        "ceems_gpu_memory_total_bytes\",{0}}} or "
                        "ceems_energy_source_info{{domain=\"node\",{0}}}",
                        on),
            run.ended_ms, [&](const tsdb::Series& series) {
              const std::string_view name = series.labels.get("__name__");
              if (name == "ceems_energy_source_info") {
                const auto* const method = std::ranges::find(kMethods, series.labels.get("method"));
                if (method != kMethods.end()) {
                  known = true;
                  weakest = std::max(weakest, static_cast<std::size_t>(method - kMethods.begin()));
                }
              } else if (name == "ceems_gpu_memory_total_bytes") {
                collector.add_gpu_memory(series);
              } else {
                collector.add_machine(series);
              }
            });
    if (known) {
      result.method = kMethods.at(weakest);
    }
    return done;
  }

  static void add(const tsdb::Series& series, RunMeasurements& run) {
    const double value = series.samples.front().value;
    if (!std::isfinite(value) || value < 0) {
      return;
    }
    const std::string_view name = series.labels.get("__name__");
    if (name.ends_with("memory_peak_bytes")) {
      keep_largest(run.mem_peak, value);
    } else if (name.ends_with("cpu_used_max")) {
      run.cpu_used_max = run.cpu_used_max.value_or(0) + value;
    } else {
      run.gpu_busy_seconds = run.gpu_busy_seconds.value_or(0) + value;
      ++run.gpus;
      run.gpus_unused += value == 0 ? 1 : 0;
    }
  }

  tsdb::Client& client_;
  tsdb::Settings settings_;
  std::string cluster_;
};

std::unexpected<Error> no_tsdb(const std::string& cluster_id) {
  return fail(ErrorCode::kNotFound, "no TSDB is configured for cluster {}",
              printable(cluster_id, 40));
}

}  // namespace

Result<UnitMeasurements> TsdbMeasurementSource::measure(const std::string& cluster_id,
                                                        const UnitRun& run) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id)
                               : Asker(found->second, cluster_id).measure(run);
}

Result<std::vector<RunMeasurements>> TsdbMeasurementSource::measure_runs(
    const std::string& cluster_id, const std::vector<UnitRun>& runs) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id)
                               : Asker(found->second, cluster_id).measure_runs(runs);
}

}  // namespace ceems::api
