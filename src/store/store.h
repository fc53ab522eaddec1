#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/unit.h"

namespace ceems::store {

/// What one cluster delivered for one window.
struct ClusterUpdate {
  model::Cluster cluster;
  model::Window window;
  std::vector<model::Unit> units;
  /// Absent when the fetch failed: then nobody gains or loses access.
  std::optional<std::vector<model::User>> users;
  std::optional<std::vector<model::Project>> projects;
};

/// What a write did. Skipped units were rolled back to their savepoint and logged with the cause.
struct WriteReport {
  std::size_t written = 0;
  std::size_t skipped = 0;
};

/// The writing half of the data base, used by the update loop only. One writer per data base; calls
/// come from one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  /// End of the last window committed for the cluster, epoch ms; nothing before the first. Falls
  /// back to MAX(usage.last_updated_at) of the cluster in a data base of the reference.
  virtual Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) = 0;

  /// Units, usage, daily usage, users, projects and the cluster's watermark in one transaction: all
  /// or nothing, so a window is never counted twice or lost (kill -9 included). A window that does
  /// not start at the stored watermark is refused with kInvalidArgument.
  ///
  /// A unit that ended at or before the window's start counts in full when it is new (it was not
  /// seen in time); when it is stored already, its state and end are set and nothing is added,
  /// whatever end was stored: its earlier windows have counted it.
  virtual Result<WriteReport> write(const ClusterUpdate& update) = 0;

  /// Replaces the admins of one source ("ceems", "grafana").
  virtual Result<> write_admins(std::string_view source, const std::vector<std::string>& names) = 0;

  /// Deletes what ended, or was last updated, before the cutoff (epoch ms).
  virtual Result<> purge(std::int64_t cutoff_ms) = 0;
};

}  // namespace ceems::store
