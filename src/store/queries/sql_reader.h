#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/reader.h"
#include "store/sql/pool.h"
#include "store/sql/sql.h"
#include "store/sql/upgrading.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {

/// The queries of the API, the same for every database. Subclasses run them.
class SqlReader : public Reader {
 public:
  Result<> ping() override;
  Result<bool> is_admin(std::string_view user) override;
  Result<bool> knows_user(std::string_view user) override;
  Result<std::vector<ClusterProject>> led_projects(std::string_view user) override;
  Result<std::vector<std::string>> leads_of(std::string_view cluster_id,
                                            std::string_view project) override;
  Result<std::map<std::string, std::int64_t>> watermarks() override;
  Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) override;
  Result<std::size_t> count_member_units(const Scope& members,
                                         const std::vector<std::string>& clusters,
                                         const std::vector<std::string>& uuids) override;
  Result<std::vector<UnitLife>> unit_lives(const Scope& members,
                                           const std::string& cluster,
                                           const std::vector<std::string>& uuids) override;
  Result<std::unique_ptr<Cursor>> users(const Scope& scope,
                                        const std::vector<std::string>& clusters) override;
  Result<std::unique_ptr<Cursor>> admins() override;
  Result<std::unique_ptr<Cursor>> projects(const UsageQuery& query) override;
  Result<std::unique_ptr<Cursor>> clusters() override;
  Result<std::unique_ptr<Cursor>> stats(const std::vector<std::string>& clusters,
                                        const std::optional<TimeRange>& ended) override;
  Result<std::unique_ptr<Cursor>> usage(const UsageQuery& query, FieldList fields) override;
  Result<std::vector<UsageGroup>> current_usage(const CurrentUsageQuery& query) override;
  Result<std::unique_ptr<Cursor>> unit_facts(const FactListQuery& query) override;
  Result<bool> has_more_units(const FactFilter& filter, std::int64_t limit) override;
  Result<UnitSummary> unit_summary(const SummaryQuery& query) override;
  Result<std::vector<UnitKind>> unit_kinds(const KindQuery& query) override;
  Result<std::vector<UsageOfDay>> usage_by_day(const UsageSeriesQuery& query) override;
  Result<std::int64_t> first_usage_day(const TimeRange& days,
                                       const std::vector<std::string>& clusters) override;
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
  Result<std::vector<model::Flavor>> flavors(const std::string& cluster_id) override;
  Result<std::vector<std::string>> rules_found(const ReportKey& key) override;
  Result<std::vector<Feedback>> feedback_of(const ReportKey& key,
                                            const std::string& username) override;
  Result<std::vector<FeedbackSum>> feedback_by_rule() override;
  Result<std::vector<NodeEffect>> node_effects(const std::string& cluster_id,
                                               std::int64_t from_ms) override;
  Result<std::unique_ptr<Cursor>> ended_units(std::int64_t after,
                                              std::size_t limit,
                                              FieldList fields) override;
  Result<EndedBacklog> ended_backlog(std::int64_t after) override;
  Result<std::optional<Token>> find_token(const std::string& hash) override;
  Result<std::vector<Token>> tokens_of(const std::optional<std::string>& username) override;

 protected:
  /// The limit of short questions. Queries with a longer one are listings.
  static constexpr std::chrono::seconds kShortLimit{10};
  /// People wait for lists, so a slower one is of no use.
  static constexpr std::chrono::seconds kFactLimit{2};
  /// A listing is streamed while the client reads it. The reference allows it the same time.
  static constexpr std::chrono::minutes kListLimit{5};
  static Use use_of(std::chrono::milliseconds limit) {
    return limit > kShortLimit ? Use::kListing : Use::kShort;
  }

  /// `upgrade`, which may be null, must outlive the reader.
  SqlReader(Dialect dialect, const UpgradeInUse* upgrade) : dialect_(dialect), upgrade_(upgrade) {}

  /// The version of the reference's tables (schema/column.h).
  [[nodiscard]] virtual int reference() const { return kNewestReference; }

  /// Starts a query on a free connection, also while the database is upgraded. It fails with
  /// kTimeout after `limit`. For questions about people, projects, clusters and who owns a unit.
  virtual Result<std::unique_ptr<Cursor>> open_early(const Sql& sql,
                                                     std::chrono::milliseconds limit) = 0;

 private:
  /// open_early() for a question about who may see a unit (Sql::and_seen_among()).
  Result<std::unique_ptr<Cursor>> open_seen(const std::function<Sql(bool since)>& statement);
  /// The same, but fails with kUnavailable while the database is upgraded.
  Result<std::unique_ptr<Cursor>> open(const Sql& sql, std::chrono::milliseconds limit);
  /// The spans in the range whose sums are valid.
  Result<Spans> known_spans(SumsOf what, const TimeRange& range);
  /// Answers stats() from the units, without the sums.
  Result<std::unique_ptr<Cursor>> count_units(const std::vector<std::string>& clusters,
                                              const std::optional<TimeRange>& ended);
  /// Whether the range has so few units that reading their rows costs less than an index of all.
  Result<bool> has_few_units(const TimeRange& ended);
  [[nodiscard]] Sql query_of(std::string_view text) const { return {dialect_, text}; }

  Dialect dialect_;
  const UpgradeInUse* upgrade_;
};

}  // namespace ceems::store
