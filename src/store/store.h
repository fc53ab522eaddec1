#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/account_names.h"
#include "model/flavor.h"
#include "model/unit.h"

namespace ceems::store {

/// Metrics that the units of a committed window lack because their source could not give them. They
/// are added later.
struct Gap {
  std::int64_t id = 0;             ///< set by the store
  std::string updater;             ///< its id in the configuration
  std::vector<std::string> parts;  ///< missing parts, sorted: Missing::parts of the updater
  model::Window window = {};       ///< set by the store
};

/// What one cluster delivered for one window.
struct ClusterUpdate {
  model::Cluster cluster;
  model::Window window;
  std::vector<model::Unit> units;
  /// Absent if the fetch failed: no user gains or loses access then.
  std::optional<std::vector<model::User>> users;
  std::optional<std::vector<model::Project>> projects;
  /// Usage in the cluster adds members, too: a user who has usage of a project is a member of it
  /// until purge() deletes that usage.
  bool members_of_usage = false;
  /// Names of the users who lead a project, by project. Replaces the cluster's earlier leads, even
  /// if it is empty. Absent if the fetch failed: no user gains or loses a role then.
  std::optional<std::map<std::string, std::vector<std::string>>> leads = {};
  /// Written with the window, together with the uuid, start, end and counted times of each unit;
  /// not written if no unit counted anything.
  std::vector<Gap> gaps = {};
  /// Names that were given to ids since account_names(), written with the window. If one of them
  /// was given by another program meanwhile, the window is refused with kUnavailable.
  model::AccountNames names = {};
  /// All flavors of the cluster, which replace the stored ones. Absent if they are not known: the
  /// stored ones stay.
  std::optional<std::vector<model::Flavor>> flavors = {};
};

/// Metrics for a gap. The units are those that gap_units() returned.
struct GapFill {
  model::Cluster cluster;
  std::int64_t gap_id = 0;
  /// Their metrics are merged into the unit, its usage and its daily usage as if they had come with
  /// the window. total_time_seconds only weights the averages; the window has counted it already.
  std::vector<model::Unit> units;
  /// Exceptions: these names in total_time_seconds are new (e.g. used_cputime) and are added.
  std::vector<std::string> times = {};
  std::vector<std::string> still_missing = {};  ///< empty: the gap is closed
};

/// What a write did with the units.
struct WriteReport {
  std::size_t written = 0;  ///< includes those that changed nothing
  std::size_t skipped = 0;  ///< refused by the database (e.g. too large) and logged with the cause
};

struct ReportKey;
struct ReportRow;
struct UnitStrip;
struct NodeUpdate;  // store/nodes.h

/// The writing half of the database. There is one writer per program. Windows and gaps are written
/// by one thread; reports may be stored by another one, which waits meanwhile. Errors: kUnavailable
/// if trying again may help, kInvalidArgument for a request that contradicts what is stored,
/// kInternal otherwise. If a commit fails because the connection is lost, the change may have been
/// made or not; watermark() then says which windows have been written.
class Writer {
 public:
  virtual ~Writer() = default;

  /// Returns whether this program is the one that fetches and writes. Of several programs that
  /// share a database one leads, until it ends or loses its connection; another one then takes over
  /// at its next call. Call it before each round: a program that does not lead, or gets an error,
  /// must skip the round and forget the watermarks it has read. A write by a program that no longer
  /// leads is refused with kUnavailable.
  virtual Result<bool> lead() { return true; }

  /// The end of the last window that was committed for the cluster, in epoch milliseconds; nothing
  /// before the first window. In a database of the reference it is the newest last_updated_at of
  /// the cluster's rows in `usage`.
  virtual Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) = 0;

  /// The names that users and projects of the cluster bear, for managers that know them by id.
  /// Names are never purged.
  virtual Result<model::AccountNames> account_names(const std::string& /*cluster_id*/) {
    return model::AccountNames{};
  }

  /// Writes units, usage, daily usage, users, projects, leads and the cluster's watermark in one
  /// transaction, so a window is never counted twice or lost, even after kill -9. A window that
  /// does not start at the stored watermark is refused with kInvalidArgument.
  ///
  /// What a unit adds depends on the stored row of its uuid with the same start, or without a start
  /// (the unit was waiting then and has started since):
  /// - Nothing is stored: all of its times and metrics count.
  /// - It is stored with the same end: nothing is added or changed.
  /// - It ended at or before the window's start, which was recorded late: its state, end and
  ///   metrics are written, but of each of its times only the part beyond the stored sum is added,
  ///   because its earlier windows have counted the rest. Time that they counted beyond its real
  ///   end stays.
  /// - Otherwise: its times and metrics, which are from this window, are added.
  ///
  /// Units without uuid, and units that ended before the cutoff of the last purge(), whether it
  /// succeeded or not, are left out.
  virtual Result<WriteReport> write(const ClusterUpdate& update) = 0;

  /// Replaces the admins of one source ("ceems", "grafana").
  virtual Result<> write_admins(std::string_view source, const std::vector<std::string>& names) = 0;
  /// Adds to them.
  virtual Result<> add_admins(std::string_view source, const std::vector<std::string>& names) = 0;

  /// Deletes units that ended before the cutoff (epoch ms), usage that was last updated before it,
  /// older days, and gaps of older windows. A unit without an end is deleted if it was last updated
  /// before the cutoff and its cluster has been updated for a day since. Many rows are deleted in
  /// several transactions; after a stop, the transaction that runs is the last, and the next purge
  /// goes on.
  virtual Result<> purge(std::int64_t cutoff_ms, const std::stop_token& stop = {}) = 0;

  /// If false, ClusterUpdate::gaps are ignored and windows must be complete.
  [[nodiscard]] virtual bool keeps_gaps() const { return false; }
  /// The cluster's gaps that are not filled, oldest first. Purging a window removes its gaps.
  virtual Result<std::vector<Gap>> gaps(std::string_view /*cluster_id*/) {
    return std::vector<Gap>{};
  }
  /// The units of a gap: uuid, started_at, started_at_ts, ended_at_ts and, in total_time_seconds,
  /// the times that the window counted. The other fields are empty.
  virtual Result<std::vector<model::Unit>> gap_units(std::int64_t /*gap_id*/) {
    return std::vector<model::Unit>{};
  }
  /// In one transaction, adds the metrics and closes the gap, or keeps it open for what is still
  /// missing. Units and rows of usage that have been purged are left out. kNotFound if there is no
  /// such gap.
  virtual Result<> fill_gap(const GapFill& /*fill*/) {
    return fail(ErrorCode::kInvalidArgument, "this store keeps no gaps");
  }

  /// Writes the facts (store/facts.h) of some units of a database that was written before there
  /// were any, in some tenths of a second. Returns whether more are left. What is done stays done
  /// after a stop. Call it between windows, as long as it returns true and this program leads.
  virtual Result<bool> fill_facts() { return false; }

  /// Computes some of the sums over time (sums/unit_sums.h) that are missing, as of a database that
  /// was written before there were any, for half a second. Returns how many spans are left. Call it
  /// like fill_facts().
  virtual Result<std::size_t> fill_sums() { return 0; }

  // Reports (store/reports.h). write() queues reports of units that have ended.

  /// Stores reports that are queued or partial, with their findings and the advice in the facts of
  /// their units, in one transaction. Returns how many have become final by it: each does once, for
  /// an end of its unit. Reports of units that have been purged are left out.
  virtual Result<std::size_t> store_reports(const std::vector<ReportRow>& reports);
  /// Stores what units used over their lives in their facts; units without facts are left out.
  virtual Result<> store_strips(const std::vector<UnitStrip>& strips);
  /// Makes queued and partial reports due at a later time (epoch ms).
  virtual Result<> postpone_reports(const std::vector<ReportKey>& keys, std::int64_t due_ms);
  /// Deletes reports: those that are queued of units that do not exist.
  virtual Result<> drop_reports(const std::vector<ReportKey>& keys);
  /// Deletes reports and findings of units that ended before the cutoff (epoch ms), in transactions
  /// of 1,000; after a stop, the one that runs is the last. purge() deletes them with their units.
  virtual Result<> purge_reports(std::int64_t cutoff_ms, const std::stop_token& stop = {});
  // Energy of nodes (store/nodes.h).

  /// The end of the last update of the cluster's nodes, in epoch milliseconds; nothing before the
  /// first.
  virtual Result<std::optional<std::int64_t>> nodes_until(const std::string& cluster_id);
  /// Adds the energies to their day in one transaction, so that a part of a day is never counted
  /// twice. An update that does not begin where the last one ended is refused with
  /// kInvalidArgument.
  virtual Result<> write_nodes(const NodeUpdate& update);
};

}  // namespace ceems::store
