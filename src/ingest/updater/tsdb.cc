#include "ingest/updater/tsdb.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/time/durations.h"
#include "ingest/updater/emission_factors.h"
#include "ingest/updater/unit_counters.h"
#include "ingest/updater/unit_query.h"
#include "store/merge.h"
#include "store/schema/tables.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using std::chrono::milliseconds;

constexpr std::size_t kParallelQueries = 4;
constexpr std::string_view kGlobalFactor = "global";
constexpr std::string_view kUsedCpuTime = "used_cputime";
constexpr std::string_view kUsedCpuTimePart = "total_time_seconds.used_cputime";
// The metrics that the exporter's counters may provide.
constexpr std::array kCounterMetrics{Metric::kAvgCpuUsage,
                                     Metric::kAvgCpuMemUsage,
                                     Metric::kTotalCpuEnergyUsageKwh,
                                     Metric::kTotalGpuEnergyUsageKwh,
                                     Metric::kTotalCpuEmissionsGms,
                                     Metric::kTotalGpuEmissionsGms};

/// NaN, infinite and negative values count as 0, as in CEEMS 0.10.2, and so does what no unit can
/// have: sums with it would mean nothing for ever.
double usable(double value) {
  constexpr double kMax = 1e18;  // an exabyte
  return std::isfinite(value) && value > 0 && value <= kMax ? value : 0;
}

/// The same of a metric. A unit of 4 GW uses the most energy in the day of the longest window.
double usable(Metric metric, double value) {
  constexpr double kMaxKwh = 1e8;
  constexpr double kMaxGrams = 1e12;
  switch (metric) {
    case Metric::kTotalCpuEnergyUsageKwh:
    case Metric::kTotalGpuEnergyUsageKwh:
      return value > kMaxKwh ? 0 : usable(value);
    case Metric::kTotalCpuEmissionsGms:
    case Metric::kTotalGpuEmissionsGms:
      return value > kMaxGrams ? 0 : usable(value);
    default:
      return usable(value);
  }
}

/// Calls work(0) to work(count - 1) on a few threads and returns when all are done.
template <typename Work>
void in_parallel(std::size_t count, Work&& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      work(i);
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min(count, kParallelQueries); ++i) {
    threads.emplace_back(loop);
  }
  loop();
}

void set_value(model::Unit& unit, Metric metric, std::string_view key, double value) {
  if (store::is_extreme(metric) && !std::isfinite(value)) {
    return;  // 0 would stay the least value for ever
  }
  unit.metric(metric).insert_or_assign(std::string(key), usable(metric, value));
  unit.has_metric[static_cast<std::size_t>(metric)] = true;
}

/// Adds the emissions of an energy in grams, by provider, for the keys that no query gave; always
/// with global_total. `by_time` is energy times factor, summed over the increments. If it is empty,
/// the mean of each factor over the window is used.
void add_emissions(model::Unit& unit,
                   Metric metric,
                   double kwh,
                   const std::vector<double>& by_time,
                   const std::vector<EmissionFactor>& factors,
                   model::Window window,
                   double static_factor) {
  double global = kwh * static_factor;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double grams = i < by_time.size() ? by_time[i] / kJoulesPerKwh
                                            : kwh * factors[i].mean(window.start_ms, window.end_ms);
    if (factors[i].provider == kGlobalFactor) {
      global = grams;
    }
    const std::string key = factors[i].provider + "_total";
    if (!unit.metric(metric).contains(key)) {
      set_value(unit, metric, key, grams);
    }
  }
  set_value(unit, metric, "global_total", global);
}

void apply_use(model::Unit& unit, const UnitUse& use) {
  if (use.cpu_seconds) {
    unit.total_time_seconds.insert_or_assign(std::string(kUsedCpuTime), *use.cpu_seconds);
  }
  const auto walltime = unit.total_time_seconds.find("walltime");
  if (!unit.metric(Metric::kAvgCpuUsage).contains("global") && use.cpu_seconds && use.cpus &&
      walltime != unit.total_time_seconds.end() && walltime->second > 0) {
    set_value(unit, Metric::kAvgCpuUsage, "global",
              100 * *use.cpu_seconds / (*use.cpus * walltime->second));
  }
  if (!unit.metric(Metric::kAvgCpuMemUsage).contains("global") && use.memory_ratio) {
    set_value(unit, Metric::kAvgCpuMemUsage, "global", 100 * *use.memory_ratio);
  }
  if (use.cpu_energy_joules) {
    set_value(unit, Metric::kTotalCpuEnergyUsageKwh, "total",
              *use.cpu_energy_joules / kJoulesPerKwh);
  }
  if (use.gpu_energy_joules) {
    set_value(unit, Metric::kTotalGpuEnergyUsageKwh, "total",
              *use.gpu_energy_joules / kJoulesPerKwh);
  }
}

/// Sets what units have beside the metrics.
void apply_window_figures(model::Unit& unit, const UnitUse& use) {
  unit.peak_memory_bytes = use.peak_memory_bytes;
  if (use.idle_energy_joules) {
    unit.idle_kwh = *use.idle_energy_joules / kJoulesPerKwh;
  }
  if (use.not_used_joules) {
    unit.not_used_kwh = *use.not_used_joules / kJoulesPerKwh;
  }
  const auto time_of = [&unit](std::string_view name) {
    const auto found = unit.total_time_seconds.find(name);
    return found == unit.total_time_seconds.end() ? 0 : usable(found->second);
  };
  const double gpu_seconds = time_of("alloc_gputime");
  const double walltime = time_of("walltime");
  // A GPU without a counter is unknown, not idle.
  const bool all_seen =
      walltime > 0 && static_cast<double>(use.gpus_seen) >= std::round(gpu_seconds / walltime);
  if (use.gpu_busy_seconds && gpu_seconds > 0 && all_seen) {
    unit.gpu_idle_share = std::clamp(1 - *use.gpu_busy_seconds / gpu_seconds, 0.0, 1.0);
  }
}

std::string part_of(Metric metric, std::string_view key) {
  return fmt::format("{}.{}", store::column_name(metric), key);
}

Metric emissions_of(Metric energy) {
  return energy == Metric::kTotalCpuEnergyUsageKwh ? Metric::kTotalCpuEmissionsGms
                                                   : Metric::kTotalGpuEmissionsGms;
}

bool is_energy_total(const MetricQuery& query) {
  return query.key == "total" && (query.metric == Metric::kTotalCpuEnergyUsageKwh ||
                                  query.metric == Metric::kTotalGpuEnergyUsageKwh);
}

/// Whether the counters may provide the sub-metric if no query does.
bool counters_may_give(const MetricQuery& query) {
  switch (query.metric) {
    case Metric::kAvgCpuUsage:
    case Metric::kAvgCpuMemUsage:
      return query.key == "global";
    case Metric::kTotalCpuEnergyUsageKwh:
    case Metric::kTotalGpuEnergyUsageKwh:
      return query.key == "total";
    case Metric::kTotalCpuEmissionsGms:
    case Metric::kTotalGpuEmissionsGms:
      return true;
    default:
      return false;
  }
}

}  // namespace

class TsdbUpdater::Parts {
 public:
  explicit Parts(const std::vector<std::string>& wanted) : wanted_(wanted.begin(), wanted.end()) {}

  [[nodiscard]] bool wants(Metric metric, std::string_view key) const {
    return wanted_.empty() || wanted_.contains(part_of(metric, key)) ||
           wanted_.contains(part_of(metric, "*"));
  }
  [[nodiscard]] bool wants_counters() const {
    if (wanted_.empty() || wanted_.contains(std::string(kUsedCpuTimePart))) {
      return true;
    }
    return std::ranges::any_of(kCounterMetrics, [this](Metric metric) {
      const auto first = wanted_.lower_bound(part_of(metric, ""));
      return first != wanted_.end() && first->starts_with(part_of(metric, ""));
    });
  }
  /// Whether the counters are read for the first time for this window: they fail as a whole.
  [[nodiscard]] bool wants_all_counters() const {
    return wanted_.empty() || wanted_.contains(std::string(kUsedCpuTimePart));
  }
  [[nodiscard]] bool failed(Metric metric, std::string_view key) const {
    return missing_.contains(part_of(metric, key));
  }

  void fail_part(std::string part, const Error& error) {
    // A rejected query will be rejected again if it is repeated soon.
    lasting_ = lasting_ && error.code == ErrorCode::kInvalidArgument;
    if (missing_.empty()) {
      cause_ = error;
    }
    missing_.insert(std::move(part));
  }

  /// Removes everything that is not wanted or that failed. `had_time`, by unit: used_cputime was
  /// set before.
  void restrict(std::vector<model::Unit>& units, const std::vector<bool>& had_time) const {
    const bool time_wanted = wanted_.empty() || wanted_.contains(std::string(kUsedCpuTimePart));
    const bool keep_time = time_wanted && !missing_.contains(std::string(kUsedCpuTimePart));
    for (std::size_t i = 0; i < units.size(); ++i) {
      for (std::size_t m = 0; m < model::kMetricCount; ++m) {
        restrict_metric(units[i], static_cast<Metric>(m));
      }
      if (!keep_time && !had_time[i]) {
        units[i].total_time_seconds.erase(std::string(kUsedCpuTime));
      }
    }
  }

  [[nodiscard]] Missing missing() const {
    std::set<std::string> parts;
    for (const auto& part : missing_) {
      // A whole metric covers its sub-metrics.
      const std::string stem = part.substr(0, part.find('.') + 1);
      const std::string whole = stem + "*";
      if (wanted_.empty() || wanted_.contains(part) || wanted_.contains(whole)) {
        parts.insert(missing_.contains(whole) ? whole : part);
      } else if (part == whole) {
        std::ranges::copy_if(wanted_, std::inserter(parts, parts.end()),
                             [&stem](const auto& one) { return one.starts_with(stem); });
      }
    }
    return {.parts = {parts.begin(), parts.end()},
            .cause = cause_,
            .lasting = lasting_ && !parts.empty()};
  }

 private:
  void restrict_metric(model::Unit& unit, Metric metric) const {
    auto& map = unit.metric(metric);
    const bool whole = failed(metric, "*");
    const bool had_values = !map.empty();
    std::erase_if(map, [&](const auto& entry) {
      return whole || failed(metric, entry.first) || !wants(metric, entry.first);
    });
    if (whole || (had_values && map.empty())) {
      unit.has_metric[static_cast<std::size_t>(metric)] = false;
    }
  }

  std::set<std::string> wanted_;  ///< empty: all
  std::set<std::string> missing_;
  Error cause_;
  bool lasting_ = true;
};

struct TsdbUpdater::Batch {
  const std::vector<std::string>& uuids;
  const std::map<std::string, std::vector<std::size_t>, std::less<>>& by_uuid;
  const QueryContext& context;
  std::vector<const MetricQuery*> queries;
};

TsdbUpdater::TsdbUpdater(TsdbUpdaterOptions options, std::unique_ptr<tsdb::Client> client)
    : options_(std::move(options)), client_(std::move(client)) {}

tsdb::Settings TsdbUpdater::settings() const {
  tsdb::Settings settings = client_->settings();
  if (options_.scrape_interval.count() > 0) {
    settings.scrape_interval = options_.scrape_interval;
  }
  if (options_.evaluation_interval.count() > 0) {
    settings.evaluation_interval = options_.evaluation_interval;
  }
  return settings;
}

milliseconds TsdbUpdater::settle() const {
  return options_.unit_counters ? settle_time(settings()) : milliseconds(0);
}

milliseconds TsdbUpdater::shortest_window() const {
  return options_.queries.empty() ? milliseconds(0) : settings().rate_interval();
}

bool TsdbUpdater::gives(model::Metric metric) const {
  return (options_.unit_counters &&
          std::ranges::find(kCounterMetrics, metric) != kCounterMetrics.end()) ||
         std::ranges::find(options_.queries, metric, &MetricQuery::metric) !=
             options_.queries.end();
}

Result<Missing> TsdbUpdater::update(const UpdateRequest& request,
                                    std::vector<model::Unit>& units,
                                    std::stop_token stop) {
  if (std::ranges::all_of(units, [](const model::Unit& unit) { return unit.uuid.empty(); })) {
    return Missing{};
  }
  const tsdb::Settings settings = this->settings();
  std::vector<bool> had_time;
  had_time.reserve(units.size());
  for (const auto& unit : units) {
    had_time.push_back(unit.total_time_seconds.contains(kUsedCpuTime));
  }
  Parts parts(request.parts);
  CEEMS_TRY(run_queries(request, settings, units, parts, stop));
  if (options_.unit_counters && parts.wants_counters()) {
    CEEMS_TRY(add_counters(request, settings, units, parts, stop));
  }
  parts.restrict(units, had_time);
  if (request.parts.empty()) {
    mark_ignored(request.window, units);
  }
  return parts.missing();
}

Result<> TsdbUpdater::run_queries(const UpdateRequest& request,
                                  const tsdb::Settings& settings,
                                  std::vector<model::Unit>& units,
                                  Parts& parts,
                                  const std::stop_token& stop) {
  const model::Window window = request.window;
  // In a shorter window irate() and increase() return nothing or wrong values.
  if (milliseconds(window.end_ms - window.start_ms) < settings.rate_interval()) {
    return {};
  }
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_uuid;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].uuid.empty()) {
      by_uuid[units[i].uuid].push_back(i);
    }
  }
  std::vector<std::string> uuids;
  uuids.reserve(by_uuid.size());
  for (const auto& [uuid, indexes] : by_uuid) {
    uuids.push_back(uuid);
  }
  QueryContext context = query_context(window, settings);
  context.complete = !request.accept_incomplete;
  context.max_series_per_unit = static_cast<std::size_t>(options_.query_max_series);
  const bool counters = options_.unit_counters && parts.wants_counters();
  const auto size = static_cast<std::size_t>(
      batch_size(window, settings, options_.query_max_series, options_.query_min_samples));
  for (std::size_t begin = 0; begin < uuids.size(); begin += size) {
    const std::vector<std::string> some(
        uuids.begin() + static_cast<std::ptrdiff_t>(begin),
        uuids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, uuids.size())));
    Batch batch{.uuids = some, .by_uuid = by_uuid, .context = context, .queries = {}};
    for (const auto& query : options_.queries) {
      const bool wanted =
          parts.wants(query.metric, query.key) || (counters && is_energy_total(query));
      if (wanted && !parts.failed(query.metric, query.key)) {
        batch.queries.push_back(&query);
      }
    }
    CEEMS_TRY(run_batch(batch, units, parts, stop));
  }
  return {};
}

Result<> TsdbUpdater::run_batch(const Batch& batch,
                                std::vector<model::Unit>& units,
                                Parts& parts,
                                const std::stop_token& stop) {
  std::vector<Result<std::vector<UnitValue>>> answers(batch.queries.size());
  std::atomic<bool> any_answer = false;
  std::atomic<std::size_t> silent = 0;
  in_parallel(batch.queries.size(), [&](std::size_t i) {
    // While a TSDB is down, only the first queries wait for their timeout.
    if (!any_answer && silent >= kParallelQueries) {
      answers[i] = fail(ErrorCode::kUnavailable, "the TSDB does not answer");
      return;
    }
    answers[i] = ask_units(*client_, batch.queries[i]->query, batch.context, batch.uuids, stop);
    if (answers[i] || answers[i].error().code == ErrorCode::kInvalidArgument) {
      any_answer = true;
    } else {
      ++silent;
    }
  });
  if (!answers.empty() && !any_answer) {
    return fail(std::move(answers.front()).error());
  }
  std::set<Metric> cleared;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const MetricQuery& query = *batch.queries[i];
    if (!answers[i]) {
      note_failure(query, answers[i].error(), parts);
      continue;
    }
    rejected_.erase(part_of(query.metric, query.key));
    if (cleared.insert(query.metric).second) {
      for (const auto& uuid : batch.uuids) {
        for (const std::size_t index : batch.by_uuid.at(uuid)) {
          units[index].metric(query.metric).clear();
          units[index].has_metric[static_cast<std::size_t>(query.metric)] = true;
        }
      }
    }
    for (const auto& value : *answers[i]) {
      for (const std::size_t index : batch.by_uuid.at(value.uuid)) {
        set_value(units[index], query.metric, query.key, value.value);
      }
    }
  }
  return {};
}

void TsdbUpdater::note_failure(const MetricQuery& query, const Error& error, Parts& parts) {
  const std::string part = part_of(query.metric, query.key);
  const bool refused = error.code == ErrorCode::kInvalidArgument;
  if (refused && options_.unit_counters && counters_may_give(query)) {
    if (rejected_.insert(part).second) {
      log::error("the TSDB refuses a query; its metric is taken from counters",
                 {{"query", part}, {"err", error.message}});
    }
    return;
  }
  parts.fail_part(part, Error(error).with_context("query " + part));
  if (options_.unit_counters && is_energy_total(query)) {
    parts.fail_part(part_of(emissions_of(query.metric), "*"), error);
  }
}

Result<> TsdbUpdater::add_counters(const UpdateRequest& request,
                                   const tsdb::Settings& settings,
                                   std::vector<model::Unit>& units,
                                   Parts& parts,
                                   const std::stop_token& stop) {
  FactorRequest factor = factor_request(settings, request.window);
  factor.country_code = options_.country_code;
  factor.accept_incomplete = request.accept_incomplete;
  auto factors = read_emission_factors(*client_, settings, factor);
  if (!factors) {
    for (const Metric metric : {Metric::kTotalCpuEmissionsGms, Metric::kTotalGpuEmissionsGms}) {
      parts.fail_part(part_of(metric, "*"),
                      Error(factors.error()).with_context("emission factors"));
    }
    factors = std::vector<EmissionFactor>{};
  }
  const CounterRequest counters{.window = request.window,
                                .factors = *factors,
                                .accept_incomplete = request.accept_incomplete};
  const auto uses = read_unit_counters(*client_, settings, counters, units, stop);
  if (!uses) {
    for (const Metric metric : kCounterMetrics) {
      parts.fail_part(part_of(metric, "*"), Error(uses.error()).with_context("unit counters"));
    }
    parts.fail_part(std::string(kUsedCpuTimePart), uses.error());
    return {};
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    model::Unit& unit = units[i];
    const UnitUse& use = (*uses)[i];
    apply_use(unit, use);
    if (parts.wants_all_counters()) {
      apply_window_figures(unit, use);
    }
    for (const Metric energy : {Metric::kTotalCpuEnergyUsageKwh, Metric::kTotalGpuEnergyUsageKwh}) {
      const bool cpu = energy == Metric::kTotalCpuEnergyUsageKwh;
      const auto& totals = unit.metric(energy);
      if (const auto total = totals.find("total"); total != totals.end()) {
        add_emissions(unit, emissions_of(energy), total->second,
                      cpu ? use.cpu_emissions : use.gpu_emissions, *factors, request.window,
                      options_.emission_factor);
      }
    }
  }
  return {};
}

namespace {

Result<std::unique_ptr<Updater>> create_tsdb(const UpdaterConfig& config, const Clock& clock) {
  CEEMS_TRY(options, read_tsdb_updater_options(config.extra));
  net::ClientOptions web = config.web;
  // Prometheus has a query timeout of 2 min by default; ours is longer, so that we see its error.
  web.timeout = std::max<milliseconds>(web.timeout, std::chrono::seconds(130));
  CEEMS_TRY_IN("updater " + config.id, transport, tsdb::http_transport(std::move(web)));
  return std::make_unique<TsdbUpdater>(
      std::move(options),
      std::make_unique<tsdb::Client>(config.web_url, std::move(transport), clock));
}

}  // namespace

UpdaterSpec tsdb_updater() {
  // query_batch_size was an option of older releases and has no effect any more.
  return {
      .name = "tsdb",
      .source = "Prometheus, VictoriaMetrics, Thanos, Mimir: anything with the Prometheus HTTP API",
      .needs_url = true,
      .web_is_tsdb = true,
      .extra_keys = {"unit_counters", "emission_factor", "country_code", "cutoff_duration",
                     "scrape_interval", "evaluation_interval", "delete_ignored",
                     "delete_whole_series", "labels_to_drop", "query_max_series",
                     "query_min_samples", "query_batch_size", "queries"},
      .create = create_tsdb};
}

}  // namespace ceems::ingest
