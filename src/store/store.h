#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"

namespace ceems::store {

/// Metrics that could not be found out for the units of a committed window, to be added later.
struct Gap {
  std::int64_t id = 0;             ///< given by the store
  std::string updater;             ///< id in the configuration
  std::vector<std::string> parts;  ///< the updater's names of what is missing, sorted
  model::Window window = {};       ///< given by the store, like id
};

/// What one cluster delivered for one window.
struct ClusterUpdate {
  model::Cluster cluster;
  model::Window window;
  std::vector<model::Unit> units;
  /// Absent when the fetch failed: then nobody gains or loses access.
  std::optional<std::vector<model::User>> users;
  std::optional<std::vector<model::Project>> projects;
  /// Names of users by project: replaces what the cluster said before, an empty map too. Absent
  /// when nothing is known: then nobody gains or loses a role.
  std::optional<std::map<std::string, std::vector<std::string>>> leads = {};
  /// Written with the window: of each its keys, user, project and times per unit are kept.
  std::vector<Gap> gaps = {};
};

/// Metrics for a gap. The units are those that gap_units() gave.
struct GapFill {
  model::Cluster cluster;
  std::int64_t gap_id = 0;
  /// Metrics are merged into the unit, its usage and its daily usage as if they had come with the
  /// window; total_time_seconds holds the weights of the averages and is not added again.
  std::vector<model::Unit> units;
  /// Names that were added to total_time_seconds since, e.g. used_cputime: these are added.
  std::vector<std::string> times = {};
  std::vector<std::string> still_missing = {};  ///< empty: the gap is closed
};

/// What a write did. Skipped units were rolled back to their savepoint and logged with the cause.
struct WriteReport {
  std::size_t written = 0;
  std::size_t skipped = 0;
};

/// The writing half of the data base, used by the update loop only. One writer per program; calls
/// come from one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  /// Is it for this program to fetch and write? Of several that share a data base one leads, until
  /// it ends or loses its connection; then another one takes over at its next call. Call before
  /// each round: who does not lead has to leave the round out and to forget the watermarks it read.
  /// A write of one who no longer leads is refused with kUnavailable. Errors mean "no".
  virtual Result<bool> lead() { return true; }

  /// End of the last window committed for the cluster, epoch ms; nothing before the first. Falls
  /// back to MAX(usage.last_updated_at) of the cluster in a data base of the reference.
  virtual Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) = 0;

  /// Units, usage, daily usage, users, projects, leads and the cluster's watermark in one
  /// transaction: all or nothing, so a window is never counted twice or lost (kill -9 included). A
  /// window that does not start at the stored watermark is refused with kInvalidArgument.
  ///
  /// A unit that ended at or before the window's start counts in full when it is new (it was not
  /// seen in time); when it is stored already, its state and end are set and nothing is added,
  /// whatever end was stored: its earlier windows have counted it.
  virtual Result<WriteReport> write(const ClusterUpdate& update) = 0;

  /// Replaces the admins of one source ("ceems", "grafana").
  virtual Result<> write_admins(std::string_view source, const std::vector<std::string>& names) = 0;
  /// Adds to them.
  virtual Result<> add_admins(std::string_view source, const std::vector<std::string>& names) = 0;

  /// Deletes what ended, or was last updated, before the cutoff (epoch ms).
  virtual Result<> purge(std::int64_t cutoff_ms) = 0;

  /// False: ClusterUpdate::gaps are lost, so nobody should make any.
  [[nodiscard]] virtual bool keeps_gaps() const { return false; }
  /// Gaps of the cluster that are not filled, oldest first. Those of purged windows are gone.
  virtual Result<std::vector<Gap>> gaps(std::string_view /*cluster_id*/) {
    return std::vector<Gap>{};
  }
  /// The units of a gap: uuid, started_at, their *_ts, username, project and the window's times.
  virtual Result<std::vector<model::Unit>> gap_units(std::int64_t /*gap_id*/) {
    return std::vector<model::Unit>{};
  }
  /// Adds metrics and closes the gap, in one transaction. Units and usage rows that were purged
  /// since are left out.
  virtual Result<> fill_gap(const GapFill& /*fill*/) {
    return fail(ErrorCode::kInvalidArgument, "this store keeps no gaps");
  }
};

}  // namespace ceems::store
