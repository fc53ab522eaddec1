#include "store/sql/upgrading.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "store/facts.h"
#include "store/reports.h"

namespace ceems::store {

void UpgradeState::finish(std::optional<Error> error) {
  ready_ = !error;
  const MutexLock lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool UpgradeState::wait(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return changed_.wait(lock, stop, [this] { return finished_.load(); }) && ready_;
}

Error UpgradeState::error() const {
  return Error{ErrorCode::kUnavailable, "the database is being upgraded"};
}

Result<std::unique_ptr<Cursor>> UpgradingReader::units(const UnitQuery& query, FieldList fields) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->units(query, fields);
}

Result<std::unique_ptr<Cursor>> UpgradingReader::stats(const std::vector<std::string>& clusters,
                                                       const std::optional<TimeRange>& ended) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->stats(clusters, ended);
}

Result<std::unique_ptr<Cursor>> UpgradingReader::usage(const UsageQuery& query, FieldList fields) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->usage(query, fields);
}

Result<std::unique_ptr<Cursor>> UpgradingReader::unit_facts(const FactListQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->unit_facts(query);
}

Result<bool> UpgradingReader::has_more_units(const FactFilter& filter, std::int64_t limit) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->has_more_units(filter, limit);
}

Result<UnitSummary> UpgradingReader::unit_summary(const SummaryQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->unit_summary(query);
}

Result<std::vector<UsageOfDay>> UpgradingReader::usage_by_day(const UsageSeriesQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->usage_by_day(query);
}

Result<bool> UpgradingReader::facts_complete() {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->facts_complete();
}

Result<std::optional<StoredReport>> UpgradingReader::stored_report(const ReportKey& key) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->stored_report(key);
}

Result<std::vector<FamilyRun>> UpgradingReader::family_runs(const FamilyQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->family_runs(query);
}

Result<std::vector<DueReport>> UpgradingReader::due_reports(std::int64_t now_ms,
                                                            std::int64_t ended_before_ms,
                                                            const std::vector<std::string>& without,
                                                            std::size_t limit) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->due_reports(now_ms, ended_before_ms, without, limit);
}

Result<std::int64_t> UpgradingReader::open_reports() {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->open_reports();
}

Result<std::vector<UnitFinding>> UpgradingReader::findings(const FindingQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->findings(query);
}

Result<std::vector<NodeDay>> UpgradingReader::node_days(const std::vector<std::string>& clusters,
                                                        const TimeRange& days) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->node_days(clusters, days);
}

Result<std::vector<KnownNode>> UpgradingReader::known_nodes(
    const std::vector<std::string>& clusters) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->known_nodes(clusters);
}

Result<std::vector<Bill>> UpgradingReader::bills(const TimeRange& period) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->bills(period);
}

Result<std::vector<UsageGroup>> UpgradingReader::current_usage(const CurrentUsageQuery& query) {
  if (!state_->ready()) {
    return fail(state_->error());
  }
  return reader_->current_usage(query);
}

Result<bool> UpgradingWriter::lead() {
  return when_ready([](Writer& writer) { return writer.lead(); });
}

Result<std::optional<std::int64_t>> UpgradingWriter::watermark(std::string_view cluster_id) {
  return when_ready([&](Writer& writer) { return writer.watermark(cluster_id); });
}

Result<model::AccountNames> UpgradingWriter::account_names(const std::string& cluster_id) {
  return when_ready([&](Writer& writer) { return writer.account_names(cluster_id); });
}

Result<WriteReport> UpgradingWriter::write(const ClusterUpdate& update) {
  return when_ready([&](Writer& writer) { return writer.write(update); });
}

Result<> UpgradingWriter::write_admins(std::string_view source,
                                       const std::vector<std::string>& names) {
  return when_ready([&](Writer& writer) { return writer.write_admins(source, names); });
}

Result<> UpgradingWriter::add_admins(std::string_view source,
                                     const std::vector<std::string>& names) {
  return when_ready([&](Writer& writer) { return writer.add_admins(source, names); });
}

Result<> UpgradingWriter::purge(std::int64_t cutoff_ms, const std::stop_token& stop) {
  return when_ready([&](Writer& writer) { return writer.purge(cutoff_ms, stop); });
}

Result<std::vector<Gap>> UpgradingWriter::gaps(std::string_view cluster_id) {
  return when_ready([&](Writer& writer) { return writer.gaps(cluster_id); });
}

Result<std::vector<model::Unit>> UpgradingWriter::gap_units(std::int64_t gap_id) {
  return when_ready([&](Writer& writer) { return writer.gap_units(gap_id); });
}

Result<> UpgradingWriter::fill_gap(const GapFill& fill) {
  return when_ready([&](Writer& writer) { return writer.fill_gap(fill); });
}

Result<bool> UpgradingWriter::fill_facts() {
  return when_ready([](Writer& writer) { return writer.fill_facts(); });
}

Result<std::size_t> UpgradingWriter::store_reports(const std::vector<ReportRow>& reports) {
  return when_ready([&](Writer& writer) { return writer.store_reports(reports); });
}

Result<> UpgradingWriter::postpone_reports(const std::vector<ReportKey>& keys,
                                           std::int64_t due_ms) {
  return when_ready([&](Writer& writer) { return writer.postpone_reports(keys, due_ms); });
}

Result<> UpgradingWriter::drop_reports(const std::vector<ReportKey>& keys) {
  return when_ready([&](Writer& writer) { return writer.drop_reports(keys); });
}

Result<> UpgradingWriter::purge_reports(std::int64_t cutoff_ms) {
  return when_ready([&](Writer& writer) { return writer.purge_reports(cutoff_ms); });
}

Result<std::optional<std::int64_t>> UpgradingWriter::nodes_until(const std::string& cluster_id) {
  return when_ready([&](Writer& writer) { return writer.nodes_until(cluster_id); });
}

Result<> UpgradingWriter::write_nodes(const NodeUpdate& update) {
  return when_ready([&](Writer& writer) { return writer.write_nodes(update); });
}

void UpgradeInUse::start(std::function<Result<Writer*>(const std::stop_token& stop)> work) {
  thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
    auto writer = work(stop);
    if (writer) {
      writer_.set(**writer);
      state_.finish(std::nullopt);
      return;
    }
    if (on_failed_ && !stop.stop_requested()) {
      on_failed_(writer.error());
    } else if (!stop.stop_requested()) {
      log::error("cannot upgrade the database", {{"err", writer.error().message}});
    }
    state_.finish(writer.error());
  });
}

void UpgradeInUse::stop(const std::function<void()>& interrupt) {
  constexpr std::chrono::milliseconds kPause{20};
  if (!thread_.joinable()) {
    return;
  }
  thread_.request_stop();
  while (interrupt && !state_.finished()) {
    interrupt();
    std::this_thread::sleep_for(kPause);
  }
  thread_.join();
}

}  // namespace ceems::store
