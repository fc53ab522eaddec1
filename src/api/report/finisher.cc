#include "api/report/finisher.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "access/policy.h"
#include "api/report/unit_nodes.h"
#include "api/report/verdict.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"
#include "fleet/node_health.h"
#include "report/stored.h"
#include "store/nodes.h"
#include "store/strip.h"

namespace ceems::api {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxBatch = 50;
constexpr std::size_t kMinBatch = 5;
/// CPU time that a batch should take at most, because requests need the same cores.
constexpr std::chrono::milliseconds kSlice{250};
/// Of the thread: requests of people come first.
constexpr int kNice = 10;
/// With so many open reports, the log says how the work goes on.
constexpr std::int64_t kBacklog = 1000;
/// When a cluster whose TSDB did not respond is tried again.
constexpr std::int64_t kRetryMs = kMinuteMs;
/// When a partial report is made again: a gap may have been filled, or late samples come.
constexpr std::int64_t kGapMs = 15 * kMinuteMs;
constexpr std::int64_t kLateMs = 60 * kMinuteMs;
constexpr std::int64_t kFinalAfterMs = std::int64_t{24} * 60 * kMinuteMs;
constexpr std::int64_t kPurgeMs = 60 * kMinuteMs;
/// How often the queue is checked without a notification: for partial reports, and for units whose
/// last samples were not visible yet.
constexpr milliseconds kIdle{10'000};

std::chrono::nanoseconds thread_cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string numbers_text(const advice::Finding& finding) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [name, value] : finding.values) {
    json.member(name, value);
  }
  json.end_object();
  return text;
}

std::vector<store::FindingRow> rows_of(const std::vector<advice::Finding>& findings) {
  std::vector<store::FindingRow> rows;
  rows.reserve(findings.size());
  for (const advice::Finding& finding : findings) {
    rows.push_back({.rule = finding.rule,
                    .severity = static_cast<int>(finding.severity),
                    .confidence = static_cast<int>(finding.confidence),
                    .runs = static_cast<std::int64_t>(finding.runs),
                    .saves_kwh = finding.saves_kwh,
                    .numbers = numbers_text(finding)});
  }
  return rows;
}

bool has_gap(const std::vector<store::Gap>& gaps, std::int64_t started_ms, std::int64_t ended_ms) {
  return std::ranges::any_of(gaps, [&](const store::Gap& gap) {
    return gap.window.end_ms > started_ms && gap.window.start_ms < ended_ms;
  });
}

}  // namespace

/// The due reports of one cluster.
struct Finisher::Cluster {
  std::string id = {};
  std::vector<store::DueReport> due = {};
  std::vector<store::Gap> gaps = {};
};

Finisher::Finisher(const ReportOptions& options,
                   store::Reader& reader,
                   store::Writer& writer,
                   const ReportMaker& maker,
                   metrics::Registry& registry,
                   const Clock& clock)
    : options_(options),
      reader_(reader),
      writer_(writer),
      maker_(maker),
      clock_(clock),
      queue_(registry.gauge("ceems_api_server_reports_open",
                            "Units that have ended and have no final report yet.")),
      partial_(registry
                   .counters("ceems_api_server_reports_made_total",
                             "Reports that were stored, by whether they may change.",
                             {"state"})
                   .with({"partial"})),
      final_(
          registry.counters("ceems_api_server_reports_made_total", {}, {"state"}).with({"final"})),
      failures_(registry.counter("ceems_api_server_report_failures_total",
                                 "Failed attempts to make or store a batch of reports.")),
      seconds_(registry.gauge("ceems_api_server_report_batch_duration_seconds",
                              "Time that the last batch of reports took, in seconds.")) {}

void Finisher::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void Finisher::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void Finisher::wake(bool leads) {
  const MutexLock lock(mutex_);
  leads_ = leads;
  woken_ = true;
  changed_.notify_all();
}

void Finisher::loop(const std::stop_token& stop) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // of this thread alone
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, kIdle, [this]() CEEMS_REQUIRES(mutex_) { return woken_; });
    woken_ = false;
    if (leads_ && !stop.stop_requested()) {
      lock.unlock();
      work(stop);
      lock.lock();
    }
  }
}

void Finisher::work(const std::stop_token& stop) {
  purge(clock_.now_ms(), stop);
  while (!stop.stop_requested()) {
    const auto begun = clock_.steady_now();
    const auto cpu_begun = thread_cpu_time();
    const auto done = run_batch();
    const auto taken = clock_.steady_now() - begun;
    fit_batch(thread_cpu_time() - cpu_begun);
    note(done ? nullptr : &done.error());
    if (done && done->made > 0) {
      seconds_.set(std::chrono::duration<double>(taken).count());
    }
    if (const auto open = reader_.open_reports(); open) {
      queue_.set(static_cast<double>(*open));
      log_backlog(*open, done && done->more_due);
    }
    if (!done || !done->more_due) {
      return;
    }
    // So many at most in a second, and no more than half of the time.
    const std::chrono::duration<double> share(static_cast<double>(done->made) / options_.rate);
    const std::chrono::duration<double> rest =
        std::max<std::chrono::duration<double>>(share - taken, taken);
    MutexLock lock(mutex_);
    if (!leads_) {
      return;
    }
    changed_.wait_for(lock, stop, rest, [] { return false; });
  }
}

void Finisher::fit_batch(std::chrono::nanoseconds cpu) {
  if (cpu > kSlice) {
    batch_ = std::max(batch_ / 2, kMinBatch);
  } else if (cpu < kSlice / 4) {
    batch_ = std::min(batch_ * 2, kMaxBatch);
  }
}

void Finisher::log_backlog(std::int64_t open, bool more_due) {
  constexpr auto kEvery = std::chrono::minutes(1);
  const auto now = clock_.steady_now();
  if (!more_due) {
    if (std::exchange(backlog_logged_, {})) {
      log::info("the reports that were due have been made", {{"open", open}});
    }
  } else if (open >= kBacklog && (!backlog_logged_ || now - *backlog_logged_ >= kEvery)) {
    backlog_logged_ = now;
    log::info("making the reports of units that have ended",
              {{"open", open}, {"per_second", options_.rate}});
  }
}

void Finisher::note(const Error* error) {
  const std::string now = error == nullptr ? "" : error->message;
  if (error != nullptr) {
    failures_.add();
  }
  if (!now.empty() && now != error_) {
    log::error("cannot store reports, trying again", {{"err", now}});
  }
  error_ = now;
}

void Finisher::purge(std::int64_t now_ms, const std::stop_token& stop) {
  if (now_ms < next_purge_ms_) {
    return;
  }
  next_purge_ms_ = now_ms + kPurgeMs;
  if (const auto done = writer_.purge_reports(now_ms - options_.keep.count(), stop); !done) {
    note(&done.error());
  }
}

Result<Finisher::Outcome> Finisher::run_batch() {
  const std::int64_t now = clock_.now_ms();
  CEEMS_TRY(complete, reader_.facts_complete());
  if (!complete) {  // families are not
    return Outcome{};
  }
  std::vector<std::string> without;
  for (const auto& [cluster, retry_ms] : retry_ms_) {
    if (retry_ms > now) {
      without.push_back(cluster);
    }
  }
  CEEMS_TRY(due, reader_.due_reports(now, now - kSettleMs, without, batch_));
  std::vector<Cluster> clusters;
  for (const store::DueReport& one : due) {
    auto found = std::ranges::find(clusters, one.key.cluster_id, &Cluster::id);
    if (found == clusters.end()) {
      found = clusters.insert(clusters.end(), {.id = one.key.cluster_id});
    }
    found->due.push_back(one);
  }
  Outcome outcome{.made = 0, .more_due = due.size() == batch_};
  for (Cluster& cluster : clusters) {
    CEEMS_TRY(made, finish(cluster, now));
    outcome.made += made;
  }
  return outcome;
}

/// The units whose reports are to be made. Partial reports wait for gaps, and reports of removed
/// units are dropped.
Result<std::vector<StoredUnit>> Finisher::read_units(Cluster& cluster, std::int64_t now_ms) {
  std::vector<store::ReportKey> waiting;
  std::map<store::ReportKey, std::int64_t> wanted;  // with their ends
  store::UnitQuery query;
  for (const store::DueReport& one : cluster.due) {
    if (one.state == store::ReportState::kPartial && now_ms - one.ended_at_ts < kFinalAfterMs &&
        has_gap(cluster.gaps, one.key.started_at_ts, one.ended_at_ts)) {
      waiting.push_back(one.key);
    } else {
      wanted.emplace(one.key, one.ended_at_ts);
      query.uuids.push_back(one.key.uuid);
    }
  }
  Result<std::vector<StoredUnit>> units;
  if (!wanted.empty()) {
    query.owners = access::all_rows_for_reports();
    query.clusters = {cluster.id};
    units = read_stored_units(reader_, query);
  }
  if (!units) {
    return units;
  }
  std::erase_if(*units, [&](const StoredUnit& stored) {
    const auto found = wanted.find(key_of(stored.unit));
    if (found == wanted.end()) {
      return true;  // another run of the same ID
    }
    const bool same = found->second == stored.unit.ended_at_ts;
    if (!same) {  // changed since
      waiting.push_back(found->first);
    }
    wanted.erase(found);
    return !same;
  });
  Result<> done;
  if (!waiting.empty()) {
    done = writer_.postpone_reports(waiting, now_ms + kGapMs);
  }
  if (done && !wanted.empty()) {
    std::vector<store::ReportKey> gone;
    gone.reserve(wanted.size());
    for (const auto& [key, ended] : wanted) {
      gone.push_back(key);
    }
    done = writer_.drop_reports(gone);
  }
  return done ? std::move(units) : fail(std::move(done).error());
}

Result<std::size_t> Finisher::finish(Cluster& cluster, std::int64_t now_ms) {
  // Before the units: what has been filled in since then is in them.
  CEEMS_TRY(gaps, writer_.gaps(cluster.id));
  cluster.gaps = std::move(gaps);
  CEEMS_TRY(units, read_units(cluster, now_ms));
  const auto members = access::all_rows_for_reports();
  CEEMS_TRY(made, maker_.make_all(units, members, now_ms));
  const bool measures = maker_.measures(cluster.id);
  const bool refused = made.missing && made.missing->code == ErrorCode::kInvalidArgument;
  if (measures && made.missing && !refused) {
    failures_.add();
    retry_ms_[cluster.id] = now_ms + kRetryMs;
    return 0;
  }
  retry_ms_.erase(cluster.id);
  if (!measures || !refused) {
    return store(cluster, units, made, now_ms);
  }
  // One of them asks too much of the TSDB: the others must not suffer from it.
  std::size_t stored = 0;
  for (const StoredUnit& unit : units) {
    CEEMS_TRY(one, maker_.make_all({unit}, members, now_ms));
    CEEMS_TRY(done, store(cluster, {unit}, one, now_ms));
    stored += done;
  }
  return stored;
}

Result<std::size_t> Finisher::store(const Cluster& cluster,
                                    const std::vector<StoredUnit>& units,
                                    const MadeReports& made,
                                    std::int64_t now_ms) {
  const bool measures = maker_.measures(cluster.id);
  CEEMS_TRY(classes, classes_for(cluster.id, made));
  std::vector<store::ReportRow> rows;
  rows.reserve(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    const model::Unit& unit = units[i].unit;
    const report::Report& report = made.reports[i].report;
    const bool gap = has_gap(cluster.gaps, unit.started_at_ts, unit.ended_at_ts);
    // Nothing is said about short runs, so nothing is to be waited for.
    const bool covered = !measures || report.coverage.value_or(0) >= advice::kCoverage ||
                         report.job.elapsed.value_or(0) < advice::kShortestRun;
    const std::int64_t last_ms = unit.ended_at_ts + kFinalAfterMs;
    rows.push_back({.key = key_of(unit),
                    .ended_at_ts = unit.ended_at_ts,
                    .final = now_ms >= last_ms || (covered && !gap),
                    .due_ms = std::min(now_ms + (gap ? kGapMs : kLateMs), last_ms),
                    .made_ms = now_ms,
                    .version = report::kStoredVersion,
                    .coverage = report.coverage,
                    .numbers = made.reports[i].numbers,
                    .body = report::to_stored(report),
                    .findings = rows_of(report.findings),
                    .verdict = verdict_of(report),
                    .on = on_nodes(units[i], made.reports[i].nodes, classes)});
  }
  if (rows.empty()) {
    return 0;
  }
  CEEMS_TRY(final, writer_.store_reports(rows));
  final_.add(final);
  partial_.add(
      static_cast<std::uint64_t>(std::ranges::count(rows, false, &store::ReportRow::final)));
  if (measures) {
    CEEMS_TRY(store_strips(cluster.id, rows));
  }
  return rows.size();
}

/// The classes of the cluster's nodes, if a unit has enough nodes to compare.
Result<std::map<std::string, std::string>> Finisher::classes_for(const std::string& cluster_id,
                                                                 const MadeReports& made) {
  std::map<std::string, std::string> classes;
  if (std::ranges::none_of(made.reports, [](const MadeReport& one) {
        return one.nodes.size() >= fleet::kLeastPeers;
      })) {
    return classes;
  }
  CEEMS_TRY(nodes, reader_.known_nodes({cluster_id}));
  for (store::KnownNode& node : nodes) {
    classes.emplace(node.facts.node, class_of(node.facts));
  }
  return classes;
}

Result<> Finisher::store_strips(const std::string& cluster_id,
                                const std::vector<store::ReportRow>& rows) {
  std::vector<store::UnitStrip> strips;
  for (const store::ReportRow& row : rows) {
    if (!row.final || row.coverage.value_or(0) <= 0) {
      continue;
    }
    const auto strip = maker_.strip(cluster_id, {.uuid = row.key.uuid,
                                                 .started_ms = row.key.started_at_ts,
                                                 .ended_ms = row.ended_at_ts,
                                                 .until_ms = row.ended_at_ts});
    if (!strip && strip.error().code != ErrorCode::kInvalidArgument) {
      break;  // the others would wait as long
    }
    if (std::string text = strip ? store::strip_text(*strip) : std::string(); !text.empty()) {
      strips.push_back({.key = row.key, .text = std::move(text)});
    }
  }
  return strips.empty() ? Result<>() : writer_.store_strips(strips);
}

}  // namespace ceems::api
