#include "api/updater/tsdb.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/updater/emission_factors.h"
#include "api/updater/unit_counters.h"
#include "base/log.h"
#include "config/yaml.h"

namespace ceems::api {
namespace {

using model::Metric;
using std::chrono::milliseconds;

constexpr std::size_t kParallelQueries = 4;
constexpr std::int64_t kMinBatch = 10;
constexpr std::int64_t kMaxBatch = 2000;
constexpr double kJoulesPerKwh = 3.6e6;
constexpr std::string_view kGlobalFactor = "global";

struct Value {
  std::string uuid;
  double value = 0;
};

/// NaN, infinite and negative values count as 0, as the reference has it.
double usable(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

/// Calls work(0) to work(count - 1) on a few threads; returns when all are done.
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

std::string uuids_expression(const std::vector<std::string>& uuids) {
  return tsdb::quote_text(tsdb::exact_regex(uuids));
}

/// What a query needs besides the units.
struct QueryContext {
  QueryVariables variables;
  std::int64_t time_ms = 0;
  milliseconds lookback{0};
  milliseconds timeout{0};
};

QueryContext make_context(model::Window window, const tsdb::Settings& settings) {
  QueryContext context;
  auto& variables = context.variables;
  variables.scrape_interval = config::go_duration(settings.scrape_interval.count());
  variables.scrape_interval_milli = fmt::format("{}", settings.scrape_interval.count());
  variables.evaluation_interval = config::go_duration(settings.evaluation_interval.count());
  variables.evaluation_interval_milli = fmt::format("{}", settings.evaluation_interval.count());
  variables.rate_interval = config::go_duration(settings.rate_interval().count());
  variables.range = config::go_duration((window.end_ms - window.start_ms) / 1000 * 1000);
  context.time_ms = window.end_ms;
  // So that samples after a unit's end do not count.
  context.lookback = settings.scrape_interval;
  context.timeout = settings.query_timeout;
  return context;
}

/// Asks one query for some units; halves them while the TSDB finds them too many.
Result<std::vector<Value>> ask(tsdb::Client& client,
                               const QueryTemplate& query,
                               const QueryContext& context,
                               const std::vector<std::string>& uuids,
                               const std::stop_token& stop) {
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  QueryVariables variables = context.variables;
  variables.uuids = uuids_expression(uuids);
  auto answer = client.query({.query = query.render(variables),
                              .time_ms = context.time_ms,
                              .lookback = context.lookback,
                              .timeout = context.timeout});
  if (answer) {
    std::vector<Value> values;
    for (const auto& series : answer->series) {
      if (const auto uuid = series.labels.get("uuid"); !uuid.empty()) {
        values.push_back({.uuid = std::string(uuid), .value = series.samples.front().value});
      }
    }
    return values;
  }
  if (answer.error().code != ErrorCode::kInvalidArgument || uuids.size() == 1 ||
      answer.error().message.find("too many samples") == std::string::npos) {
    return fail(std::move(answer).error());
  }
  const auto middle = uuids.begin() + static_cast<std::ptrdiff_t>(uuids.size() / 2);
  auto first = ask(client, query, context, {uuids.begin(), middle}, stop);
  if (!first) {
    return first;
  }
  auto second = ask(client, query, context, {middle, uuids.end()}, stop);
  if (!second) {
    return second;
  }
  first->insert(first->end(), second->begin(), second->end());
  return first;
}

std::int64_t batch_size(model::Window window,
                        const tsdb::Settings& settings,
                        const TsdbUpdaterOptions& options) {
  const std::int64_t steps =
      std::max<std::int64_t>((window.end_ms - window.start_ms) /
                                 std::max<std::int64_t>(settings.scrape_interval.count(), 1),
                             1);
  const double limit =
      std::floor(static_cast<double>(settings.max_samples) /
                 (static_cast<double>(options.query_max_series) * static_cast<double>(steps)));
  const double batch = std::floor(options.query_min_samples * limit);
  return std::clamp(static_cast<std::int64_t>(std::min(batch, 1e9)), kMinBatch, kMaxBatch);
}

void set_value(model::Unit& unit, Metric metric, std::string_view key, double value) {
  unit.metric(metric).insert_or_assign(std::string(key), usable(value));
  unit.has_metric[static_cast<std::size_t>(metric)] = true;
}

/// Grams of the energy by provider, where no query gave that key; always with global_total.
void add_emissions(model::Unit& unit,
                   Metric metric,
                   double kwh,
                   const std::map<std::string, double>& factors,
                   double static_factor) {
  for (const auto& [provider, factor] : factors) {
    const std::string key = provider + "_total";
    if (!unit.metric(metric).contains(key)) {
      set_value(unit, metric, key, kwh * factor);
    }
  }
  const auto global = factors.find(std::string(kGlobalFactor));
  set_value(unit, metric, "global_total",
            kwh * (global != factors.end() ? global->second : static_factor));
}

void apply_use(model::Unit& unit, const UnitUse& use) {
  if (use.cpu_seconds) {
    unit.total_time_seconds["used_cputime"] = *use.cpu_seconds;
  }
  const double walltime = unit.total_time_seconds["walltime"];
  if (!unit.metric(Metric::kAvgCpuUsage).contains("global") && use.cpu_seconds && use.cpus &&
      walltime > 0) {
    set_value(unit, Metric::kAvgCpuUsage, "global",
              100 * *use.cpu_seconds / (*use.cpus * walltime));
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

}  // namespace

TsdbUpdater::TsdbUpdater(TsdbUpdaterOptions options, std::unique_ptr<tsdb::Client> client)
    : options_(std::move(options)), client_(std::move(client)) {}

milliseconds TsdbUpdater::settle() const {
  return options_.unit_counters ? settle_time(client_->settings()) : milliseconds(0);
}

Result<> TsdbUpdater::update(model::Window window,
                             std::vector<model::Unit>& units,
                             std::stop_token stop) {
  const std::stop_callback cancel(stop, [this] { client_->cancel(); });
  delete_pending(window);
  if (std::ranges::all_of(units, [](const model::Unit& unit) { return unit.uuid.empty(); })) {
    return {};
  }
  const tsdb::Settings settings = client_->settings();
  if (auto done = run_queries(window, settings, units, stop); !done) {
    return done;
  }
  if (options_.unit_counters) {
    if (auto done = add_counters(window, settings, units, stop); !done) {
      return done;
    }
  }
  mark_ignored(window, units);
  return {};
}

Result<> TsdbUpdater::run_queries(model::Window window,
                                  const tsdb::Settings& settings,
                                  std::vector<model::Unit>& units,
                                  const std::stop_token& stop) {
  // In a shorter window irate() and increase() see nothing or nonsense.
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
  for (const auto& [uuid, indexes] : by_uuid) {
    uuids.push_back(uuid);
  }
  const QueryContext context = make_context(window, settings);
  const auto size = static_cast<std::size_t>(batch_size(window, settings, options_));
  for (std::size_t begin = 0; begin < uuids.size(); begin += size) {
    const std::vector<std::string> batch(
        uuids.begin() + static_cast<std::ptrdiff_t>(begin),
        uuids.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, uuids.size())));
    std::vector<Result<std::vector<Value>>> answers(options_.queries.size());
    in_parallel(options_.queries.size(), [&](std::size_t i) {
      answers[i] = ask(*client_, options_.queries[i].query, context, batch, stop);
    });
    std::set<Metric> cleared;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto& query = options_.queries[i];
      const std::string name = fmt::format("{}.{}", model::column_name(query.metric), query.key);
      if (!answers[i]) {
        if (answers[i].error().code != ErrorCode::kInvalidArgument) {
          return fail(std::move(answers[i]).error().with_context("query " + name));
        }
        if (rejected_.insert(name).second) {
          log::error("the TSDB rejects a query, its metric stays empty",
                     {{"query", name}, {"err", answers[i].error().message}});
        }
        continue;
      }
      rejected_.erase(name);
      if (cleared.insert(query.metric).second) {
        for (const auto& uuid : batch) {
          for (const std::size_t index : by_uuid.at(uuid)) {
            units[index].metric(query.metric).clear();
            units[index].has_metric[static_cast<std::size_t>(query.metric)] = true;
          }
        }
      }
      for (const auto& value : *answers[i]) {
        const auto found = by_uuid.find(value.uuid);
        if (found != by_uuid.end()) {
          for (const std::size_t index : found->second) {
            set_value(units[index], query.metric, query.key, value.value);
          }
        }
      }
    }
  }
  return {};
}

Result<> TsdbUpdater::add_counters(model::Window window,
                                   const tsdb::Settings& settings,
                                   std::vector<model::Unit>& units,
                                   const std::stop_token& stop) {
  auto uses = read_unit_counters(*client_, settings, window, units, stop);
  if (!uses) {
    return fail(std::move(uses).error().with_context("unit counters"));
  }
  auto factors = read_emission_factors(*client_, settings, window, options_.country_code);
  if (!factors) {
    return fail(std::move(factors).error().with_context("emission factors"));
  }
  for (std::size_t i = 0; i < units.size(); ++i) {
    model::Unit& unit = units[i];
    apply_use(unit, (*uses)[i]);
    for (const auto& [energy, emissions] :
         {std::pair(Metric::kTotalCpuEnergyUsageKwh, Metric::kTotalCpuEmissionsGms),
          std::pair(Metric::kTotalGpuEnergyUsageKwh, Metric::kTotalGpuEmissionsGms)}) {
      const auto& totals = unit.metric(energy);
      if (const auto total = totals.find("total"); total != totals.end()) {
        add_emissions(unit, emissions, total->second, *factors, options_.emission_factor);
      }
    }
  }
  return {};
}

void TsdbUpdater::mark_ignored(model::Window window, std::vector<model::Unit>& units) {
  std::vector<std::string> ignored;
  for (auto& unit : units) {
    if (unit.ended_at_ts > 0 && unit.ended_at_ts - unit.started_at_ts < options_.cutoff.count()) {
      unit.ignore = true;
      if (!unit.uuid.empty()) {
        ignored.push_back(unit.uuid);
      }
    }
  }
  PendingDeletion deletion{.window = window, .matchers = options_.labels_to_drop};
  // {uuid=~""} would match every series without the label.
  if (options_.delete_ignored && !ignored.empty()) {
    deletion.matchers.push_back(fmt::format("{{uuid=~\"{}\"}}", uuids_expression(ignored)));
  }
  if (!deletion.matchers.empty()) {
    pending_.push_back(std::move(deletion));
  }
}

void TsdbUpdater::delete_pending(model::Window window) {
  for (const auto& deletion : std::exchange(pending_, {})) {
    // The same window again means that it was not committed and still needs its series.
    if (window.start_ms < deletion.window.end_ms) {
      continue;
    }
    auto done = client_->delete_series(deletion.matchers,
                                       deletion.window.start_ms - options_.cutoff.count(),
                                       deletion.window.end_ms);
    if (!done) {
      log::warn("cannot delete series from the TSDB", {{"err", done.error().message}});
    }
  }
}

UpdaterSpec tsdb_updater() {
  return {.kind = "tsdb",
          .create = [](const UpdaterConfig& config,
                       const Clock& clock) -> Result<std::unique_ptr<Updater>> {
            auto options = read_tsdb_updater_options(config.extra);
            if (!options) {
              return fail(std::move(options).error());
            }
            net::ClientOptions web = config.web;
            // Prometheus gives up after its own time-out, 2 min by default; ours is the longer one.
            web.timeout = std::max<milliseconds>(web.timeout, std::chrono::seconds(130));
            auto transport = tsdb::http_transport(std::move(web));
            if (!transport) {
              return fail(std::move(transport).error().with_context("updater " + config.id));
            }
            return std::make_unique<TsdbUpdater>(
                std::move(*options),
                std::make_unique<tsdb::Client>(config.web_url, std::move(*transport), clock));
          }};
}

}  // namespace ceems::api
