#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/flavor.h"
#include "model/unit.h"
#include "store/ended_units.h"
#include "store/feedback.h"
#include "store/fields.h"
#include "store/node_effects.h"
#include "store/schema/sums_columns.h"
#include "store/tags.h"
#include "store/tokens.h"

namespace ceems::store {

/// A project of one cluster. Projects of the same name in two clusters are different.
struct ClusterProject {
  std::string cluster_id = {}, project = {};
};

/// Whose rows a query may read. The default value allows none. Only access/ builds it.
struct Scope {
  bool everybody = false;
  std::vector<std::string> names = {};
  /// Also the service account "p:svc" of each of these projects, in those clusters where one of
  /// `names` is a member of p.
  std::vector<std::string> service_projects = {};
  /// Also all rows of these projects, regardless of their owner: units, usage and the projects
  /// themselves.
  std::vector<ClusterProject> led_projects = {};
};

/// Identifies a unit.
struct UnitKey {
  std::string cluster_id = {}, uuid = {}, started_at = {};
};

/// Epoch milliseconds, both ends included.
struct TimeRange {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

/// When a unit lived, in epoch milliseconds. 0 means not known, or not yet.
struct UnitLife {
  std::string uuid = {};
  bool in_scope = false;  ///< the scope has its owner or a member of its project, or leads that
  std::int64_t created_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
};

/// How units are ordered. Their keys are compared by bytes.
enum class UnitOrder : std::uint8_t {
  kById,   ///< by UnitKey
  kByEnd,  ///< by end, then by UnitKey; those that have not ended come after all others
};

/// Which units to read. Empty lists do not restrict.
struct UnitQuery {
  Scope owners;  ///< by user name
  std::vector<std::string> projects, clusters, uuids;
  /// Only units that ended in the range and, with `running`, also those that have not ended.
  /// Without a range all units are read and `running` has no effect.
  std::optional<TimeRange> ended;
  bool running = false;
  UnitOrder order = UnitOrder::kById;
  bool descending = false;
  /// At most this many; 0: all. `after` is the key of the last row of the page before: the listing
  /// continues behind it, whatever rows have been added or deleted in between.
  std::size_t limit = 0;
  std::optional<UnitKey> after;
  std::int64_t after_ended_ms = 0;  ///< with kByEnd: when that row ended; 0: it had not
};

/// Which rows of usage to read. Empty lists do not restrict.
struct UsageQuery {
  /// Must have the row's user or a member of the row's project in the row's cluster, or lead it. Of
  /// projects(): the latter two.
  Scope members = {};
  std::vector<std::string> projects = {}, clusters = {};
};

struct CurrentUsageQuery {
  UsageQuery rows;
  TimeRange updated;                 ///< by the row's last update
  bool daily = false;                ///< over days instead of units
  bool terminated_only = false;      ///< units that have ended; not for days
  std::vector<TagFilter> tags = {};  ///< units with these tags; not for days, which have none
  /// Groups are by cluster, user and project, and also by these:
  bool by_groupname = false;
  bool by_resource_manager = false;
  /// Which of total_time_seconds and the metrics to read, by their place after kUsageTimes.
  WantedMaps maps{};
};

/// What one user used in one project of one cluster. A text that differs between the rows of the
/// group is that of the first row.
struct UsageGroup {
  std::string cluster_id, resource_manager, project, groupname, username;
  std::int64_t num_units = 0;
  std::array<model::MetricMap, model::kMetricCount + 1> maps;
};

/// The rows of a query, read one by one from one snapshot of the database. Used by one thread at a
/// time, not always the same one. It occupies a connection, so destroy it soon.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Moves to the next row; false at the end. Texts of the row before become invalid.
  virtual Result<bool> next() = 0;
  // Columns count from 0, in the order of the requested fields.
  [[nodiscard]] virtual std::string_view text(std::size_t column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(std::size_t column) const = 0;
};

/// The fields to read, as indexes into unit_fields() and so on.
using FieldList = std::span<const std::size_t>;

// store/facts.h
struct FactFilter;
struct FactListQuery;
struct SummaryQuery;
struct KindQuery;
struct UnitKind;
struct UnitSummary;
struct UsageSeriesQuery;
struct UsageOfDay;

// store/reports.h
struct StoredReport;
struct FamilyQuery;
struct FamilyRun;
struct DueReport;
struct FindingQuery;
struct UnitFinding;
// store/nodes.h
struct NodeDay;
struct KnownNode;
struct Bill;

/// The reading half of the database. Safe for concurrent use. Errors: kUnavailable if no connection
/// becomes free, the server does not answer or the file is locked; kTimeout after 5 minutes for a
/// listing and 10 s for other queries; kParse for a damaged file. Messages are for the log, not for
/// clients.
class Reader {
 public:
  virtual ~Reader() = default;

  /// Succeeds if the database answers queries.
  virtual Result<> ping() = 0;
  /// Grows with every commit that may change the result of a query.
  [[nodiscard]] virtual std::uint64_t generation() const = 0;
  /// Grows with every commit that may change a query of usage or of people. Commits of reports,
  /// facts and nodes do not count.
  [[nodiscard]] virtual std::uint64_t usage_generation() const { return generation(); }

  virtual Result<bool> is_admin(std::string_view user) = 0;
  /// Whether a cluster has a user or a unit of this name, or there are no units at all yet.
  virtual Result<bool> knows_user(std::string_view user);
  /// The projects that the user leads according to the resource managers, by cluster and name.
  virtual Result<std::vector<ClusterProject>> led_projects(std::string_view user) = 0;
  /// Who leads a project on a cluster (empty: on any) according to the resource managers, by name.
  virtual Result<std::vector<std::string>> leads_of(std::string_view cluster_id,
                                                    std::string_view project) = 0;

  /// Units without the flag `ignore`, in the order of the query.
  virtual Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) = 0;
  /// How many distinct `uuids` have a unit in one of the clusters whose owner or a member of whose
  /// project is in the scope, or whose project is led by it. Includes units with the flag `ignore`.
  virtual Result<std::size_t> count_member_units(const Scope& members,
                                                 const std::vector<std::string>& clusters,
                                                 const std::vector<std::string>& uuids) = 0;

  /// All units of the cluster with these uuids, by uuid and start. Includes units with the flag
  /// `ignore`.
  virtual Result<std::vector<UnitLife>> unit_lives(const Scope& members,
                                                   const std::string& cluster,
                                                   const std::vector<std::string>& uuids) = 0;

  // The cursors of the next five have all fields of user_fields(), project_fields() and so on.

  /// Users, ordered by cluster and name.
  virtual Result<std::unique_ptr<Cursor>> users(const Scope& scope,
                                                const std::vector<std::string>& clusters) = 0;
  /// All admins, with user_fields().
  virtual Result<std::unique_ptr<Cursor>> admins() = 0;
  /// Projects with at least one member in the scope, or led by it, ordered by cluster and name.
  virtual Result<std::unique_ptr<Cursor>> projects(const UsageQuery& query) = 0;
  /// Clusters that have units.
  virtual Result<std::unique_ptr<Cursor>> clusters() = 0;
  /// Counts per cluster: of all units, or of those that ended in the range or still run.
  virtual Result<std::unique_ptr<Cursor>> stats(const std::vector<std::string>& clusters,
                                                const std::optional<TimeRange>& ended) = 0;

  /// Rows of `usage` as stored, ordered by cluster, user and project.
  virtual Result<std::unique_ptr<Cursor>> usage(const UsageQuery& query, FieldList fields) = 0;
  /// Sums and averages over units or days, by cluster, user and project. A name that is in a map of
  /// one group is in that map of all groups, with 0 where the group has no value, except for least
  /// and greatest values.
  virtual Result<std::vector<UsageGroup>> current_usage(const CurrentUsageQuery& query) = 0;

  // Queries of the facts of units (store/facts.h). Those with a limit to what they read fail with
  // kTimeout after 2 s.

  /// The facts of units without the flag `ignore`, in the order of the query. Without a limit it is
  /// a listing.
  virtual Result<std::unique_ptr<Cursor>> unit_facts(const FactListQuery& query);
  /// Whether the owners have more than `limit` units that end in the period of the filter.
  virtual Result<bool> has_more_units(const FactFilter& filter, std::int64_t limit);
  virtual Result<UnitSummary> unit_summary(const SummaryQuery& query);
  virtual Result<std::vector<UnitKind>> unit_kinds(const KindQuery& query);
  /// Days of daily_usage by group, in the order of days; then the unused energy, if it is asked
  /// for.
  virtual Result<std::vector<UsageOfDay>> usage_by_day(const UsageSeriesQuery& query);
  /// The first day of the range with usage of anyone on these clusters (empty: any), 0 if none.
  virtual Result<std::int64_t> first_usage_day(const TimeRange& days,
                                               const std::vector<std::string>& clusters);
  /// False while the facts of units of an old database are still being written.
  virtual Result<bool> facts_complete();

  // Reports (store/reports.h).

  /// The report that has been made of a run; nothing while it is queued, and if there is none.
  virtual Result<std::optional<StoredReport>> stored_report(const ReportKey& key);
  virtual Result<std::vector<FamilyRun>> family_runs(const FamilyQuery& query);
  /// Queued and partial reports that are due, of units that ended before a time, the newest first;
  /// none of the clusters `without`.
  virtual Result<std::vector<DueReport>> due_reports(std::int64_t now_ms,
                                                     std::int64_t ended_before_ms,
                                                     const std::vector<std::string>& without,
                                                     std::size_t limit);
  /// How many are queued or partial.
  virtual Result<std::int64_t> open_reports();
  /// Fails with kTimeout after 2 s.
  virtual Result<std::vector<UnitFinding>> findings(const FindingQuery& query);

  // Nodes and bills (store/nodes.h). Empty lists do not restrict.

  /// Sums over the nodes of each class, for the days that begin in the range; in the order of days.
  virtual Result<std::vector<NodeDay>> node_days(const std::vector<std::string>& clusters,
                                                 const TimeRange& days);
  /// All nodes that were ever seen, by cluster and name.
  virtual Result<std::vector<KnownNode>> known_nodes(const std::vector<std::string>& clusters);
  /// The bills that overlap the period by more than its ends, sorted by cluster and start.
  virtual Result<std::vector<Bill>> bills(const TimeRange& period);
  /// All flavors of the cluster, by region and id; none if they were never read.
  virtual Result<std::vector<model::Flavor>> flavors(const std::string& cluster_id);
  /// By cluster, to when its data was read: the end of the last window that was written (epoch ms).
  virtual Result<std::map<std::string, std::int64_t>> watermarks();

  // What people said of suggestions (store/feedback.h).

  /// The rules that have a stored finding of this run.
  virtual Result<std::vector<std::string>> rules_found(const ReportKey& /*key*/) {
    return std::vector<std::string>{};
  }
  /// What this person said of the suggestions of a run, by rule.
  virtual Result<std::vector<Feedback>> feedback_of(const ReportKey& /*key*/,
                                                    const std::string& /*username*/) {
    return std::vector<Feedback>{};
  }
  virtual Result<std::vector<FeedbackSum>> feedback_by_rule() { return std::vector<FeedbackSum>{}; }

  /// What nodes drew in units that ended from then on, and how those ended: the newest first, at
  /// most kMaxNodeEffects.
  virtual Result<std::vector<NodeEffect>> node_effects(const std::string& /*cluster_id*/,
                                                       std::int64_t /*from_ms*/) {
    return std::vector<NodeEffect>{};
  }

  // Units that have ended, for other programs (store/ended_units.h).

  /// At most `limit` of them behind a place, in the order of places: the fields, then the place.
  virtual Result<std::unique_ptr<Cursor>> ended_units(std::int64_t /*after*/,
                                                      std::size_t /*limit*/,
                                                      FieldList /*fields*/) {
    return fail(ErrorCode::kInvalidArgument, "this store has no list of ended units");
  }
  /// What is behind a place.
  virtual Result<EndedBacklog> ended_backlog(std::int64_t /*after*/) { return EndedBacklog{}; }

  // Personal API tokens (store/tokens.h).

  virtual Result<std::optional<Token>> find_token(const std::string& /*hash*/) {
    return std::optional<Token>();
  }
  /// By owner and creation; of everybody without a name.
  virtual Result<std::vector<Token>> tokens_of(const std::optional<std::string>& /*username*/) {
    return std::vector<Token>{};
  }
};

}  // namespace ceems::store
