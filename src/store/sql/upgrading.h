#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "store/nodes.h"
#include "store/reader.h"
#include "store/store.h"

namespace ceems::store {

/// Whether a database that is upgraded while it is in use is ready. Thread-safe.
class UpgradeState {
 public:
  /// Called once. Nothing: the upgrade succeeded.
  void finish(std::optional<Error> error);
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] bool finished() const { return finished_; }
  /// Waits for finish(). False after an error or a stop.
  bool wait(const std::stop_token& stop);
  /// What answers get meanwhile: kUnavailable.
  [[nodiscard]] Error error() const;

 private:
  std::atomic<bool> ready_ = false;
  std::atomic<bool> finished_ = false;
  Mutex mutex_;  ///< for changed_
  Condition changed_;
};

/// Reads a file of the reference's version 9, or an older database of ours, while it is upgraded.
/// Questions about people, projects, clusters and who owns a unit are answered as before the
/// upgrade. Queries of units, usage and counts fail with kUnavailable, because the indexes that
/// they need do not exist yet.
class UpgradingReader final : public Reader {
 public:
  /// Both must outlive it.
  UpgradingReader(Reader& reader, const UpgradeState& state) : reader_(&reader), state_(&state) {}

  Result<> ping() override { return reader_->ping(); }
  [[nodiscard]] std::uint64_t generation() const override { return reader_->generation(); }
  Result<bool> is_admin(std::string_view user) override { return reader_->is_admin(user); }
  Result<std::map<std::string, std::int64_t>> watermarks() override {
    return reader_->watermarks();
  }
  Result<std::vector<ClusterProject>> led_projects(std::string_view user) override {
    return reader_->led_projects(user);
  }
  Result<std::vector<std::string>> leads_of(std::string_view cluster_id,
                                            std::string_view project) override {
    return reader_->leads_of(cluster_id, project);
  }
  Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) override;
  Result<std::size_t> count_member_units(const Scope& members,
                                         const std::vector<std::string>& clusters,
                                         const std::vector<std::string>& uuids) override {
    return reader_->count_member_units(members, clusters, uuids);
  }
  Result<std::vector<UnitLife>> unit_lives(const Scope& members,
                                           const std::string& cluster,
                                           const std::vector<std::string>& uuids) override {
    return reader_->unit_lives(members, cluster, uuids);
  }
  Result<std::unique_ptr<Cursor>> users(const Scope& scope,
                                        const std::vector<std::string>& clusters) override {
    return reader_->users(scope, clusters);
  }
  Result<std::unique_ptr<Cursor>> admins() override { return reader_->admins(); }
  Result<std::unique_ptr<Cursor>> projects(const UsageQuery& query) override {
    return reader_->projects(query);
  }
  Result<std::unique_ptr<Cursor>> clusters() override { return reader_->clusters(); }
  Result<std::unique_ptr<Cursor>> stats(const std::vector<std::string>& clusters,
                                        const std::optional<TimeRange>& ended) override;
  Result<std::unique_ptr<Cursor>> usage(const UsageQuery& query, FieldList fields) override;
  Result<std::vector<UsageGroup>> current_usage(const CurrentUsageQuery& query) override;
  Result<std::unique_ptr<Cursor>> unit_facts(const FactListQuery& query) override;
  Result<bool> has_more_units(const FactFilter& filter, std::int64_t limit) override;
  Result<UnitSummary> unit_summary(const SummaryQuery& query) override;
  Result<std::vector<UsageOfDay>> usage_by_day(const UsageSeriesQuery& query) override;
  Result<bool> facts_complete() override;
  Result<std::optional<StoredReport>> stored_report(const ReportKey& key) override;
  Result<std::vector<FamilyRun>> family_runs(const FamilyQuery& query) override;
  Result<std::vector<DueReport>> due_reports(std::int64_t now_ms,
                                             std::int64_t ended_before_ms,
                                             const std::vector<std::string>& without,
                                             std::size_t limit) override;
  Result<std::int64_t> open_reports() override;
  Result<std::vector<UnitFinding>> findings(const FindingQuery& query) override;
  Result<std::vector<NodeDay>> node_days(const std::vector<std::string>& clusters,
                                         const TimeRange& days) override;
  Result<std::vector<KnownNode>> known_nodes(const std::vector<std::string>& clusters) override;
  Result<std::vector<Bill>> bills(const TimeRange& period) override;

 private:
  Reader* reader_;
  const UpgradeState* state_;
};

/// Writes to a database once it has been upgraded; until then every call fails with kUnavailable.
class UpgradingWriter final : public Writer {
 public:
  /// It must outlive it.
  explicit UpgradingWriter(const UpgradeState& state) : state_(&state) {}
  /// The writer of the upgraded database; set before UpgradeState::finish().
  void set(Writer& writer) { writer_ = &writer; }

  Result<bool> lead() override;
  Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) override;
  Result<model::AccountNames> account_names(const std::string& cluster_id) override;
  Result<WriteReport> write(const ClusterUpdate& update) override;
  Result<> write_admins(std::string_view source, const std::vector<std::string>& names) override;
  Result<> add_admins(std::string_view source, const std::vector<std::string>& names) override;
  Result<> purge(std::int64_t cutoff_ms, const std::stop_token& stop) override;
  [[nodiscard]] bool keeps_gaps() const override { return true; }
  Result<std::vector<Gap>> gaps(std::string_view cluster_id) override;
  Result<std::vector<model::Unit>> gap_units(std::int64_t gap_id) override;
  Result<> fill_gap(const GapFill& fill) override;
  Result<bool> fill_facts() override;
  Result<std::size_t> store_reports(const std::vector<ReportRow>& reports) override;
  Result<> postpone_reports(const std::vector<ReportKey>& keys, std::int64_t due_ms) override;
  Result<> drop_reports(const std::vector<ReportKey>& keys) override;
  Result<> purge_reports(std::int64_t cutoff_ms) override;
  Result<std::optional<std::int64_t>> nodes_until(const std::string& cluster_id) override;
  Result<> write_nodes(const NodeUpdate& update) override;

 private:
  template <typename Call>
  auto when_ready(const Call& call) -> decltype(call(std::declval<Writer&>())) {
    if (!state_->ready()) {
      return fail(state_->error());
    }
    return call(*writer_);
  }

  const UpgradeState* state_;
  Writer* writer_ = nullptr;
};

/// What a database that is upgraded while it is in use gives to its users.
class UpgradeInUse {
 public:
  /// `reader` must outlive it. `on_failed` may be empty.
  UpgradeInUse(Reader& reader, std::function<void(const Error&)> on_failed)
      : reader_(reader, state_), on_failed_(std::move(on_failed)) {}

  /// Runs `work` on a thread of its own. It returns the writer of the upgraded database, which must
  /// outlive this object.
  void start(std::function<Result<Writer*>(const std::stop_token& stop)> work);
  /// Ends the thread. Calls `interrupt`, if there is one, again and again until `work` has
  /// returned.
  void stop(const std::function<void()>& interrupt = {});

  [[nodiscard]] UpgradingReader& reader() { return reader_; }
  [[nodiscard]] UpgradingWriter& writer() { return writer_; }
  [[nodiscard]] UpgradeState& state() { return state_; }

 private:
  UpgradeState state_;
  UpgradingReader reader_;
  UpgradingWriter writer_{state_};
  std::function<void(const Error&)> on_failed_;
  std::jthread thread_;
};

}  // namespace ceems::store
