#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/run/job.h"
#include "exporter/run/process_tree.h"
#include "exporter/unit/stat/stat_reader.h"
#include "exporter/unit/unit.h"
#include "exporter/unit/unit_source.h"
#include "host/paths.h"

namespace ceems::exporter::run {

/// The job on this node as the only unit, for an ordinary user: from the cgroup that the resource
/// manager has made for it, or else from its processes. CPU time counts from the first snapshot on,
/// or for descendants of this process from their start.
///
/// The CPUs on which this process may run count as reserved in a job of a resource manager. Without
/// one, nothing is reserved, and idle power is divided by use.
///
/// Safe for concurrent use.
class JobSource final : public UnitSource {
 public:
  struct Options {
    host::Paths paths = {};
    Job job = {};
    std::string self_cgroups = {};       ///< text of /proc/self/cgroup
    std::vector<int> allowed_cpus = {};  ///< on which this process may run, ascending
    std::string cgroup_version = {};     ///< see host::detect_cgroup()
    int self = 0;                        ///< this process
  };
  /// `clock` must outlive the source.
  JobSource(Options options, const Clock& clock);

  [[nodiscard]] std::string_view manager() const override { return options_.job.manager; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override
      CEEMS_EXCLUDES(mutex_);
  void want_processes() override CEEMS_EXCLUDES(mutex_);

  /// The job as it was last seen; its CPU times never decrease.
  [[nodiscard]] UnitStats last() const CEEMS_EXCLUDES(mutex_);
  /// Its processes: the ones in the cgroup now, or else in the last snapshot.
  [[nodiscard]] std::vector<int> pids() const CEEMS_EXCLUDES(mutex_);
  /// Whether it is read from a cgroup.
  [[nodiscard]] bool has_cgroup() const { return !directory_.empty(); }
  [[nodiscard]] ProcessTree& processes() { return tree_; }
  /// CPUs that the job may use on this node.
  [[nodiscard]] double cpus() const { return static_cast<double>(options_.allowed_cpus.size()); }

 private:
  Result<> read_cgroup() CEEMS_REQUIRES(mutex_);
  Result<> read_tree() CEEMS_REQUIRES(mutex_);

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<const std::vector<int>> cpu_set_;
  ProcessTree tree_;
  std::string directory_;  // of the cgroup; empty: by processes
  std::string cgroup_root_;

  mutable Mutex mutex_;
  std::unique_ptr<StatReader> reader_ CEEMS_GUARDED_BY(mutex_);
  UnitFiles files_ CEEMS_GUARDED_BY(mutex_);
  UnitStats read_ CEEMS_GUARDED_BY(mutex_);                 // as in the files
  std::optional<UnitStats> base_ CEEMS_GUARDED_BY(mutex_);  // at the start
  UnitStats stats_ CEEMS_GUARDED_BY(mutex_);                // since then
  std::vector<int> pids_ CEEMS_GUARDED_BY(mutex_);
  bool want_processes_ CEEMS_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const UnitSnapshot> last_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter::run
