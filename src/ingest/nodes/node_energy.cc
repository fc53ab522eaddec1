#include "ingest/nodes/node_energy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "ingest/updater/counter.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecondMs = 1000;
constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
constexpr std::int64_t kLookBackMs = 15 * kMinuteMs;
constexpr milliseconds kTimeout = std::chrono::seconds(60);
constexpr double kUnitsOfJoule = 1e9 / kJoulesPerKwh;  // 1e-9 kWh
constexpr std::size_t kMaxSeries = 200'000;

constexpr std::string_view kNodeEnergy = "ceems_node_energy_joules_total";
constexpr std::string_view kSystemEnergy = "ceems_system_energy_joules_total";
constexpr std::string_view kUnallocatedEnergy = "ceems_unallocated_energy_joules_total";
constexpr std::string_view kIdleEnergy = "ceems_compute_unit_idle_energy_joules_total";

/// A counter of one host: the metric and, of the node's own, its source; of a unit's, its id.
struct Origin {
  std::string host, metric, part;
  auto operator<=>(const Origin&) const = default;
};
using Origins = std::map<Origin, std::vector<CounterSeries>>;

struct Host {
  double energy = 0, idle = 0, system = 0, unallocated = 0, modelled = 0;  // joules
  std::int64_t first_ms = 0;  ///< of the first reading of the node, also before the window
  std::int64_t covered_ms = 0;
};

std::set<std::int64_t> times_of(const std::vector<CounterSeries>& series) {
  std::set<std::int64_t> times;
  for (const CounterSeries& one : series) {
    for (const tsdb::Sample& sample : one.samples) {
      times.insert(sample.time_ms);
    }
  }
  return times;
}

/// What the counter counted in the window, without what it did in long pauses.
double known_increase(std::vector<CounterSeries> series, const NodeWindow& window) {
  std::set<std::int64_t> after_pauses;
  std::optional<std::int64_t> last;
  for (const std::int64_t time : times_of(series)) {
    if (last && time - *last > kLookBackMs) {
      after_pauses.insert(time);
    }
    last = time;
  }
  double sum = 0;
  for (const Increment& one :
       origin_increments(std::move(series), window.start_ms, window.end_ms)) {
    sum += after_pauses.contains(one.time_ms) ? 0 : one.value;
  }
  return sum;
}

class Reading {
 public:
  Reading(const NodeSource& source, const NodeWindow& window) : source_(source), window_(window) {}

  Result<store::NodeUpdate> read() {
    for (const auto step : {&Reading::read_facts, &Reading::read_nodes, &Reading::read_units}) {
      CEEMS_TRY((this->*step)());
    }
    return update();
  }

 private:
  [[nodiscard]] std::string selector(std::string matchers) const {
    if (!source_.cluster_label.empty()) {
      matchers +=
          fmt::format(",{}=\"{}\"", source_.cluster_label, tsdb::quote_text(source_.cluster_id));
    }
    return fmt::format("{{{}}}[{}s]", matchers,
                       (window_.end_ms - window_.start_ms + kLookBackMs) / kSecondMs);
  }

  [[nodiscard]] tsdb::Client::InstantQuery at_end(std::string query) const {
    return {.query = std::move(query),
            .time_ms = window_.end_ms,
            .timeout = kTimeout,
            .complete = true,
            .max_series = kMaxSeries};
  }

  /// What the nodes are, and whose energy has a meter.
  Result<> read_facts() {
    CEEMS_TRY(
        answer,
        source_.client->query(at_end(fmt::format(
            "last_over_time({})",
            selector("__name__=~\"ceems_node_info|ceems_cpu_count|ceems_meminfo_MemTotal_bytes|"
                     "ceems_energy_source_info|ceems_gpu_info\"")))));
    for (const tsdb::Series& series : answer.series) {
      const std::string host(series.labels.get("hostname"));
      if (host.empty() || series.samples.empty() || !std::isfinite(series.samples.front().value)) {
        continue;
      }
      take_fact(host, series);
    }
    return {};
  }

  void take_fact(const std::string& host, const tsdb::Series& series) {
    constexpr double kMaxCounter = 1e15;
    store::NodeFacts& facts =
        facts_.try_emplace(host, store::NodeFacts{.node = host}).first->second;
    const std::string_view metric = series.labels.get("__name__");
    const auto value =
        static_cast<std::int64_t>(std::clamp(series.samples.front().value, 0.0, kMaxCounter));
    if (metric == "ceems_cpu_count") {
      facts.cpus = value;
    } else if (metric == "ceems_meminfo_MemTotal_bytes") {
      facts.memory = value;
    } else if (metric == "ceems_gpu_info") {
      facts.gpus += 1;
    } else if (metric == "ceems_node_info") {
      const std::string_view gpu = series.labels.get("gpu_model");
      facts.node_class =
          fmt::format("{}{}{}", series.labels.get("cpu_model"), gpu.empty() ? "" : ", ", gpu);
    } else if (series.labels.get("domain") == "node") {
      facts.source = series.labels.get("source");
      const std::string_view method = series.labels.get("method");
      if (method == "measured" || method == "derived") {
        metered_.emplace(host, facts.source);
      }
    }
  }

  [[nodiscard]] Result<Origins> samples(const std::string& matchers, std::string_view part) const {
    CEEMS_TRY(answer, source_.client->query_samples(at_end(selector(matchers))));
    Origins origins;
    for (tsdb::Series& series : answer.series) {
      std::erase_if(series.samples, [](const tsdb::Sample& sample) {
        return !std::isfinite(sample.value) || sample.value < 0;
      });
      std::string host(series.labels.get("hostname"));
      if (host.empty() || series.samples.empty()) {
        continue;
      }
      Origin origin{.host = std::move(host),
                    .metric = std::string(series.labels.get("__name__")),
                    .part = std::string(series.labels.get(part))};
      origins[std::move(origin)].push_back(
          {.samples = std::move(series.samples), .before = std::nullopt});
    }
    return origins;
  }

  /// The counters of the node itself. Before its first reading nothing is known.
  Result<> read_nodes() {
    CEEMS_TRY(origins, samples(fmt::format("__name__=~\"{}|{}|{}\",domain=\"node\"", kNodeEnergy,
                                           kSystemEnergy, kUnallocatedEnergy),
                               "source"));
    for (auto& [origin, series] : origins) {
      Host& host = hosts_[origin.host];
      if (origin.metric == kNodeEnergy) {
        cover(host, series);
      }
      const CounterSeries* first = nullptr;
      for (const CounterSeries& one : series) {
        if (first == nullptr || one.samples.front().time_ms < first->samples.front().time_ms) {
          first = &one;
        }
      }
      const double before = first->samples.front().value;
      for (CounterSeries& one : series) {
        one.before = before;
      }
      const double joules = known_increase(std::move(series), window_);
      if (origin.metric == kNodeEnergy) {
        host.energy += joules;
        // A source that does not say how its energy is known has no meter.
        const bool metered = !origin.part.empty() && metered_.contains({origin.host, origin.part});
        host.modelled += metered ? 0 : joules;
      } else {
        (origin.metric == kSystemEnergy ? host.system : host.unallocated) += joules;
      }
    }
    return {};
  }

  /// Adds the time between readings. Sources of a node that follow one another cover it together.
  void cover(Host& host, const std::vector<CounterSeries>& series) const {
    const std::set<std::int64_t> times = times_of(series);
    std::int64_t covered = 0;
    std::optional<std::int64_t> last;
    for (const std::int64_t time : times) {
      if (last && time > window_.start_ms && time - *last <= kLookBackMs) {
        covered += time - *last;
      }
      last = time;
    }
    host.covered_ms = std::max(host.covered_ms, covered);
    if (host.first_ms == 0 || *times.begin() < host.first_ms) {
      host.first_ms = *times.begin();
    }
  }

  Result<> read_units() {
    CEEMS_TRY(origins,
              samples(fmt::format("__name__=\"{}\",domain=\"node\"", kIdleEnergy), "uuid"));
    for (auto& [origin, series] : origins) {
      const auto host = hosts_.find(origin.host);
      if (host == hosts_.end()) {
        continue;
      }
      for (CounterSeries& one : series) {
        // The node was not read before: the counter may be as old as the unit.
        if (one.samples.front().time_ms <= host->second.first_ms) {
          one.before = one.samples.front().value;
        }
      }
      host->second.idle += known_increase(std::move(series), window_);
    }
    return {};
  }

  store::NodeUpdate update() {
    constexpr double kMaxNodeWatts = 1e6;  // a rack has a tenth of that
    constexpr double kMaxPause = 900;      // seconds, which may lie before the window
    const double seconds = static_cast<double>(window_.end_ms - window_.start_ms) / 1000;
    const double most = kMaxNodeWatts * (seconds + kMaxPause);
    const auto stored = [most](double joules) {
      return static_cast<std::int64_t>(std::llround(std::clamp(joules, 0.0, most) * kUnitsOfJoule));
    };
    store::NodeUpdate update{.cluster_id = source_.cluster_id,
                             .start_ms = window_.start_ms,
                             .end_ms = window_.end_ms,
                             .day_ms = window_.day_ms,
                             .energies = {},
                             .facts = {}};
    for (const auto& [name, host] : hosts_) {
      if (host.covered_ms == 0) {
        continue;
      }
      if (!(host.energy <= most)) {
        log::warn("the counters of a node rose by more than a node can draw: its part is left out",
                  {{"cluster_id", source_.cluster_id}, {"node", printable(name, 100)}});
        continue;
      }
      const double units = std::max(0.0, host.energy - host.system - host.unallocated);
      update.energies.push_back({.node = name,
                                 .energy = stored(host.energy),
                                 .idle = stored(std::min(host.idle, units)),
                                 .system = stored(host.system),
                                 .unallocated = stored(host.unallocated),
                                 .modelled = stored(host.modelled),
                                 .covered_ms = host.covered_ms});
      const auto facts = facts_.find(name);
      update.facts.push_back(facts == facts_.end() ? store::NodeFacts{.node = name}
                                                   : facts->second);
    }
    return update;
  }

  const NodeSource& source_;
  const NodeWindow window_;
  std::map<std::string, store::NodeFacts> facts_;
  std::set<std::pair<std::string, std::string>> metered_;  ///< host and source
  std::map<std::string, Host> hosts_;
};

}  // namespace

NodeWindow next_node_window(std::int64_t until_ms, std::int64_t settled_ms, const TimeZone& zone) {
  constexpr std::int64_t kShortestMs = 5 * kMinuteMs;
  constexpr std::int64_t kDayAndHalfMs = 36 * kHourMs;
  const std::int64_t day = zone.day_start(until_ms);
  const std::int64_t next_day = zone.day_start(day + kDayAndHalfMs);
  const std::int64_t end =
      std::min({until_ms + kHourMs, next_day, settled_ms - settled_ms % kMinuteMs});
  const bool due = end - until_ms >= kShortestMs || (end == next_day && end > until_ms);
  return {.start_ms = until_ms, .end_ms = due ? end : until_ms, .day_ms = day};
}

Result<store::NodeUpdate> read_node_energy(const NodeSource& source, const NodeWindow& window) {
  return Reading(source, window).read();
}

}  // namespace ceems::ingest
