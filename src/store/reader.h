#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"
#include "store/fields.h"
#include "store/schema/sums_columns.h"

namespace ceems::store {

/// A project of one cluster: names mean nothing across clusters.
struct ClusterProject {
  std::string cluster_id = {}, project = {};
};

/// Whose rows a query may touch. The zero value is nobody's. Built by access/ only.
struct Scope {
  bool everybody = false;
  std::vector<std::string> names = {};
  /// Also the service account "p:svc" of each of these projects, in those clusters where one of
  /// `names` is a member of p.
  std::vector<std::string> service_projects = {};
  /// Also all rows of these projects, whoever owns them: units, usage and the projects themselves.
  std::vector<ClusterProject> led_projects = {};
};

/// What no two units share.
struct UnitKey {
  std::string cluster_id = {}, uuid = {}, started_at = {};
};

/// Epoch milliseconds, both ends included.
struct TimeRange {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
};

/// When a unit lived: epoch milliseconds, 0: not known or not yet.
struct UnitLife {
  std::string uuid = {};
  bool in_scope = false;  ///< its project has a member in scope, or is led
  std::int64_t created_ms = 0;
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;
};

/// Empty lists do not restrict.
struct UnitQuery {
  Scope owners;  ///< by user name
  std::vector<std::string> projects, clusters, uuids;
  /// Units that ended in the range; with `running` those that have not ended, too. Without a range
  /// all, and `running` means nothing.
  std::optional<TimeRange> ended;
  bool running = false;
  /// At most that many, 0: all. With `after`, the key of the last row seen, a listing goes on where
  /// the page before ended; rows that came or went in between shift nothing.
  std::size_t limit = 0;
  std::optional<UnitKey> after;
};

struct UsageQuery {
  Scope members = {};  ///< of the row's project in the row's cluster
  std::vector<std::string> projects = {}, clusters = {};
};

struct CurrentUsageQuery {
  UsageQuery rows;
  TimeRange updated;             ///< by the row's last update
  bool daily = false;            ///< over days instead of units
  bool terminated_only = false;  ///< units that have ended; not for days
  /// Groups are made by cluster, user and project, and by these too.
  bool by_groupname = false;
  bool by_resource_manager = false;
  /// Which of the 13 metric maps are asked for, by their place behind kUsageTimes.
  WantedMaps maps{};
};

/// What one user used in one project of one cluster. Texts that are not the same in all rows of the
/// group are those of the first row.
struct UsageGroup {
  std::string cluster_id, resource_manager, project, groupname, username;
  std::int64_t num_units = 0;
  std::array<model::MetricMap, model::kMetricCount + 1> maps;
};

/// Rows of a query, read one by one from one snapshot of the data base. Used by one thread at a
/// time, not always the same; holds a connection, so let go of it soon.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// True when there is a next row; texts of the row before are gone then.
  virtual Result<bool> next() = 0;
  // Columns in the order the fields were asked for.
  [[nodiscard]] virtual std::string_view text(std::size_t column) const = 0;
  [[nodiscard]] virtual std::int64_t integer(std::size_t column) const = 0;
};

/// Field numbers of what to read: indexes into unit_fields() and so on.
using FieldList = std::span<const std::size_t>;

/// The reading half of the data base. Safe for concurrent use. Errors: kUnavailable when no
/// connection becomes free or the file is locked, kTimeout for a query that runs for minutes,
/// kParse for a damaged file; messages are for the log, not for clients.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual Result<> ping() = 0;
  /// Grows with every commit that may change what queries answer.
  [[nodiscard]] virtual std::uint64_t generation() const = 0;

  virtual Result<bool> is_admin(std::string_view user) = 0;
  /// Projects that resource managers say the user leads, by cluster and name.
  virtual Result<std::vector<ClusterProject>> led_projects(std::string_view user) = 0;

  /// Units that are not ignored, by UnitKey in byte order.
  virtual Result<std::unique_ptr<Cursor>> units(const UnitQuery& query, FieldList fields) = 0;
  /// How many of the (distinct) `uuids` have a unit in one of the clusters whose project there has
  /// a member in scope, or is led.
  virtual Result<std::size_t> count_member_units(const Scope& members,
                                                 const std::vector<std::string>& clusters,
                                                 const std::vector<std::string>& uuids) = 0;

  /// All units of the cluster with these ids, by id; those that are ignored, too.
  virtual Result<std::vector<UnitLife>> unit_lives(const Scope& members,
                                                   const std::string& cluster,
                                                   const std::vector<std::string>& uuids) = 0;

  /// Users by cluster and name; all of user_fields().
  virtual Result<std::unique_ptr<Cursor>> users(const Scope& scope,
                                                const std::vector<std::string>& clusters) = 0;
  /// All admins; all of user_fields().
  virtual Result<std::unique_ptr<Cursor>> admins() = 0;
  /// Projects with at least one member in scope, by cluster and name; all of project_fields().
  virtual Result<std::unique_ptr<Cursor>> projects(const UsageQuery& query) = 0;
  /// Clusters that have units; all of cluster_fields().
  virtual Result<std::unique_ptr<Cursor>> clusters() = 0;
  /// Counts per cluster of all units, or of those that ended in the range or run; all of
  /// stat_fields().
  virtual Result<std::unique_ptr<Cursor>> stats(const std::vector<std::string>& clusters,
                                                const std::optional<TimeRange>& ended) = 0;

  /// Rows of `usage` as stored, by cluster, user and project.
  virtual Result<std::unique_ptr<Cursor>> usage(const UsageQuery& query, FieldList fields) = 0;
  /// Sums and averages over units or days, by cluster, user and project. Every map holds the names
  /// that any group has: 0 where a group has none.
  virtual Result<std::vector<UsageGroup>> current_usage(const CurrentUsageQuery& query) = 0;
};

}  // namespace ceems::store
