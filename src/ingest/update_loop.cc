#include "ingest/update_loop.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/time/time_zone.h"
#include "ingest/nodes/node_progress.h"
#include "ingest/trusted_clock.h"
#include "ingest/update_metrics.h"
#include "ingest/update_window.h"
#include "tsdb/client.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;
using Next = ClusterProgress::Next;

// How often the clock is read while idle, to notice that the machine slept or the clock was set.
constexpr milliseconds kMaxWait{1000};
// The longest time for which a step forward of the clock is not trusted.
constexpr milliseconds kMaxDoubt{std::chrono::minutes(15)};

}  // namespace

struct UpdateLoop::Impl {
  /// What the writing thread and the thread of a cluster pass to each other.
  struct Mailbox {
    std::optional<FetchRequest> request = {};
    std::optional<FetchAnswer> answer = {};
  };
  /// A cluster with its thread.
  struct Worker {
    Worker(std::size_t mailbox_in,
           UpdateSource source_in,
           ClusterProgress::Rules rules,
           store::Writer& writer,
           metrics::Registry& registry)
        : mailbox(mailbox_in),
          source(std::move(source_in)),
          progress(source.cluster, rules, writer, registry) {}

    const std::size_t mailbox;  ///< index in `mailboxes`
    UpdateSource source;
    std::jthread thread;

    // Used by the writing thread only.
    ClusterProgress progress;
    bool busy = false;   ///< a request is being carried out
    bool again = false;  ///< a round began while busy
    std::int64_t round_ms = 0;
    std::optional<Clock::SteadyTime> resume_at;  ///< when a backfill continues
  };

  Impl(UpdateOptions options_in,
       store::Writer& writer_in,
       metrics::Registry& registry,
       const Clock& clock_in,
       WindowRules rules)
      : options(std::move(options_in)),
        writer(writer_in),
        clock(clock_in),
        window_rules(rules),
        trusted_clock(clock_in, std::min<milliseconds>(options.update_interval, kMaxDoubt)),
        admins(options.admins, options.grafana != nullptr, writer_in),
        nodes(options.nodes, rules.zone),
        update_metrics(registry) {}

  void add_worker(UpdateSource source, ClusterProgress::Rules rules, metrics::Registry& registry) {
    workers.push_back(
        std::make_unique<Worker>(workers.size(), std::move(source), rules, writer, registry));
    const MutexLock lock(mutex);
    mailboxes.emplace_back();
  }

  // Threads of clusters and of the administrators ----------------------------------------------

  void work(Worker& worker, const std::stop_token& stop) {
    MutexLock lock(mutex);
    const auto requested = [this, &worker]() CEEMS_REQUIRES(mutex) {
      return mailboxes[worker.mailbox].request.has_value();
    };
    while (wake.wait(lock, stop, requested)) {
      FetchRequest request =
          std::exchange(mailboxes[worker.mailbox].request, std::nullopt).value_or(FetchRequest{});
      lock.unlock();
      FetchAnswer answer = fetch(worker.source, window_rules, clock, std::move(request), stop);
      lock.lock();
      mailboxes[worker.mailbox].answer = std::move(answer);
      wake.notify_all();
    }
  }

  /// Fetches the administrators from their source each time a round begins.
  void fetch_admins(const std::stop_token& stop) {
    MutexLock lock(mutex);
    while (wake.wait(lock, stop, [this]() CEEMS_REQUIRES(mutex) { return admins_wanted; })) {
      admins_wanted = false;
      lock.unlock();
      auto names = options.grafana->fetch(stop);
      lock.lock();
      fetched_admins = std::move(names);
      wake.notify_all();
    }
  }

  /// Reads the energy of nodes on request.
  void read_nodes(const std::stop_token& stop) {
    MutexLock lock(mutex);
    while (wake.wait(lock, stop,
                     [this]() CEEMS_REQUIRES(mutex) { return node_request.has_value(); })) {
      const NodeRequest request = std::exchange(node_request, std::nullopt).value_or(NodeRequest{});
      lock.unlock();
      const tsdb::CancelScope scope(stop);
      auto update = read_node_energy(*request.source, request.window);
      lock.lock();
      node_answer = std::move(update);
      wake.notify_all();
    }
  }

  // A round, on the writing thread --------------------------------------------------------------

  /// Of several programs that share a database, only one fetches and writes.
  bool lead() {
    const auto leads = writer.lead();
    const std::string error = leads ? "" : leads.error().message;
    const bool now = leads && *leads;
    if (!error.empty() && error != lead_error) {
      log::error("cannot ask the database who updates it", {{"err", error}});
    } else if (error.empty() && now != leading) {
      log::info(now ? "this program updates the database"
                    : "another program updates the database; waiting");
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

  void tell_written(bool leads) const {
    if (options.on_written) {
      options.on_written(leads);
    }
  }

  /// Deletes old units and returns the cutoff: units that ended before it are gone.
  std::int64_t purge(std::int64_t now_ms, const std::stop_token& stop) {
    const std::int64_t days =
        std::chrono::duration_cast<std::chrono::days>(options.retention).count();
    const std::int64_t cutoff =
        window_rules.zone.day_start(now_ms) - milliseconds(std::chrono::days(days)).count();
    const auto done = writer.purge(cutoff, stop);
    const std::string error = done ? "" : done.error().message;
    if (!done) {
      update_metrics.purge_failures.add();
    }
    if (!done && error != purge_error) {
      log::error("cannot purge old units", {{"err", error}});
    }
    purge_error = error;
    return cutoff;
  }

  /// Returns the round's time, or nothing if this program is not the one that updates the database.
  std::optional<std::int64_t> begin_round(const std::stop_token& stop) {
    const std::int64_t now_ms = trusted_clock.now_ms();
    const bool leads = lead();
    tell_written(leads);
    if (!leads) {
      return std::nullopt;
    }
    update_metrics.rounds.add();
    admins.write_configured();
    std::optional<std::int64_t> cutoff;
    if (options.purge) {
      cutoff = purge(now_ms, stop);
    }
    for (auto& worker : workers) {
      worker->progress.begin_round(cutoff);
    }
    nodes_due = true;
    return now_ms;
  }

  /// Writes facts of units of an old database, if there are any without.
  void fill_facts() {
    const auto more = writer.fill_facts();
    const std::string error = more ? "" : more.error().message;
    if (!error.empty() && error != fill_error) {
      log::error("cannot write the facts of units, trying again in the next round",
                 {{"err", error}});
    }
    fill_error = error;
    if (std::exchange(filling, more.value_or(false)) && !filling) {
      tell_written(leading);
    }
  }

  /// Computes sums over time that an old database lacks. They change no answer.
  void fill_sums() {
    const auto left = writer.fill_sums();  // logs its failures
    summing = left.value_or(0) > 0;
    update_metrics.sums_open.set(static_cast<double>(left.value_or(0)));
  }

  void take_admins(Result<AdminNames> names) {
    if (!admins.write_fetched(std::move(names))) {
      update_metrics.admin_failures.add();
    }
  }

  // The writing thread and its requests to the others -------------------------------------------

  /// Passes the next request to the worker's thread, if there is one.
  void ask(Worker& worker, Next next, std::int64_t now_ms) {
    worker.resume_at.reset();
    auto request = worker.progress.next_request(next, now_ms);
    worker.busy = request.has_value();
    if (!request) {
      return;
    }
    worker.round_ms = now_ms;
    const MutexLock lock(mutex);
    mailboxes[worker.mailbox].request = std::move(request);
    wake.notify_all();
  }

  void ask_all(std::int64_t now_ms) {
    for (auto& worker : workers) {
      if (worker->busy) {
        worker->again = true;
      } else {
        ask(*worker, Next::kWindow, now_ms);
      }
    }
    const MutexLock lock(mutex);
    admins_wanted = options.grafana != nullptr;
    wake.notify_all();
  }

  void take_answer(Worker& worker) {
    std::optional<FetchAnswer> answer;
    {
      const MutexLock lock(mutex);
      answer = std::exchange(mailboxes[worker.mailbox].answer, std::nullopt);
    }
    if (!answer) {
      return;
    }
    const Next next = worker.progress.take(std::move(*answer), worker.round_ms);
    tell_written(leading);
    if (next == Next::kWindow) {
      worker.resume_at = clock.steady_now() + options.backfill_pause;
      return;
    }
    ask(worker, next, worker.round_ms);
    if (!worker.busy && std::exchange(worker.again, false)) {
      ask(worker, Next::kWindow, trusted_clock.now_ms());
    }
  }

  void take_answers() {
    for (auto& worker : workers) {
      take_answer(*worker);
    }
    for (auto& worker : workers) {
      if (clock.steady_now() >= worker->resume_at.value_or(Clock::SteadyTime::max())) {
        ask(*worker, Next::kWindow, worker->round_ms);
      }
    }
    std::optional<Result<AdminNames>> names;
    {
      const MutexLock lock(mutex);
      names = std::exchange(fetched_admins, std::nullopt);
    }
    if (names) {
      take_admins(std::move(*names));
    }
  }

  /// Takes the values read of nodes, and requests the next part of a day.
  void advance_nodes() {
    std::optional<Result<store::NodeUpdate>> update;
    {
      const MutexLock lock(mutex);
      update = std::exchange(node_answer, std::nullopt);
    }
    if (update) {
      nodes.take(std::move(*update), writer);
      nodes_busy = false;
      resume_nodes_at = clock.steady_now() + options.backfill_pause;
    }
    if (nodes_busy || (!nodes_due && !resume_nodes_at) ||
        clock.steady_now() < resume_nodes_at.value_or(Clock::SteadyTime::min())) {
      return;
    }
    resume_nodes_at.reset();
    if (std::exchange(nodes_due, false)) {
      nodes.begin_round(trusted_clock.now_ms());
    }
    auto request = nodes.next(writer);
    nodes_busy = request.has_value();
    const MutexLock lock(mutex);
    node_request = std::move(request);
    wake.notify_all();
  }

  /// Waits until an answer arrives, the next round or backfill is due, or the clock must be read
  /// again.
  void wait(Clock::SteadyTime next_round, const std::stop_token& stop) {
    Clock::SteadyTime until = std::min(next_round, clock.steady_now() + kMaxWait);
    for (const auto& worker : workers) {
      until = std::min(until, worker->resume_at.value_or(until));
    }
    if (filling) {
      until = std::min(until, clock.steady_now() + options.backfill_pause);
    }
    if (summing) {  // half a second of work at a time
      until = std::min(until, clock.steady_now() + 5 * options.backfill_pause);
    }
    until = std::min(until, resume_nodes_at.value_or(until));
    const auto pause =
        std::max<Clock::SteadyTime::duration>(until - clock.steady_now(), milliseconds(1));
    MutexLock lock(mutex);
    wake.wait_for(lock, stop, pause, [this]() CEEMS_REQUIRES(mutex) {
      return fetched_admins.has_value() || node_answer.has_value() ||
             std::ranges::any_of(mailboxes,
                                 [](const Mailbox& box) { return box.answer.has_value(); });
    });
  }

  void loop(const std::stop_token& stop) {
    if (options.wait_until_ready && !options.wait_until_ready(stop)) {
      return;
    }
    Clock::SteadyTime next_round = clock.steady_now();
    while (!stop.stop_requested()) {
      if (const auto now = clock.steady_now(); now >= next_round) {
        // One missed round is made up for now; any others are dropped.
        next_round = std::max(next_round + options.update_interval, now);
        if (const auto now_ms = begin_round(stop)) {
          ask_all(*now_ms);
          filling = true;
          summing = true;
        }
      }
      take_answers();
      if (filling) {
        fill_facts();
      } else if (summing && leading) {
        fill_sums();
      }
      if (leading) {
        advance_nodes();
      }
      wait(next_round, stop);
    }
  }

  const UpdateOptions options;
  store::Writer& writer;
  const Clock& clock;
  const WindowRules window_rules;
  TrustedClock trusted_clock;
  AdminSync admins;
  NodeProgress nodes;
  UpdateMetrics update_metrics;
  std::vector<std::unique_ptr<Worker>> workers;
  bool leading = true;
  bool filling = false;                        ///< there may be units without facts
  bool summing = false;                        ///< there may be spans without sums
  bool nodes_due = false, nodes_busy = false;  ///< a round of nodes begins; one is read
  std::optional<Clock::SteadyTime> resume_nodes_at;
  std::string purge_error, lead_error, fill_error;  ///< of the last attempt, as logged

  Mutex mutex;
  Condition wake;
  std::vector<Mailbox> mailboxes CEEMS_GUARDED_BY(mutex);  ///< one for each worker
  bool admins_wanted CEEMS_GUARDED_BY(mutex) = false;
  std::optional<Result<AdminNames>> fetched_admins CEEMS_GUARDED_BY(mutex);
  std::optional<NodeRequest> node_request CEEMS_GUARDED_BY(mutex);
  std::optional<Result<store::NodeUpdate>> node_answer CEEMS_GUARDED_BY(mutex);

  Mutex thread_mutex;  ///< makes start() and stop() wait for each other
  std::jthread thread CEEMS_GUARDED_BY(thread_mutex);
  std::jthread admin_thread CEEMS_GUARDED_BY(thread_mutex);
  std::jthread node_thread CEEMS_GUARDED_BY(thread_mutex);
};

UpdateLoop::UpdateLoop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

UpdateLoop::~UpdateLoop() {
  stop();
}

Result<std::unique_ptr<UpdateLoop>> UpdateLoop::create(UpdateOptions options,
                                                       const std::vector<ClusterConfig>& clusters,
                                                       const std::vector<UpdaterConfig>& updaters,
                                                       store::Writer& writer,
                                                       metrics::Registry& registry,
                                                       const Clock& clock,
                                                       os::CommandRunner& runner) {
  CEEMS_TRY(zone, TimeZone::find(options.time_zone));
  CEEMS_TRY(sources,
            create_sources(clusters, updaters, {.clock = &clock, .runner = &runner, .zone = zone}));
  return create(std::move(options), std::move(sources), writer, registry, clock);
}

Result<std::unique_ptr<UpdateLoop>> UpdateLoop::create(UpdateOptions options,
                                                       std::vector<UpdateSource> sources,
                                                       store::Writer& writer,
                                                       metrics::Registry& registry,
                                                       const Clock& clock) {
  if (options.update_interval <= milliseconds(0) ||
      options.max_update_interval < std::chrono::seconds(1)) {
    return fail(ErrorCode::kInvalidArgument,
                "update_interval and/or max_update_interval must be more than 0s");
  }
  CEEMS_TRY(from, parse_update_from(options.update_from, options.time_zone, clock.now()));
  CEEMS_TRY(zone, TimeZone::find(options.time_zone));
  if (sources.empty()) {
    log::warn("no clusters are configured; there is nothing to update");
  }
  const WindowRules rules{.longest_ms = options.max_update_interval.count(), .zone = zone};
  auto impl = std::make_unique<Impl>(std::move(options), writer, registry, clock, rules);
  for (auto& source : sources) {
    impl->add_worker(std::move(source),
                     {.first_ms = from, .zone = zone, .purged_before_ms = std::nullopt}, registry);
  }
  return std::unique_ptr<UpdateLoop>(new UpdateLoop(std::move(impl)));
}

void UpdateLoop::start() {
  const MutexLock lock(impl_->thread_mutex);
  std::stop_source at_once;
  at_once.request_stop();
  const auto& wait = impl_->options.wait_until_ready;
  if ((!wait || wait(at_once.get_token())) && impl_->lead()) {
    impl_->admins.write_configured();
  }
  for (auto& worker : impl_->workers) {
    worker->thread = std::jthread([impl = impl_.get(), w = worker.get()](
                                      const std::stop_token& stop) { impl->work(*w, stop); });
  }
  if (impl_->options.grafana) {
    impl_->admin_thread = std::jthread(
        [impl = impl_.get()](const std::stop_token& stop) { impl->fetch_admins(stop); });
  }
  if (!impl_->options.nodes.empty()) {
    impl_->node_thread =
        std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->read_nodes(stop); });
  }
  impl_->thread =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->loop(stop); });
}

void UpdateLoop::stop() {
  const MutexLock lock(impl_->thread_mutex);
  std::vector<std::jthread*> threads = {&impl_->thread, &impl_->admin_thread, &impl_->node_thread};
  for (auto& worker : impl_->workers) {
    threads.push_back(&worker->thread);
  }
  for (std::jthread* thread : threads) {
    thread->request_stop();
  }
  for (std::jthread* thread : threads) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

std::size_t UpdateLoop::run_round(const std::stop_token& stop) {
  const auto now_ms = impl_->begin_round(stop);
  if (!now_ms) {
    return 0;
  }
  if (impl_->options.grafana) {
    impl_->take_admins(impl_->options.grafana->fetch(stop));
  }
  std::size_t commits = 0;
  for (auto& worker : impl_->workers) {
    ClusterProgress& progress = worker->progress;
    const std::uint64_t before = progress.windows_written();
    Next next = Next::kWindow;
    while (!stop.stop_requested()) {
      auto request = progress.next_request(next, *now_ms);
      if (!request) {
        break;
      }
      auto answer =
          fetch(worker->source, impl_->window_rules, impl_->clock, std::move(*request), stop);
      next = progress.take(std::move(answer), *now_ms);
      impl_->tell_written(true);
    }
    commits += progress.windows_written() - before;
  }
  do {
    impl_->fill_facts();
  } while (impl_->filling && !stop.stop_requested());
  do {
    impl_->fill_sums();
  } while (impl_->summing && !stop.stop_requested());
  impl_->nodes.begin_round(*now_ms);
  while (!stop.stop_requested()) {
    const auto request = impl_->nodes.next(impl_->writer);
    if (!request) {
      break;
    }
    impl_->nodes.take(read_node_energy(*request->source, request->window), impl_->writer);
  }
  return commits;
}

}  // namespace ceems::ingest
