#include "api/tsdb/measurements_tsdb.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "api/tsdb/marks_tsdb.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kCounters =
    "ceems_compute_unit_(cpus|cpu_user_seconds_total|cpu_system_seconds_total|cpu_used_max|"
    "memory_peak_bytes|memory_total_bytes|memory_fail_count|idle_seconds_total|"
    "(|idle_|unused_idle_)energy_joules_total|gpu_(busy|sm)_seconds_total|gpu_memory_peak_bytes)|"
    "ceems_ebpf_(read|write)_bytes_total";
constexpr std::string_view kOfRuns =
    "ceems_compute_unit_(memory_peak_bytes|cpu_used_max|gpu_busy_seconds_total)";
/// How far back the last values are looked for; the node may not have been scraped at the end.
constexpr milliseconds kLastValues = std::chrono::minutes(10);
constexpr std::size_t kMaxSeries = 200'000;
constexpr std::size_t kMaxHosts = 200;  // of a unit, whose machines are looked at
constexpr std::size_t kMaxHostsOfGroup = 2000;
constexpr std::size_t kMaxGroup = 50;  // units in a query
/// A limit of memory that is none, as cgroup v1 shows it.
constexpr double kNoLimit = 9e18;
/// Runs that are shorter have fewer samples than parts.
constexpr std::int64_t kShortestStripMs = 300'000;

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
    } else if (name.ends_with("energy_joules_total")) {
      auto& joules = name.starts_with("unused") ? node.all.not_used_joules
                     : name.starts_with("idle") ? node.all.idle_joules
                                                : node.all.joules;
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

  /// What query_of_placement() reads.
  void add_placement(const tsdb::Series& series) {
    const auto found = nodes_.find(key_of(series.labels));
    const double value = series.samples.front().value;
    if (found == nodes_.end() || value < 0) {
      return;
    }
    NodeMeasurements& node = found->second.all;
    const std::string_view of = series.labels.get("of");
    keep_largest(of == "busy_threads"   ? node.busy_threads
                 : of == "gpu_numa_far" ? node.far_gpus
                                        : node.thread_cpus,
                 value);
  }

  /// The greatest value in the run. The gauge of a node begins anew with its exporter. A VM that
  /// was moved had its peak on another node, perhaps.
  void add_peak(const tsdb::Series& series, bool memory) {
    const auto found = nodes_.find(key_of(series.labels));
    const auto node = found == nodes_.end() && nodes_.size() == 1 ? nodes_.begin() : found;
    const double value = series.samples.front().value;
    if (node != nodes_.end() && value >= 0) {
      keep_largest(memory ? node->second.all.mem_peak : node->second.all.cpu_used_max, value);
    }
  }

  /// A fact of a machine, which need not be one of the unit's.
  void add_fact(const tsdb::Series& series) {
    const std::string_view name = series.labels.get("__name__");
    if (name == "ceems_energy_source_info") {
      add_method(series.labels);
    } else if (name == "ceems_gpu_memory_total_bytes") {
      add_gpu_memory(series);
    } else {
      add_machine(series, name == "ceems_cpu_count");
    }
  }
  /// The weakest of its machines; empty: not known.
  [[nodiscard]] std::string method() const {
    return weakest_ ? std::string(kMethods.at(*weakest_)) : std::string();
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

  void add_machine(const tsdb::Series& series, bool cpus) {
    for (auto& [key, node] : nodes_) {
      if (node.all.node == series.labels.get("hostname")) {
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
  void add_method(const tsdb::Labels& labels) {
    const auto* const method = std::ranges::find(kMethods, labels.get("method"));
    const std::string_view host = labels.get("hostname");
    const bool ours = std::ranges::any_of(nodes_, [host](const auto& entry) {
      return host.empty() || entry.second.all.node == host;
    });
    if (ours && method != kMethods.end()) {
      const auto place = static_cast<std::size_t>(method - kMethods.begin());
      weakest_ = std::max(weakest_.value_or(place), place);
    }
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

  static constexpr std::array<std::string_view, 3> kMethods{"measured", "derived", "modelled"};
  std::map<std::string, Node> nodes_;
  std::optional<std::size_t> weakest_;  ///< in kMethods
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

  /// In groups, for each of which all units are in one query.
  Result<std::vector<UnitMeasurements>> measure_all(const std::vector<UnitRun>& runs) {
    std::vector<UnitMeasurements> all(runs.size());
    std::vector<bool> done(runs.size());
    for (std::size_t left = runs.size(); left > 0;) {
      std::vector<Part> group;
      std::set<std::string_view> ids;  // two runs of one unit have the same labels
      for (std::size_t i = 0; i < runs.size() && group.size() < kMaxGroup; ++i) {
        if (!done[i] && ids.insert(runs[i].uuid).second) {
          done[i] = true;
          group.push_back({.run = &runs[i], .result = &all[i], .collector = {}});
        }
      }
      left -= group.size();
      CEEMS_TRY(measure_group(group));
    }
    return all;
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
    CEEMS_TRY(ask(query, runs.front().until_ms, [&](const tsdb::Series& series) {
      const auto run = std::ranges::find(runs, series.labels.get("uuid"), &UnitRun::uuid);
      if (run != runs.end()) {
        add(series, all[static_cast<std::size_t>(run - runs.begin())]);
      }
    }));
    return all;
  }

  Result<store::Strip> strip(const UnitRun& run) {
    constexpr auto kParts = std::int64_t{store::kStripParts};
    store::Strip strip;
    const std::int64_t life = run.ended_ms - run.started_ms;
    if (life < kShortestStripMs) {
      return strip;
    }
    const milliseconds step(life / kParts);
    // Long parts are looked at some times only, or the TSDB would read each sample of the run.
    constexpr int kLooks = 12;
    const milliseconds look = std::chrono::floor<std::chrono::seconds>(step / kLooks);
    const std::string range = fmt::format(
        "[{}{}]", tsdb::duration_text(std::max(step, settings_.rate_interval())),
        look > settings_.scrape_interval ? ":" + tsdb::duration_text(look) : std::string());
    const std::string query = fmt::format(
        "label_replace((sum(rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}{1})) + "
        "sum(rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}{1}))) / "
        "sum(ceems_compute_unit_cpus{{{0}}}), \"of\", \"cpu\", \"\", \"\") or "
        "label_replace(avg(rate(ceems_compute_unit_gpu_busy_seconds_total{{{0}}}{1})), "
        "\"of\", \"gpu\", \"\", \"\")",
        selector_of(run), range);
    CEEMS_TRY(answer, client_.query_range(query, run.started_ms + step.count(),
                                          run.started_ms + kParts * step.count(), step));
    for (const tsdb::Series& series : answer.series) {
      store::Strip::Line& line = series.labels.get("of") == "gpu" ? strip.gpu : strip.cpu;
      for (const tsdb::Sample& sample : series.samples) {
        const std::int64_t part =
            (sample.time_ms - run.started_ms + step.count() / 2) / step.count() - 1;
        if (part >= 0 && part < kParts) {
          line.at(static_cast<std::size_t>(part)) = sample.value;
        }
      }
    }
    return strip;
  }

 private:
  /// A run and its measurements.
  struct Part {
    const UnitRun* run = nullptr;
    UnitMeasurements* result = nullptr;
    Collector collector;
  };

  /// The query of each part, one after the other: `make` appends the selector of a run, which ends
  /// where a "@" may follow.
  template <typename Make>
  static std::string query_of(const std::vector<Part>& group, const Make& make) {
    std::string query;
    for (const Part& part : group) {
      query += query.empty() ? "" : " or ";
      make(query, *part.run);
    }
    return query;
  }
  /// Reads it, and passes each series to the collector of its unit.
  template <typename Each>
  Result<> ask_group(std::vector<Part>& group, std::string query, const Each& each) {
    const auto last =
        std::ranges::max_element(group, {}, [](const Part& part) { return part.run->until_ms; });
    return ask(std::move(query), last->run->until_ms, [&](const tsdb::Series& series) {
      const std::string_view uuid = series.labels.get("uuid");
      const auto part =
          group.size() == 1 ? group.begin() : std::ranges::find_if(group, [uuid](const Part& one) {
            return one.run->uuid == uuid;
          });
      if (part != group.end()) {
        each(*part, series);
      }
    });
  }

  [[nodiscard]] std::string selector_of(const UnitRun& run) const {
    return fmt::format("uuid=\"{}\"{}", tsdb::quote_text(run.uuid), cluster_);
  }
  static milliseconds life_of(const UnitRun& run) {
    return milliseconds(std::max<std::int64_t>(run.until_ms - run.started_ms, 1000));
  }
  /// The whole life, in steps if it is long.
  [[nodiscard]] std::string life_range(const UnitRun& run) const {
    const milliseconds life = life_of(run);
    const milliseconds step = step_for(life);
    return step > settings_.scrape_interval
               ? fmt::format("[{}:{}]", tsdb::duration_text(life), tsdb::duration_text(step))
               : fmt::format("[{}]", tsdb::duration_text(life));
  }

  /// The gauges of the collector `placement`, to be appended to another query. A median, because a
  /// few minutes of another phase, such as a compilation, say little about the run. The label `of`
  /// tells them apart.
  [[nodiscard]] std::string query_of_placement(const UnitRun& run, const std::string& at) const {
    std::string query;
    for (const auto& [function, stem] : {std::pair("quantile_over_time(0.5, ", "busy_threads"),
                                         {"quantile_over_time(0.5, ", "gpu_numa_far"},
                                         {"max_over_time(", "cpu_affinity_size"}}) {
      query += fmt::format(
          " or label_replace({}ceems_compute_unit_{}{{{}}}{}{}), \"of\", \"{}\", \"\", \"\")",
          function, stem, selector_of(run), life_range(run), at, stem);
    }
    return query;
  }

  Result<> measure_group(std::vector<Part>& group) {
    // In a query of several runs, each is looked at when it ended.
    const auto at = [&group](const UnitRun& run) {
      return group.size() == 1 ? std::string() : " @ " + tsdb::seconds_text(run.until_ms);
    };
    auto done = ask_group(
        group,
        query_of(group,
                 [&](std::string& query, const UnitRun& run) {
                   const milliseconds back =
                       std::min(life_of(run), std::max(kLastValues, 5 * settings_.scrape_interval));
                   query += fmt::format("last_over_time({{__name__=~\"{}\",{}}}[{}]{})", kCounters,
                                        selector_of(run), tsdb::duration_text(back), at(run));
                   query += fmt::format(
                       " or count by (uuid) (last_over_time({{__name__=~\"{}\",{}}}{}{}))",
                       names_of_marks(), selector_of(run), life_range(run), at(run));
                 }),
        [](Part& part, const tsdb::Series& series) {
          part.result->marked |= series.labels.get("__name__").empty();
          part.collector.add(series);
        });
    if (done) {
      done = ask_group(
          group,
          query_of(group,
                   [&](std::string& query, const UnitRun& run) {
                     query += fmt::format("count_over_time(ceems_compute_unit_cpus{{{}}}{}{})",
                                          selector_of(run), life_range(run), at(run));
                     query += query_of_placement(run, at(run));
                   }),
          [this](Part& part, const tsdb::Series& series) {
            if (!series.labels.get("of").empty()) {
              part.collector.add_placement(series);
              return;
            }
            const milliseconds step = step_for(life_of(*part.run));
            part.collector.add_coverage(series, std::chrono::duration<double>(step).count());
          });
    }
    for (const bool memory : {true, false}) {
      if (done) {
        done = ask_peaks(group, memory);
      }
    }
    if (done) {
      done = ask_resets(group);
    }
    if (done) {
      done = ask_machines(group);
    }
    for (Part& part : group) {
      part.result->method = part.collector.method();
      part.result->nodes = part.collector.take();
    }
    return done;
  }

  /// Asks only of the parts that `wanted` picks. `query` makes the query of a run, given what says
  /// when it is looked at.
  template <typename Wanted, typename Query, typename Take>
  Result<> ask_some(std::vector<Part>& group,
                    const Wanted& wanted,
                    const Query& query,
                    const Take& take) {
    std::vector<Part> some;
    std::vector<Part*> of;
    for (Part& part : group) {
      if (wanted(part)) {
        some.push_back({.run = part.run, .result = nullptr, .collector = {}});
        of.push_back(&part);
      }
    }
    if (some.empty()) {
      return {};
    }
    return ask_group(some,
                     query_of(some,
                              [&](std::string& text, const UnitRun& run) {
                                text += query(run, some.size() == 1
                                                       ? std::string()
                                                       : " @ " + tsdb::seconds_text(run.until_ms));
                              }),
                     [&](const Part& part, const tsdb::Series& series) {
                       take(of[static_cast<std::size_t>(&part - some.data())]->collector, series);
                     });
  }

  /// Peaks of runs that are long enough for an exporter to have been restarted in them.
  Result<> ask_peaks(std::vector<Part>& group, bool memory) {
    static constexpr milliseconds kLong = std::chrono::hours(24);
    return ask_some(
        group, [](const Part& part) { return life_of(*part.run) >= kLong; },
        [&](const UnitRun& run, const std::string& at) {
          return fmt::format("max_over_time(ceems_compute_unit_{}{{{}}}{}{})",
                             memory ? "memory_peak_bytes" : "cpu_used_max", selector_of(run),
                             life_range(run), at);
        },
        [memory](auto& collector, const tsdb::Series& series) {
          collector.add_peak(series, memory);
        });
  }

  Result<> ask_resets(std::vector<Part>& group) {
    return ask_some(
        group, [](const Part& part) { return part.collector.has_gpus(); },
        [&](const UnitRun& run, const std::string& at) {
          return fmt::format("resets(ceems_compute_unit_gpu_busy_seconds_total{{{}}}{}{})",
                             selector_of(run), life_range(run), at);
        },
        [](auto& collector, const tsdb::Series& series) { collector.forget_busy(series); });
  }

  /// Of long runs only some times are looked at, or the TSDB would refuse the number of samples.
  [[nodiscard]] milliseconds step_for(milliseconds life) const {
    constexpr std::int64_t kMaxPoints = 1500;
    const milliseconds step = std::chrono::ceil<std::chrono::seconds>(life / kMaxPoints);
    return std::max(step, settings_.scrape_interval);
  }

  template <typename Each>
  Result<> ask(std::string query, std::int64_t time_ms, const Each& each) {
    CEEMS_TRY(answer, client_.query({.query = std::move(query),
                                     .time_ms = time_ms,
                                     .lookback = milliseconds(0),
                                     .timeout = settings_.query_timeout,
                                     .complete = true,
                                     .max_series = kMaxSeries}));
    for (const tsdb::Series& series : answer.series) {
      if (!series.samples.empty()) {
        each(series);
      }
    }
    return {};
  }

  /// What the machines are that the units ran on, as of the last end.
  Result<> ask_machines(std::vector<Part>& group) {
    std::set<std::string> hosts;
    std::int64_t last_ms = 0;
    for (const Part& part : group) {
      for (std::string& host : part.collector.hosts()) {
        if (hosts.size() < kMaxHostsOfGroup) {
          hosts.insert(std::move(host));
        }
      }
      last_ms = std::max(last_ms, part.run->ended_ms);
    }
    if (hosts.empty()) {
      return {};
    }
    const std::string on =
        fmt::format("hostname=~\"{}\"{}",
                    tsdb::quote_text(tsdb::exact_regex({hosts.begin(), hosts.end()})), cluster_);
    return ask(fmt::format("{{__name__=~\"ceems_cpu_count|ceems_meminfo_MemTotal_bytes|"
                           "ceems_gpu_memory_total_bytes\",{0}}} or "
                           "ceems_energy_source_info{{domain=\"node\",{0}}}",
                           on),
               last_ms, [&group](const tsdb::Series& series) {
                 for (Part& part : group) {
                   part.collector.add_fact(series);
                 }
               });
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
  if (found == tsdbs_.end()) {
    return no_tsdb(cluster_id);
  }
  auto all = Asker(found->second, cluster_id).measure_all({run});
  return all ? Result<UnitMeasurements>(std::move(all->front())) : fail(std::move(all).error());
}

Result<std::vector<UnitMeasurements>> TsdbMeasurementSource::measure_all(
    const std::string& cluster_id, const std::vector<UnitRun>& runs) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id)
                               : Asker(found->second, cluster_id).measure_all(runs);
}

Result<std::vector<RunMeasurements>> TsdbMeasurementSource::measure_runs(
    const std::string& cluster_id, const std::vector<UnitRun>& runs) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id)
                               : Asker(found->second, cluster_id).measure_runs(runs);
}

Result<store::Strip> TsdbMeasurementSource::strip(const std::string& cluster_id,
                                                  const UnitRun& run) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id) : Asker(found->second, cluster_id).strip(run);
}

Result<std::vector<UnitMarks>> TsdbMeasurementSource::marks(const std::string& cluster_id,
                                                            const std::vector<UnitRun>& runs) {
  const auto found = tsdbs_.find(cluster_id);
  return found == tsdbs_.end() ? no_tsdb(cluster_id) : read_marks(found->second, cluster_id, runs);
}

}  // namespace ceems::api
