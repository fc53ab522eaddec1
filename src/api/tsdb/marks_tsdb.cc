#include "api/tsdb/marks_tsdb.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "ingest/updater/counter.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kRegionPrefix = "ceems_compute_unit_region_";
constexpr std::string_view kResultsOfUnit = "ceems_compute_unit_results_total";
constexpr std::string_view kMerit = "ceems_compute_unit_fom";
constexpr std::string_view kUnitEnergy = "ceems_compute_unit_energy_joules_total";
constexpr std::string_view kMarkNames =
    "ceems_compute_unit_(region_((|self_)energy_joules|seconds|count)_total|results_total|fom)";
constexpr std::size_t kMaxSeriesOfMarks = 50'000;
constexpr std::size_t kUnitsAtOnce = 50;
/// The exporter sends no names with more than 32 characters.
constexpr std::size_t kMaxNameBytes = 64;
/// How far back the last values are looked for, besides the whole life in steps.
constexpr milliseconds kLately = std::chrono::minutes(10);
/// Of a whole life: more samples of many series would be refused by a TSDB.
constexpr std::int64_t kMaxSteps = 1000;
/// Of counters that have started anew, of which each sample is read.
constexpr std::int64_t kMaxRawSteps = 400;

/// One counter or gauge, of which several targets may have copies.
struct Mark {
  std::string host, metric, name, more;  ///< `more`: domain or unit
  double value = 0;
  report::Number mean = {};
};

std::string host_of(const tsdb::Labels& labels) {
  const std::string_view host = labels.get("hostname");
  return std::string(host.empty() ? labels.get("instance") : host);
}

std::string_view name_in(const tsdb::Labels& labels) {
  for (const std::string_view label : {"region", "result", "fom"}) {
    if (const std::string_view name = labels.get(label); !name.empty()) {
      return name;
    }
  }
  return {};
}

/// Where the mark belongs: the origin of its counter.
std::string key_of_mark(const tsdb::Labels& labels, std::string_view metric) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", host_of(labels), labels.get("cgrouphostname"),
                     labels.get("manager"), metric, name_in(labels), labels.get("domain"),
                     labels.get("unit"));
}

/// The marks of one unit as its series come.
class MarkSet {
 public:
  void add(const tsdb::Series& series, double value) {
    const tsdb::Labels& labels = series.labels;
    const std::string_view metric = labels.get("__name__");
    const std::string_view name = name_in(labels);
    const bool of_unit = metric == kUnitEnergy;
    const bool known = of_unit || (!name.empty() &&
                                   (metric == kResultsOfUnit || metric.starts_with(kRegionPrefix)));
    if (!known || value < 0 || !std::isfinite(value) || name.size() > kMaxNameBytes ||
        labels.get("unit").size() > kMaxNameBytes) {
      return;
    }
    Mark& mark = marks_[key_of_mark(labels, metric)];
    if (mark.metric.empty()) {
      mark.host = host_of(labels);
      mark.metric = metric;
      mark.name = name;
      mark.more = labels.get(labels.get("domain").empty() ? "unit" : "domain");
    }
    mark.value = std::max(mark.value, value);
  }

  /// A figure of merit may be negative.
  void add_merit(const tsdb::Series& series, double value) {
    if (std::isfinite(value) && name_in(series.labels).size() <= kMaxNameBytes) {
      Mark& mark = marks_[key_of_mark(series.labels, kMerit)];
      mark.host = host_of(series.labels);
      mark.metric = kMerit;
      mark.name = name_in(series.labels);
      mark.more = series.labels.get("unit");
      mark.value = value;
    }
  }
  void add_mean(const tsdb::Series& series, double value) {
    const auto found = marks_.find(key_of_mark(series.labels, kMerit));
    if (found != marks_.end() && std::isfinite(value)) {
      found->second.mean = value;
    }
  }

  void add_reset(const tsdb::Labels& labels) { reset_hosts_.insert(host_of(labels)); }
  [[nodiscard]] const std::set<std::string>& reset_hosts() const { return reset_hosts_; }

  /// The counters of nodes where they have started anew count what all their lives have counted.
  void add_samples(const std::vector<tsdb::Series>& all, std::int64_t from_ms, std::int64_t to_ms) {
    std::map<std::string, std::vector<ingest::CounterSeries>> origins;
    for (const tsdb::Series& series : all) {
      if (!series.samples.empty()) {
        origins[key_of_mark(series.labels, series.labels.get("__name__"))].push_back(
            {.samples = series.samples, .before = {}});
      }
    }
    for (auto& [key, series] : origins) {
      const auto found = marks_.find(key);
      if (found == marks_.end()) {
        continue;
      }
      double counted = 0;
      for (const auto& part : ingest::origin_increments(std::move(series), from_ms - 1, to_ms)) {
        counted += part.value;
      }
      found->second.value = std::max(found->second.value, counted);
    }
  }

  [[nodiscard]] UnitMarks take() {
    UnitMarks unit;
    std::map<std::string, UnitMarks::Node> nodes;
    for (const auto& [key, mark] : marks_) {
      if (mark.metric == kResultsOfUnit) {
        add_result(mark, unit);
      } else if (mark.metric == kMerit) {
        add_merit_of_node(mark, unit);
      } else if (mark.metric == kUnitEnergy) {
        nodes[mark.host].joules[mark.more] += mark.value;
      } else {
        add_region(mark, nodes[mark.host].regions[mark.name]);
      }
    }
    for (UnitMarks::Merit& merit : unit.merits) {
      merit.last /= static_cast<double>(merit.nodes);
    }
    for (auto& [host, node] : nodes) {
      node.name = host;
      unit.nodes.push_back(std::move(node));
    }
    return unit;
  }

 private:
  static void add_region(const Mark& mark, UnitMarks::Region& region) {
    const std::string_view metric = std::string_view(mark.metric).substr(kRegionPrefix.size());
    if (metric == "seconds_total") {
      region.seconds += mark.value;
    } else if (metric == "count_total") {
      region.count += mark.value;
    } else if (metric == "energy_joules_total") {
      region.joules[mark.more] += mark.value;
    } else {
      region.self_joules = region.self_joules.value_or(0) + mark.value;
    }
  }

  template <typename Of>
  static Of& named(const Mark& mark, std::vector<Of>& all) {
    const auto found = std::ranges::find_if(
        all, [&mark](const Of& one) { return one.name == mark.name && one.unit == mark.more; });
    return found != all.end() ? *found : all.emplace_back(Of{.name = mark.name, .unit = mark.more});
  }
  static void add_result(const Mark& mark, UnitMarks& unit) {
    named(mark, unit.results).n += mark.value;
  }
  static void add_merit_of_node(const Mark& mark, UnitMarks& unit) {
    UnitMarks::Merit& merit = named(mark, unit.merits);
    const auto nodes = static_cast<double>(merit.nodes++);
    merit.last += mark.value;
    if (nodes == 0) {
      merit.mean = mark.mean;
    } else if (merit.mean && mark.mean) {
      merit.mean = (*merit.mean * nodes + *mark.mean) / (nodes + 1);
    }
  }

  std::map<std::string, Mark> marks_;
  std::set<std::string> reset_hosts_;
};

/// The queries about marks of units of one cluster.
class MarkQueries {
 public:
  MarkQueries(const ClusterTsdb& tsdb, std::string_view cluster_id)
      : client_(*tsdb.client), settings_(tsdb.client->settings()) {
    if (!tsdb.cluster_label.empty()) {
      cluster_ = fmt::format(",{}=\"{}\"", tsdb.cluster_label, tsdb::quote_text(cluster_id));
    }
  }

  /// A unit that asks too much does not take the marks from the others.
  Result<> read(std::span<const UnitRun> runs, std::span<UnitMarks> marks, bool alone) {
    auto done = read_group(runs, marks);
    const bool refused = !done && (done.error().code == ErrorCode::kParse ||
                                   done.error().code == ErrorCode::kInvalidArgument);
    if (!refused || alone) {
      return done;
    }
    if (runs.size() == 1) {
      log::warn("cannot read the marks of a unit",
                {{"uuid", printable(runs.front().uuid)}, {"err", done.error().message}});
      return {};
    }
    const std::size_t half = runs.size() / 2;
    CEEMS_TRY(read(runs.first(half), marks.first(half), false));
    return read(runs.subspan(half), marks.subspan(half), false);
  }

 private:
  [[nodiscard]] std::string selector(const UnitRun& run) const {
    return fmt::format("uuid=\"{}\"{}", tsdb::quote_text(run.uuid), cluster_);
  }
  static milliseconds life(const UnitRun& run) {
    return milliseconds(std::max<std::int64_t>(run.until_ms - run.started_ms, 1000));
  }
  [[nodiscard]] milliseconds step(const UnitRun& run, std::int64_t steps) const {
    return std::max(std::chrono::ceil<std::chrono::seconds>(life(run) / steps),
                    std::chrono::ceil<std::chrono::seconds>(settings_.scrape_interval));
  }
  /// The last part of the life, and all of it, in steps if it is long.
  [[nodiscard]] std::string lately(const UnitRun& run) const {
    return fmt::format("[{}]", tsdb::duration_text(std::min(
                                   life(run), std::max(kLately, 5 * settings_.scrape_interval))));
  }
  [[nodiscard]] std::string whole(const UnitRun& run) const {
    const milliseconds between = step(run, kMaxSteps);
    return between > settings_.scrape_interval
               ? fmt::format("[{}:{}]", tsdb::duration_text(life(run)),
                             tsdb::duration_text(between))
               : fmt::format("[{}]", tsdb::duration_text(life(run)));
  }

  /// Asks for all runs at once, each at its end, and passes each series to the marks of its unit.
  template <typename Make, typename Each>
  Result<> ask(std::span<const UnitRun> runs,
               std::vector<MarkSet>& sets,
               const Make& make,
               const Each& each) {
    std::string query;
    std::int64_t last_ms = 0;
    for (const UnitRun& run : runs) {
      const std::string at =
          runs.size() == 1 ? std::string() : " @ " + tsdb::seconds_text(run.until_ms);
      query += (query.empty() ? "" : " or ") + make(run, at);
      last_ms = std::max(last_ms, run.until_ms);
    }
    CEEMS_TRY(answer, client_.query({.query = std::move(query),
                                     .time_ms = last_ms,
                                     .lookback = milliseconds(0),
                                     .timeout = settings_.query_timeout,
                                     .complete = true,
                                     .max_series = kMaxSeriesOfMarks}));
    for (const tsdb::Series& series : answer.series) {
      const auto run = std::ranges::find(runs, series.labels.get("uuid"), &UnitRun::uuid);
      if (run != runs.end() && !series.samples.empty()) {
        each(sets[static_cast<std::size_t>(run - runs.begin())], series,
             series.samples.front().value);
      }
    }
    return {};
  }

  Result<> read_group(std::span<const UnitRun> runs, std::span<UnitMarks> marks) {
    std::vector<MarkSet> sets(runs.size());
    CEEMS_TRY(ask(
        runs, sets,
        [this](const UnitRun& run, const std::string& at) {
          const std::string of = fmt::format("{{__name__=~\"{}\",{}}}", kMarkNames, selector(run));
          std::string text =
              fmt::format("last_over_time({}{}{}) or last_over_time({}{{{}}}{}{})", of, lately(run),
                          at, kUnitEnergy, selector(run), lately(run), at);
          if (lately(run) != whole(run)) {  // marks of exporters that were restarted since
            text += fmt::format(" or last_over_time({}{}{})", of, whole(run), at);
          }
          return text;
        },
        [](MarkSet& set, const tsdb::Series& series, double value) {
          if (series.labels.get("__name__") == kMerit) {
            set.add_merit(series, value);
          } else {
            set.add(series, value);
          }
        }));
    CEEMS_TRY(ask(
        runs, sets,
        [this](const UnitRun& run, const std::string& at) {
          std::string text;
          for (const std::string_view counter :
               {std::string_view("ceems_compute_unit_region_seconds_total"), kResultsOfUnit}) {
            text +=
                fmt::format("resets({}{{{}}}{}{}) > 0 or ", counter, selector(run), whole(run), at);
          }
          return text +
                 fmt::format("avg_over_time({}{{{}}}{}{})", kMerit, selector(run), whole(run), at);
        },
        [](MarkSet& set, const tsdb::Series& series, double value) {
          if (!series.labels.get("fom").empty()) {
            set.add_mean(series, value);
          } else if (value > 0) {
            set.add_reset(series.labels);
          }
        }));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      CEEMS_TRY(read_samples(runs[i], sets[i]));
      marks[i] = sets[i].take();
    }
    return {};
  }

  Result<> read_samples(const UnitRun& run, MarkSet& set) {
    if (set.reset_hosts().empty()) {
      return {};
    }
    const milliseconds between = step(run, kMaxRawSteps);
    const std::int64_t steps = life(run) / between;
    const std::vector<std::string> hosts(set.reset_hosts().begin(), set.reset_hosts().end());
    CEEMS_TRY(answer, client_.query_range(
                          fmt::format("{{__name__=~\"{}\",{},hostname=~\"{}\"}}", kMarkNames,
                                      selector(run), tsdb::quote_text(tsdb::exact_regex(hosts))),
                          run.until_ms - steps * between.count(), run.until_ms, between));
    set.add_samples(answer.series, run.started_ms, run.until_ms);
    return {};
  }

  tsdb::Client& client_;
  tsdb::Settings settings_;
  std::string cluster_;
};

}  // namespace

std::string_view names_of_marks() {
  return kMarkNames;
}

Result<std::vector<UnitMarks>> read_marks(const ClusterTsdb& tsdb,
                                          std::string_view cluster_id,
                                          const std::vector<UnitRun>& runs) {
  std::vector<UnitMarks> marks(runs.size());
  MarkQueries queries(tsdb, cluster_id);
  for (std::size_t first = 0; first < runs.size(); first += kUnitsAtOnce) {
    const std::size_t count = std::min(kUnitsAtOnce, runs.size() - first);
    CEEMS_TRY(queries.read(std::span(runs).subspan(first, count),
                           std::span(marks).subspan(first, count), runs.size() == 1));
  }
  return marks;
}

}  // namespace ceems::api
