#include "api/update_loop.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/resource/time_text.h"
#include "base/log.h"
#include "store/time_zone.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1000;
// How often the clock is looked at while nothing happens, so that a machine that slept or a clock
// that was set is noticed.
constexpr milliseconds kMaxWait{1000};

std::int64_t to_ms(Clock::SystemTime time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

/// The first midnight after a moment. A day has 23 to 25 hours, so 36 hours after its start is the
/// next day wherever the clocks change.
std::int64_t next_midnight(std::int64_t epoch_ms, const store::TimeZone& zone) {
  constexpr std::int64_t kHour = 3'600'000;
  return zone.day_start(zone.day_start(epoch_ms) + 36 * kHour);
}

/// What a manager repeats would count twice; the last record is the newest.
void drop_repeated(std::vector<model::Unit>& units) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::vector<bool> keep(units.size());
  for (std::size_t i = units.size(); i-- > 0;) {
    keep[i] = seen.emplace(units[i].uuid, units[i].started_at).second;
  }
  std::vector<model::Unit> kept;
  kept.reserve(seen.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (keep[i]) {
      kept.push_back(std::move(units[i]));
    }
  }
  units = std::move(kept);
}

/// Everything of one cluster and window; users and projects may be missing, metrics not.
Result<store::ClusterUpdate> fetch(UpdateSource& source,
                                   model::Window window,
                                   const std::stop_token& stop) {
  store::ClusterUpdate update{
      .cluster = source.cluster, .window = window, .units = {}, .users = {}, .projects = {}};
  auto units = source.manager->fetch_units(window, stop);
  if (!units) {
    return fail(std::move(units).error().with_context("fetching units"));
  }
  update.units = std::move(*units);
  drop_repeated(update.units);
  auto people = source.manager->fetch_users_projects(window, stop);
  if (people) {
    update.users = std::move(people->users);
    update.projects = std::move(people->projects);
  } else if (!stop.stop_requested()) {
    log::warn("cannot fetch users and projects, keeping the known ones",
              {{"cluster_id", source.cluster.id}, {"err", people.error().message}});
  }
  for (auto& updater : source.updaters) {
    auto done = updater->update(window, update.units, stop);
    if (!done) {
      return fail(std::move(done).error().with_context("updating metrics"));
    }
  }
  return update;
}

/// fetch() with the last resort of a thread.
Result<store::ClusterUpdate> fetch_guarded(UpdateSource& source,
                                           model::Window window,
                                           const std::stop_token& stop) {
  try {
    return fetch(source, window, stop);
  } catch (const std::exception& exception) {
    return fail(ErrorCode::kInternal, "unexpected: {}", exception.what());
  } catch (...) {
    return fail(ErrorCode::kInternal, "unexpected exception");
  }
}

Result<UpdateSource> make_source(ClusterConfig& config,
                                 const std::map<std::string, const UpdaterConfig*>& updaters,
                                 const ManagerContext& context) {
  UpdateSource source{.cluster = config.cluster, .manager = nullptr, .updaters = {}};
  const auto kinds = all_updaters();
  for (const auto& id : config.cluster.updaters) {
    const auto found = updaters.find(id);
    if (found == updaters.end()) {
      log::error("unknown updater is left out",
                 {{"cluster_id", config.cluster.id}, {"updater", id}});
      continue;
    }
    const UpdaterConfig& updater = *found->second;
    if (updater.web_url.empty()) {
      log::warn("updater without url is disabled",
                {{"cluster_id", config.cluster.id}, {"updater", id}});
      continue;
    }
    // The manager `local` reads the units from the TSDB that has their metrics.
    if (config.web_url.empty() && config.cluster.manager == "local") {
      config.web_url = updater.web_url;
      config.web = updater.web;
    }
    const auto kind = std::ranges::find(kinds, updater.kind, &UpdaterSpec::kind);
    if (kind == kinds.end()) {
      return fail(ErrorCode::kInvalidArgument, "unknown updater found in the config: {}",
                  updater.kind);
    }
    auto made = kind->create(updater, *context.clock);
    if (!made) {
      return fail(std::move(made).error());
    }
    source.updaters.push_back(std::move(*made));
  }
  const auto managers = all_managers();
  const auto manager = std::ranges::find(managers, config.cluster.manager, &ManagerSpec::name);
  if (manager == managers.end()) {
    return fail(ErrorCode::kInvalidArgument, "unknown resource manager found in the config: {}",
                config.cluster.manager);
  }
  auto made = manager->create(config, context);
  if (!made) {
    return fail(std::move(made).error());
  }
  source.manager = std::move(*made);
  return source;
}

}  // namespace

Result<std::int64_t> parse_update_from(std::string_view text,
                                       std::string_view time_zone,
                                       Clock::SystemTime now) {
  auto zone = store::TimeZone::find(time_zone);
  if (!zone) {
    return fail(std::move(zone).error());
  }
  if (text.empty() || text == "today") {
    return zone->day_start(to_ms(now));
  }
  const auto local = complete_local(text);
  const auto ms = local ? zone->parse_local(*local) : std::nullopt;
  if (!ms) {
    return fail(ErrorCode::kInvalidArgument, "failed to parse time string: {}", text);
  }
  return *ms;
}

struct UpdateLoop::Impl {
  /// What a worker found for a request.
  struct Outcome {
    bool due = false;   ///< there was a window
    bool last = false;  ///< and it reached the end of what is due
    Result<store::ClusterUpdate> update = store::ClusterUpdate{};
  };
  struct Request {
    std::int64_t start_ms = 0;
    std::int64_t now_ms = 0;  ///< of the round
  };
  /// A cluster. What is shared between its thread and the loop's is guarded by mutex.
  struct Worker {
    UpdateSource source;
    std::jthread thread;
    std::optional<Request> request;
    std::optional<Outcome> outcome;

    // Of the writing thread only.
    bool busy = false;
    bool again = false;  ///< a round came while busy
    std::int64_t round_ms = 0;
    std::optional<std::int64_t> watermark;
    std::optional<Clock::SteadyTime> resume_at;  ///< of a back-fill
    bool committed = false;
    bool clock_behind = false;
    std::string last_error;
  };

  Impl(UpdateOptions options_in,
       store::Writer& writer_in,
       const Clock& clock_in,
       store::TimeZone zone_in,
       std::int64_t update_from)
      : options(std::move(options_in)),
        writer(writer_in),
        clock(clock_in),
        zone(zone_in),
        update_from_ms(update_from) {}

  // Runs on any thread: looks at nothing but constants and the source.
  [[nodiscard]] std::optional<std::pair<model::Window, bool>> next_window(
      const UpdateSource& source, Request request) const {
    milliseconds settle = source.manager->settle();
    for (const auto& updater : source.updaters) {
      settle = std::max(settle, updater->settle());
    }
    const std::int64_t due = (request.now_ms - settle.count()) / kSecond * kSecond;
    if (due <= request.start_ms) {
      return std::nullopt;
    }
    // Windows end at midnight, so that a day's usage is that day's.
    const std::int64_t end = std::min({due, request.start_ms + options.max_update_interval.count(),
                                       next_midnight(request.start_ms, zone)});
    return std::pair(model::Window{.start_ms = request.start_ms, .end_ms = end}, end == due);
  }

  Outcome answer(UpdateSource& source, Request request, const std::stop_token& stop) const {
    const auto window = next_window(source, request);
    if (!window) {
      return {};
    }
    return {
        .due = true, .last = window->second, .update = fetch_guarded(source, window->first, stop)};
  }

  void work(Worker& worker, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (wake.wait(lock, stop, [&worker] { return worker.request.has_value(); })) {
      const Request request = std::exchange(worker.request, std::nullopt).value_or(Request{});
      lock.unlock();
      Outcome outcome = answer(worker.source, request, stop);
      lock.lock();
      worker.outcome = std::move(outcome);
      wake.notify_all();
    }
  }

  // The rest runs on the writing thread.

  [[nodiscard]] std::int64_t purge_cutoff(std::int64_t now_ms) const {
    const std::int64_t days =
        std::chrono::duration_cast<std::chrono::days>(options.retention).count();
    return zone.day_start(now_ms) - milliseconds(std::chrono::days(days)).count();
  }

  void begin_round(std::int64_t now_ms) {
    if (!admins_written) {
      auto done = writer.write_admins("ceems", options.admins);
      admins_written = done.has_value();
      if (!done) {
        log::error("cannot write the administrators", {{"err", done.error().message}});
      }
    }
    if (options.purge) {
      if (auto done = writer.purge(purge_cutoff(now_ms)); !done) {
        log::error("cannot purge old units", {{"err", done.error().message}});
      }
    }
  }

  /// Where the next window of the cluster starts; nothing while the store cannot tell.
  std::optional<std::int64_t> start_of(Worker& worker) {
    if (!worker.watermark) {
      auto stored = writer.watermark(worker.source.cluster.id);
      if (!stored) {
        report(worker, stored.error());
        return std::nullopt;
      }
      worker.watermark = stored->value_or(update_from_ms);
    }
    return worker.watermark;
  }

  void report(Worker& worker, const Error& error) {
    // Once per change: a TSDB that is down fails every round with the same words.
    if (worker.last_error != error.message) {
      worker.last_error = error.message;
      log::error("update failed, its window will be tried again",
                 {{"cluster_id", worker.source.cluster.id}, {"err", error.message}});
    }
  }

  void note_clock(Worker& worker, std::int64_t now_ms) {
    const bool behind = worker.watermark && now_ms < *worker.watermark;
    if (behind && !worker.clock_behind) {
      log::warn("the clock is behind the last update; waiting for it to pass",
                {{"cluster_id", worker.source.cluster.id},
                 {"last_update", zone.local_with_offset(*worker.watermark)}});
    }
    worker.clock_behind = behind;
  }

  /// Writes what a worker found. True when the next window of the round may be asked for.
  bool commit(Worker& worker, Outcome& outcome, std::int64_t now_ms) {
    note_clock(worker, now_ms);
    if (!outcome.due) {
      return false;
    }
    if (!outcome.update) {
      report(worker, outcome.update.error());
      return false;
    }
    store::ClusterUpdate& update = *outcome.update;
    if (options.purge) {
      // Would be deleted by the next purge and come back for ever.
      const std::int64_t cutoff = purge_cutoff(now_ms);
      std::erase_if(update.units, [cutoff](const model::Unit& unit) {
        return unit.ended_at_ts > 0 && unit.ended_at_ts < cutoff;
      });
    }
    auto written = writer.write(update);
    if (!written) {
      // Whether a failed commit took effect is for the store to say.
      worker.watermark.reset();
      report(worker, std::move(written).error().with_context("writing"));
      return false;
    }
    worker.watermark = update.window.end_ms;
    if (!worker.committed || !worker.last_error.empty()) {
      log::info("units updated", {{"cluster_id", worker.source.cluster.id},
                                  {"from", zone.local_with_offset(update.window.start_ms)},
                                  {"to", zone.local_with_offset(update.window.end_ms)},
                                  {"units", update.units.size()}});
    } else {
      log::debug("units updated", {{"cluster_id", worker.source.cluster.id},
                                   {"to", zone.local_with_offset(update.window.end_ms)},
                                   {"units", update.units.size()}});
    }
    worker.committed = true;
    worker.last_error.clear();
    ++commits;
    return !outcome.last;
  }

  void ask(Worker& worker, std::int64_t now_ms) {
    worker.resume_at.reset();
    const auto start = start_of(worker);
    if (!start) {
      return;
    }
    worker.busy = true;
    worker.round_ms = now_ms;
    const std::scoped_lock lock(mutex);
    worker.request = Request{.start_ms = *start, .now_ms = now_ms};
    wake.notify_all();
  }

  void handle_outcomes() {
    for (auto& worker : workers) {
      std::optional<Outcome> outcome;
      {
        const std::scoped_lock lock(mutex);
        outcome = std::exchange(worker->outcome, std::nullopt);
      }
      if (!outcome) {
        continue;
      }
      const bool more = commit(*worker, *outcome, to_ms(clock.now()));
      worker->busy = false;
      if (more) {
        worker->busy = true;
        worker->resume_at = clock.steady_now() + options.backfill_pause;
      } else if (std::exchange(worker->again, false)) {
        ask(*worker, to_ms(clock.now()));
      }
    }
    for (auto& worker : workers) {
      if (clock.steady_now() >= worker->resume_at.value_or(Clock::SteadyTime::max())) {
        worker->busy = false;
        ask(*worker, worker->round_ms);
      }
    }
  }

  void loop(const std::stop_token& stop) {
    Clock::SteadyTime next_round = clock.steady_now();
    while (!stop.stop_requested()) {
      if (const auto now = clock.steady_now(); now >= next_round) {
        // One round that was missed is made up for now; more are dropped.
        next_round = std::max(next_round + options.update_interval, now);
        const std::int64_t now_ms = to_ms(clock.now());
        begin_round(now_ms);
        for (auto& worker : workers) {
          if (worker->busy) {
            worker->again = true;
          } else {
            ask(*worker, now_ms);
          }
        }
      }
      handle_outcomes();
      Clock::SteadyTime until = std::min(next_round, clock.steady_now() + kMaxWait);
      for (const auto& worker : workers) {
        until = std::min(until, worker->resume_at.value_or(until));
      }
      const auto pause = std::max<Clock::SteadyTime::duration>(until - clock.steady_now(),
                                                               std::chrono::milliseconds(1));
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, pause, [this] {
        return std::ranges::any_of(workers,
                                   [](const auto& worker) { return worker->outcome.has_value(); });
      });
    }
  }

  const UpdateOptions options;
  store::Writer& writer;
  const Clock& clock;
  const store::TimeZone zone;
  const std::int64_t update_from_ms;
  std::vector<std::unique_ptr<Worker>> workers;
  bool admins_written = false;
  std::size_t commits = 0;

  std::mutex mutex;  ///< of requests and outcomes
  std::condition_variable_any wake;
  std::mutex thread_mutex;  ///< of start and stop
  std::jthread thread;
};

UpdateLoop::UpdateLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

UpdateLoop::~UpdateLoop() {
  stop();
}

Result<std::unique_ptr<UpdateLoop>> UpdateLoop::create(UpdateOptions options,
                                                       std::vector<ClusterConfig> clusters,
                                                       const std::vector<UpdaterConfig>& updaters,
                                                       store::Writer& writer,
                                                       const Clock& clock,
                                                       os::CommandRunner& runner) {
  std::map<std::string, const UpdaterConfig*> by_id;
  for (const auto& updater : updaters) {
    by_id.emplace(updater.id, &updater);
  }
  const ManagerContext context{.clock = &clock, .runner = &runner, .time_zone = options.time_zone};
  std::vector<UpdateSource> sources;
  for (auto& cluster : clusters) {
    auto source = make_source(cluster, by_id, context);
    if (!source) {
      return fail(std::move(source).error());
    }
    sources.push_back(std::move(*source));
  }
  return create(std::move(options), std::move(sources), writer, clock);
}

Result<std::unique_ptr<UpdateLoop>> UpdateLoop::create(UpdateOptions options,
                                                       std::vector<UpdateSource> sources,
                                                       store::Writer& writer,
                                                       const Clock& clock) {
  if (options.update_interval <= milliseconds(0) ||
      options.max_update_interval < std::chrono::seconds(1)) {
    return fail(ErrorCode::kInvalidArgument,
                "update_interval and/or max_update_interval must be more than 0s");
  }
  auto from = parse_update_from(options.update_from, options.time_zone, clock.now());
  if (!from) {
    return fail(std::move(from).error());
  }
  auto zone = store::TimeZone::find(options.time_zone);
  if (!zone) {
    return fail(std::move(zone).error());
  }
  if (sources.empty()) {
    log::warn("no clusters are configured; there is nothing to update");
  }
  auto impl = std::make_unique<Impl>(std::move(options), writer, clock, *zone, *from);
  for (auto& source : sources) {
    auto worker = std::make_unique<Impl::Worker>();
    worker->source = std::move(source);
    impl->workers.push_back(std::move(worker));
  }
  return std::unique_ptr<UpdateLoop>(new UpdateLoop(std::move(impl)));
}

void UpdateLoop::start() {
  const std::scoped_lock lock(impl_->thread_mutex);
  for (auto& worker : impl_->workers) {
    worker->thread = std::jthread([impl = impl_.get(), w = worker.get()](
                                      const std::stop_token& stop) { impl->work(*w, stop); });
  }
  impl_->thread =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->loop(stop); });
}

void UpdateLoop::stop() {
  const std::scoped_lock lock(impl_->thread_mutex);
  impl_->thread.request_stop();
  for (auto& worker : impl_->workers) {
    worker->thread.request_stop();
  }
  if (impl_->thread.joinable()) {
    impl_->thread.join();
  }
  for (auto& worker : impl_->workers) {
    if (worker->thread.joinable()) {
      worker->thread.join();
    }
  }
}

std::size_t UpdateLoop::run_round(const std::stop_token& stop) {
  const std::size_t before = impl_->commits;
  const std::int64_t now_ms = to_ms(impl_->clock.now());
  impl_->begin_round(now_ms);
  for (auto& worker : impl_->workers) {
    bool more = true;
    while (more && !stop.stop_requested()) {
      const auto start = impl_->start_of(*worker);
      if (!start) {
        break;
      }
      auto outcome = impl_->answer(worker->source, {.start_ms = *start, .now_ms = now_ms}, stop);
      more = impl_->commit(*worker, outcome, now_ms);
    }
  }
  return impl_->commits - before;
}

}  // namespace ceems::api
