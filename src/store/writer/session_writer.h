#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/time/time_zone.h"
#include "store/sql/generations.h"
#include "store/sql/session.h"
#include "store/store.h"
#include "store/sums/unit_sums.h"
#include "store/units/unit_change.h"

namespace ceems::store {

/// The writer of every database. It decides what is written; a Session runs the statements.
class SessionWriter : public Writer {
 public:
  /// `generations` count the commits. Session, clock and generations must outlive the
  /// writer.
  SessionWriter(Session& session,
                const TimeZone& zone,
                const Clock& clock,
                Generations& generations)
      : session_(&session), zone_(zone), clock_(&clock), generations_(&generations) {}

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
  Result<std::size_t> fill_sums() override;
  Result<std::size_t> store_reports(const std::vector<ReportRow>& reports) override;
  Result<> store_strips(const std::vector<UnitStrip>& strips) override;
  Result<> postpone_reports(const std::vector<ReportKey>& keys, std::int64_t due_ms) override;
  Result<> drop_reports(const std::vector<ReportKey>& keys) override;
  Result<> purge_reports(std::int64_t cutoff_ms, const std::stop_token& stop) override;
  Result<std::optional<std::int64_t>> nodes_until(const std::string& cluster_id) override;
  Result<> write_nodes(const NodeUpdate& update) override;

 private:
  /// (user, project)
  using UsageRows = std::map<std::pair<std::string, std::string>, UsageRow>;
  struct People;
  /// Units that are looked up and written at a time: enough to make the round trips to a server
  /// cheap, few enough that a refused unit costs little.
  static constexpr std::size_t kUnitsAtOnce = 256;
  /// Rows that a purge deletes in a transaction: some tenths of a second.
  static constexpr std::int64_t kPurgedAtOnce = 5000;

  enum class Changes : std::uint8_t { kAnything, kNoUsage };
  /// Runs `work` in a transaction, which is rolled back if it fails. `doing` is the context of
  /// errors.
  Result<> in_transaction(std::string_view doing,
                          const std::function<Result<>()>& work,
                          Changes changes = Changes::kAnything);

  Result<std::optional<std::int64_t>> read_watermark(std::string_view cluster_id);
  Result<> write_window(const ClusterUpdate& update, WriteReport& report);
  Result<> write_units(const Batch& batch,
                       std::span<const model::Unit* const> units,
                       UsageRows& usage,
                       UsageRows& days,
                       std::set<std::int64_t>& moments,
                       std::vector<model::Unit>* counted,
                       WriteReport& report);
  Result<> fill_in_transaction(const GapFill& fill);
  Result<> fill_units(const Batch& batch,
                      std::span<const model::Unit> units,
                      std::span<const std::string> times,
                      std::set<std::int64_t>& moments,
                      UsageRows& usage,
                      UsageRows& days);
  Result<> forget_sums(const Batch& batch, const std::set<std::int64_t>& moments);
  Result<> load_usage(const Batch& batch, bool daily, std::span<const UsageRows::iterator> rows);
  Result<> run_and_log(std::span<const std::vector<WriterCall>> groups, std::string_view what);
  Result<> write_people(const Batch& batch, const People& people);
  Result<> change_admins(std::string_view source,
                         const std::vector<std::string>& names,
                         bool replace);
  Result<> put_admins(std::string_view source, const std::vector<std::string>& names, bool replace);
  /// Deletes the rows of units or days that fulfil the condition, until they are gone. False after
  /// a stop.
  /// The last step of a purge. Other threads write with the same session, so it holds the mutex.
  virtual Result<> give_back_pages() CEEMS_REQUIRES(mutex_) { return {}; }
  Result<bool> remove_all(SumsOf what, const Sql& condition, const std::stop_token& stop);
  Result<> remove_rest(std::int64_t cutoff_ms);
  /// Computes sums over time. Returns how many spans are left.
  Result<std::size_t> sum_up(std::int64_t until_ms);

  /// Held by each public function: the finisher of reports writes from a thread of its own.
  Mutex mutex_;
  Session* session_;
  TimeZone zone_;
  const Clock* clock_;
  Generations* generations_;
  /// Units that ended earlier have been purged and are not added again.
  std::optional<std::int64_t> purged_before_ms_;
  std::string sums_error_;
  bool summing_ = false;  ///< many spans are left, and that was logged
  Clock::SteadyTime next_fill_report_, next_sums_report_;
};

}  // namespace ceems::store
