#include "ingest/update_loop.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/time/time_text.h"
#include "base/time/time_zone.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kSecond = 1000;
// How often the clock is looked at while nothing happens, so that a machine that slept or a clock
// that was set is noticed.
constexpr milliseconds kMaxWait{1000};
// How long a step of the clock ahead is doubted at most.
constexpr milliseconds kMaxDoubt{std::chrono::minutes(15)};

std::int64_t to_ms(Clock::SystemTime time) {
  return std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
}

/// The wall clock, but for steps ahead, which are believed once they have lasted: units of a time
/// that did not happen yet would be missing for ever. Not thread-safe.
class TrustedClock {
 public:
  TrustedClock(const Clock& clock, milliseconds doubt) : clock_(clock), doubt_(doubt) {}

  std::int64_t now_ms() {
    const std::int64_t now = to_ms(clock_.now());
    const auto steady = clock_.steady_now();
    const std::int64_t expected =
        last_ms_ + std::chrono::duration_cast<milliseconds>(steady - last_steady_).count();
    if (const std::int64_t ahead = now - expected; known_ && ahead > kMaxDrift.count()) {
      if (!ahead_since_ || std::abs(ahead - ahead_ms_) > kMaxDrift.count()) {
        log::warn("the clock has jumped ahead; waiting whether it stays",
                  {{"seconds", ahead / kSecond}});
        ahead_since_ = steady;
        ahead_ms_ = ahead;
      }
      if (steady - *ahead_since_ < doubt_) {
        return expected;
      }
    }
    known_ = true;
    ahead_since_.reset();
    last_ms_ = now;
    last_steady_ = steady;
    return now;
  }

 private:
  static constexpr milliseconds kMaxDrift{60'000};
  const Clock& clock_;
  const milliseconds doubt_;
  bool known_ = false;
  std::int64_t last_ms_ = 0;
  Clock::SteadyTime last_steady_;
  std::optional<Clock::SteadyTime> ahead_since_;
  std::int64_t ahead_ms_ = 0;
};

}  // namespace

Result<std::int64_t> parse_update_from(std::string_view text,
                                       std::string_view time_zone,
                                       Clock::SystemTime now) {
  auto zone = TimeZone::find(time_zone);
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
  /// What a worker is asked for: a gap when there is one, else to let go of complete windows and,
  /// with `fetch`, for the next one.
  struct Request {
    ClusterProgress::WindowTask window;
    std::int64_t now_ms = 0;  ///< of the round
    std::optional<ClusterProgress::GapTask> gap;
    bool fetch = true;
  };
  struct Outcome {
    std::optional<DueWindow> due;
    Result<Fetched> fetched = Fetched{};
    double seconds = 0;
    std::optional<store::Gap> gap;
    Result<store::GapFill> fill = store::GapFill{};
    bool fetch = true;  ///< as asked for
  };
  /// A cluster. What is shared between its thread and the loop's is guarded by mutex.
  struct Worker {
    Worker(UpdateSource source_in, ClusterProgress::Rules rules, store::Writer& writer)
        : source(std::move(source_in)), progress(source.cluster, rules, writer) {}

    UpdateSource source;
    std::jthread thread;
    std::optional<Request> request;
    std::optional<Outcome> outcome;

    // Of the writing thread only.
    ClusterProgress progress;
    bool busy = false;
    bool again = false;  ///< a round came while busy
    std::int64_t released_ms = 0;
    std::int64_t round_ms = 0;
    std::optional<Clock::SteadyTime> resume_at;  ///< of a back-fill
  };

  Impl(UpdateOptions options_in, store::Writer& writer_in, const Clock& clock_in, WindowRules rules)
      : options(std::move(options_in)),
        writer(writer_in),
        clock(clock_in),
        window_rules(rules),
        trusted_clock(clock_in, std::min<milliseconds>(options.update_interval, kMaxDoubt)) {}

  // Runs on any thread: looks at nothing but constants and the source.
  Outcome answer(UpdateSource& source, Request request, const std::stop_token& stop) const {
    Outcome outcome;
    if (request.gap) {
      outcome.gap = request.gap->gap;
      outcome.fill = fetch_gap(source, request.gap->gap, std::move(request.gap->units),
                               request.gap->accept_incomplete, stop);
      return outcome;
    }
    release_windows(source, request.window.complete_ms, stop);
    outcome.fetch = request.fetch;
    if (request.fetch) {
      outcome.due = due_window(source, window_rules, request.window.start_ms, request.now_ms);
    }
    if (outcome.due) {
      const auto begin = clock.steady_now();
      outcome.fetched = fetch_window(source, outcome.due->window, stop);
      outcome.seconds = std::chrono::duration<double>(clock.steady_now() - begin).count();
    }
    return outcome;
  }

  void work(Worker& worker, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (wake.wait(lock, stop, [&worker] { return worker.request.has_value(); })) {
      Request request = std::exchange(worker.request, std::nullopt).value_or(Request{});
      lock.unlock();
      Outcome outcome = answer(worker.source, std::move(request), stop);
      lock.lock();
      worker.outcome = std::move(outcome);
      wake.notify_all();
    }
  }

  /// Asks the source of administrators each time a round begins.
  void watch_admins(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (wake.wait(lock, stop, [this] { return admins_wanted; })) {
      admins_wanted = false;
      lock.unlock();
      auto names = options.grafana->fetch(stop);
      lock.lock();
      fetched_admins = std::move(names);
      wake.notify_all();
    }
  }

  // The rest runs on the writing thread.

  [[nodiscard]] std::int64_t purge_cutoff(std::int64_t now_ms) const {
    const std::int64_t days =
        std::chrono::duration_cast<std::chrono::days>(options.retention).count();
    return window_rules.zone.day_start(now_ms) - milliseconds(std::chrono::days(days)).count();
  }

  /// Writes the administrators of the configuration, once; without Grafana also that it has none.
  void write_configured_admins() {
    if (admins_written) {
      return;
    }
    auto done = writer.write_admins("ceems", options.admins);
    if (done && !options.grafana) {
      done = writer.write_admins("grafana", {});
    }
    admins_written = done.has_value();
    if (!done) {
      log::error("cannot write the administrators", {{"err", done.error().message}});
    }
  }

  void take_admins(Result<AdminNames> found) {
    if (found && found->names.empty()) {
      found = fail(ErrorCode::kNoData, "no administrators were found");
    }
    const Result<> done = !found       ? Result<>(fail(std::move(found).error()))
                          : found->all ? writer.write_admins("grafana", found->names)
                                       : writer.add_admins("grafana", found->names);
    const std::string error = done ? "" : done.error().message;
    if (!done) {
      ++totals.admin_failures;
    }
    if (!done && error != admin_error) {
      log::warn("cannot fetch the administrators from Grafana, keeping the known ones",
                {{"err", error}});
    } else if (done && !admin_error.empty()) {
      log::info("administrators are fetched from Grafana again");
    }
    admin_error = error;
  }

  /// Of several programs that share a data base one fetches and writes.
  bool lead() {
    const auto leads = writer.lead();
    const std::string error = leads ? "" : leads.error().message;
    const bool now = leads && *leads;
    if (!error.empty() && error != lead_error) {
      log::error("cannot ask the data base who updates it", {{"err", error}});
    } else if (error.empty() && now != leading) {
      log::info(now ? "this program updates the data base"
                    : "another program updates the data base; waiting");
    }
    if (!now) {
      for (auto& worker : workers) {
        worker->progress.forget();
      }
    }
    lead_error = error;
    leading = now;
    return now;
  }

  /// Gives the round's time, or nothing when there is nothing to do for this program.
  std::optional<std::int64_t> begin_round() {
    const std::int64_t now_ms = trusted_clock.now_ms();
    if (!lead()) {
      return std::nullopt;
    }
    ++totals.rounds;
    write_configured_admins();
    std::optional<std::int64_t> cutoff;
    if (options.purge) {
      cutoff = purge_cutoff(now_ms);
      const auto done = writer.purge(*cutoff);
      const std::string error = done ? "" : done.error().message;
      if (!done) {
        ++totals.purge_failures;
      }
      if (!done && error != purge_error) {
        log::error("cannot purge old units", {{"err", error}});
      }
      purge_error = error;
    }
    for (auto& worker : workers) {
      worker->progress.begin_round(cutoff);
    }
    return now_ms;
  }

  /// Hands the next task to the worker's thread, if there is one.
  void ask(Worker& worker, ClusterProgress::Next next, std::int64_t now_ms) {
    worker.resume_at.reset();
    worker.busy = false;
    auto request = next_request(worker, next, now_ms);
    if (!request) {
      return;
    }
    worker.busy = true;
    worker.round_ms = now_ms;
    const std::scoped_lock lock(mutex);
    worker.request = std::move(request);
    wake.notify_all();
  }

  static std::optional<Request> next_request(Worker& worker,
                                             ClusterProgress::Next next,
                                             std::int64_t now_ms) {
    using Next = ClusterProgress::Next;
    Request request{.window = {}, .now_ms = now_ms, .gap = std::nullopt};
    if (next == Next::kGap) {
      request.gap = worker.progress.gap_task(now_ms);
    }
    if (next == Next::kRest || request.gap) {
      return request.gap ? std::optional(std::move(request)) : std::nullopt;
    }
    const auto task = worker.progress.window_task();
    request.fetch = next == Next::kWindow;
    if (!task || (!request.fetch && task->complete_ms <= worker.released_ms)) {
      return std::nullopt;
    }
    worker.released_ms = task->complete_ms;
    request.window = *task;
    return request;
  }

  ClusterProgress::Next take(Worker& worker, Outcome outcome, std::int64_t now_ms) {
    using Next = ClusterProgress::Next;
    if (outcome.gap) {
      return worker.progress.take_gap(*outcome.gap, std::move(outcome.fill)) ? Next::kGap
                                                                             : Next::kRest;
    }
    if (!outcome.due) {
      return outcome.fetch ? worker.progress.nothing_due(now_ms) : Next::kRest;
    }
    return worker.progress.take_window(std::move(outcome.fetched), outcome.due->last,
                                       outcome.seconds);
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
      const auto next = take(*worker, std::move(*outcome), worker->round_ms);
      if (next == ClusterProgress::Next::kWindow) {
        worker->resume_at = clock.steady_now() + options.backfill_pause;
        continue;
      }
      ask(*worker, next, worker->round_ms);
      if (!worker->busy && std::exchange(worker->again, false)) {
        ask(*worker, ClusterProgress::Next::kWindow, trusted_clock.now_ms());
      }
    }
    for (auto& worker : workers) {
      if (clock.steady_now() >= worker->resume_at.value_or(Clock::SteadyTime::max())) {
        ask(*worker, ClusterProgress::Next::kWindow, worker->round_ms);
      }
    }
    std::optional<Result<AdminNames>> names;
    {
      const std::scoped_lock lock(mutex);
      names = std::exchange(fetched_admins, std::nullopt);
    }
    if (names) {
      take_admins(std::move(*names));
    }
  }

  void ask_all(std::int64_t now_ms) {
    for (auto& worker : workers) {
      if (worker->busy) {
        worker->again = true;
      } else {
        ask(*worker, ClusterProgress::Next::kWindow, now_ms);
      }
    }
    const std::scoped_lock lock(mutex);
    admins_wanted = options.grafana != nullptr;
    wake.notify_all();
  }

  void loop(const std::stop_token& stop) {
    Clock::SteadyTime next_round = clock.steady_now();
    while (!stop.stop_requested()) {
      if (const auto now = clock.steady_now(); now >= next_round) {
        // One round that was missed is made up for now; more are dropped.
        next_round = std::max(next_round + options.update_interval, now);
        if (const auto now_ms = begin_round()) {
          ask_all(*now_ms);
        }
      }
      handle_outcomes();
      publish();
      Clock::SteadyTime until = std::min(next_round, clock.steady_now() + kMaxWait);
      for (const auto& worker : workers) {
        until = std::min(until, worker->resume_at.value_or(until));
      }
      const auto pause = std::max<Clock::SteadyTime::duration>(until - clock.steady_now(),
                                                               std::chrono::milliseconds(1));
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, pause, [this] {
        return fetched_admins.has_value() || std::ranges::any_of(workers, [](const auto& worker) {
                 return worker->outcome.has_value();
               });
      });
    }
  }

  void publish() {
    UpdateFigures now = totals;
    for (const auto& worker : workers) {
      now.clusters.push_back(worker->progress.figures());
    }
    const std::scoped_lock lock(mutex);
    published = std::move(now);
  }

  const UpdateOptions options;
  store::Writer& writer;
  const Clock& clock;
  const WindowRules window_rules;
  TrustedClock trusted_clock;
  std::vector<std::unique_ptr<Worker>> workers;
  bool admins_written = false;
  bool leading = true;
  std::string admin_error, purge_error, lead_error;
  UpdateFigures totals;  ///< without clusters

  std::mutex mutex;  ///< of requests, outcomes and what follows
  std::condition_variable_any wake;
  bool admins_wanted = false;
  std::optional<Result<AdminNames>> fetched_admins;
  UpdateFigures published;
  std::mutex thread_mutex;  ///< of start and stop
  std::jthread thread;
  std::jthread admin_thread;
};

UpdateLoop::UpdateLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

UpdateLoop::~UpdateLoop() {
  stop();
}

Result<std::unique_ptr<UpdateLoop>> UpdateLoop::create(UpdateOptions options,
                                                       const std::vector<ClusterConfig>& clusters,
                                                       const std::vector<UpdaterConfig>& updaters,
                                                       store::Writer& writer,
                                                       const Clock& clock,
                                                       os::CommandRunner& runner) {
  auto zone = TimeZone::find(options.time_zone);
  if (!zone) {
    return fail(std::move(zone).error());
  }
  auto sources =
      create_sources(clusters, updaters, {.clock = &clock, .runner = &runner, .zone = *zone});
  if (!sources) {
    return fail(std::move(sources).error());
  }
  return create(std::move(options), std::move(*sources), writer, clock);
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
  auto zone = TimeZone::find(options.time_zone);
  if (!zone) {
    return fail(std::move(zone).error());
  }
  if (sources.empty()) {
    log::warn("no clusters are configured; there is nothing to update");
  }
  const WindowRules rules{.longest_ms = options.max_update_interval.count(), .zone = *zone};
  auto impl = std::make_unique<Impl>(std::move(options), writer, clock, rules);
  for (auto& source : sources) {
    impl->workers.push_back(std::make_unique<Impl::Worker>(
        std::move(source),
        ClusterProgress::Rules{.first_ms = *from, .zone = *zone, .purged_before_ms = std::nullopt},
        writer));
  }
  impl->publish();
  return std::unique_ptr<UpdateLoop>(new UpdateLoop(std::move(impl)));
}

void UpdateLoop::start() {
  const std::scoped_lock lock(impl_->thread_mutex);
  if (impl_->lead()) {
    impl_->write_configured_admins();
  }
  for (auto& worker : impl_->workers) {
    worker->thread = std::jthread([impl = impl_.get(), w = worker.get()](
                                      const std::stop_token& stop) { impl->work(*w, stop); });
  }
  if (impl_->options.grafana) {
    impl_->admin_thread = std::jthread(
        [impl = impl_.get()](const std::stop_token& stop) { impl->watch_admins(stop); });
  }
  impl_->thread =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->loop(stop); });
}

void UpdateLoop::stop() {
  const std::scoped_lock lock(impl_->thread_mutex);
  impl_->thread.request_stop();
  impl_->admin_thread.request_stop();
  for (auto& worker : impl_->workers) {
    worker->thread.request_stop();
  }
  if (impl_->thread.joinable()) {
    impl_->thread.join();
  }
  if (impl_->admin_thread.joinable()) {
    impl_->admin_thread.join();
  }
  for (auto& worker : impl_->workers) {
    if (worker->thread.joinable()) {
      worker->thread.join();
    }
  }
}

std::size_t UpdateLoop::run_round(const std::stop_token& stop) {
  using Next = ClusterProgress::Next;
  const auto round = impl_->begin_round();
  if (!round) {
    return 0;
  }
  const std::int64_t now_ms = *round;
  if (impl_->options.grafana) {
    impl_->take_admins(impl_->options.grafana->fetch(stop));
  }
  std::size_t commits = 0;
  for (auto& worker : impl_->workers) {
    const std::uint64_t before = worker->progress.figures().windows;
    Next next = Next::kWindow;
    while (next != Next::kRest && !stop.stop_requested()) {
      auto request = Impl::next_request(*worker, next, now_ms);
      if (!request) {
        break;
      }
      auto outcome = impl_->answer(worker->source, std::move(*request), stop);
      next = impl_->take(*worker, std::move(outcome), now_ms);
    }
    commits += worker->progress.figures().windows - before;
  }
  impl_->publish();
  return commits;
}

UpdateFigures UpdateLoop::figures() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->published;
}

}  // namespace ceems::ingest
