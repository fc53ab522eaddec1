#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/unit/cgroup_tree.h"
#include "exporter/unit/cgroup_watch.h"
#include "exporter/unit/directory_use.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/running_jobs.h"
#include "exporter/unit/stat/stat_reader.h"
#include "exporter/unit/unit_source.h"
#include "host/cgroup/mount.h"
#include "host/paths.h"

namespace ceems::exporter {

struct CgroupSourceOptions {
  std::string manager;  ///< value of the label `manager`
  host::Paths paths;
  host::CgroupMount mount;
  std::string active_subsystem = "cpuacct";  ///< v1 hierarchy to walk
  StatOptions stats = {};
  bool owners = false;        ///< set Unit::owner_uid
  bool warn_of_stale = true;  ///< log stale units as warnings; otherwise at debug level
  /// A unit exists as long as its directory, with or without a process in it. It ends when the
  /// directory is removed.
  bool list_empty = false;
  /// Only units below one directory at the top of the hierarchy count: the first by name that has
  /// units. While it has none, the next one is used.
  bool one_root = false;
  /// Maps an `id` to the identifier that users see; nothing while that is not known yet. The unit
  /// then appears under its id after kNameTimeout, and each snapshot tries again. An empty function
  /// means UnitMatcher::uuid_of(). Called from snapshot(), on the thread that calls it.
  std::function<std::optional<std::string>(const std::string& id)> resolve_uuid = {};
  /// Tells which jobs the manager runs, whether or not they have processes. Null: a unit lives as
  /// long as it has a process, and kIdle longer.
  std::shared_ptr<RunningJobs> running = {};
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);
  std::size_t kept_files = FdBudget::default_limit();
};

/// Units that are cgroups: finds them with a matcher, reads their statistics and follows them to
/// their end. Each snapshot visits all known units.
///
/// - In a real cgroup tree the kernel reports the directories that are created and removed
///   (DirectoryWatch), and a thread takes note of them at once. The tree is listed again every
///   kListEvery, and whatever cannot be watched is listed by each snapshot.
/// - A unit is alive while a process lives in its subtree. Where plain files stand in for a cgroup
///   tree, it is alive while <proc>/PID exists for one of its pids. Without a process it is idle
///   for kIdle and then stale: it is no longer a unit until a process appears again. A directory
///   that has never held a process is stale from the start. With list_empty a unit is alive while
///   its directory exists.
/// - With `running`, a unit whose job runs is alive without a process, and without a directory: it
///   keeps what it was last seen with. Of a job for which there is no evidence, or only for its
///   steps, a directory that has held a process is evidence enough.
/// - A unit that vanished, or became stale after it was alive, stays in the snapshots as `ended`
///   until it has been exported as such and kMinKeep has passed, but at most for keep_ended.
/// - With v2 the last statistics are read when cgroup.events reports that the last process has
///   ended. Other units younger than kYoung are read again by refresh_young(), and those younger
///   than a second by the thread. What a unit used after it was last read is a share of what the
///   counter of its directory shows (DirectoryUse).
/// - energy_snapshot() reads the CPU times of units whose directory's counter moved, and all other
///   statistics every kStatsEvery, or kStatsEveryYoung of young units. In a real cgroup tree,
///   snapshot() reads statistics of units that used CPU time since, and of others only after
///   kStatsEveryQuiet; limits are read again after kLimitsEvery.
/// - A unit whose files cannot be read keeps its last good statistics and sets UnitStats::error.
class CgroupUnitSource final : public UnitSource, private TreeVisitor {
 public:
  static constexpr auto kYoung = std::chrono::seconds(25);
  static constexpr auto kIdle = std::chrono::seconds(60);
  static constexpr auto kMinKeep = std::chrono::seconds(60);
  static constexpr std::size_t kMaxEnded = 20'000;
  static constexpr auto kListEvery = std::chrono::seconds(10);
  static constexpr auto kStatsEvery = std::chrono::seconds(30);
  static constexpr auto kStatsEveryQuiet = std::chrono::seconds(10);
  static constexpr auto kStatsEveryYoung = std::chrono::seconds(2);
  static constexpr auto kLimitsEvery = std::chrono::seconds(30);
  /// Changes followed at once, per second. Others are found by the next snapshot.
  static constexpr std::size_t kMaxChanges = 8192;

  /// kNotFound: the hierarchy, or the directory in it that holds the units, does not exist. `clock`
  /// must outlive the source.
  static Result<std::shared_ptr<CgroupUnitSource>> create(CgroupSourceOptions options,
                                                          std::unique_ptr<UnitMatcher> matcher,
                                                          const Clock& clock);
  ~CgroupUnitSource() override;

  [[nodiscard]] std::string_view manager() const override { return options_.manager; }
  [[nodiscard]] std::string_view controller() const override {
    return options_.mount.mode == host::CgroupMode::kLegacy
               ? std::string_view(options_.active_subsystem)
               : std::string_view();
  }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override;
  Result<std::shared_ptr<const UnitSnapshot>> energy_snapshot(
      std::chrono::milliseconds max_age) override;
  void want_processes() override;
  [[nodiscard]] bool has_young() const override { return young_count_.load() > 0; }
  void refresh_young() override;
  void probe(std::span<UnitProbe> probes) override;
  void note_traffic(std::span<const UnitTraffic> traffic) override;
  void mark_exported(const UnitSnapshot& snapshot) override;

 private:
  /// How long a new directory may stay without a process before that is logged.
  static constexpr auto kEmptyTimeout = std::chrono::seconds(5);
  /// How often the thread reads units that were just created.
  static constexpr auto kNewbornPause = std::chrono::milliseconds(50);

  struct EndedUnit {
    Unit unit;
    Clock::SteadyTime since;
    bool exported = false;
    /// No process was ever seen in it. It was a unit only if it used CPU time.
    bool doubtful = false;
  };

  CgroupUnitSource(CgroupSourceOptions options,
                   const std::string& active,
                   std::unique_ptr<UnitMatcher> matcher,
                   const Clock& clock);

  // TreeVisitor. Called by tree_.
  std::unique_ptr<UnitState> found(const DirectoryMatch& match, const std::string& path) override
      CEEMS_REQUIRES(mutex_);
  void present(UnitState& state, DirectoryUse& parent) override CEEMS_REQUIRES(mutex_);
  void born(UnitState& state) override CEEMS_REQUIRES(mutex_);
  void vanished(UnitState& state, DirectoryUse& parent) override CEEMS_REQUIRES(mutex_);
  void enter(DirectoryUse& use, const DirectoryUse* parent, const std::string& path) override
      CEEMS_REQUIRES(mutex_);
  void leave(DirectoryUse& use, DirectoryUse* parent, const std::string& path) override
      CEEMS_REQUIRES(mutex_);

  Result<> sample(Clock::SteadyTime now, bool all) CEEMS_REQUIRES(mutex_);
  bool is_below_root(const UnitState& state) CEEMS_REQUIRES(mutex_);
  bool check_alive(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool check_any_process(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool collect_processes(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool must_check_life(const UnitState& state) CEEMS_REQUIRES(mutex_);
  bool show(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool is_held(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool runs(const Unit& unit) CEEMS_REQUIRES(mutex_);
  bool has_directory(const std::string& host, const std::string& uuid) const CEEMS_REQUIRES(mutex_);
  bool is_shown(const RunningJob& job) const CEEMS_REQUIRES(mutex_);
  void keep_running() CEEMS_REQUIRES(mutex_);
  void set_start(UnitState& state) CEEMS_REQUIRES(mutex_);
  bool settle_name(UnitState& state) CEEMS_REQUIRES(mutex_);
  void resolve_again(UnitState& state) CEEMS_REQUIRES(mutex_);
  void claim_key(UnitState& state) CEEMS_REQUIRES(mutex_);
  void end_if_gone(UnitState& state) CEEMS_REQUIRES(mutex_);
  void settle_owner(UnitState& state) CEEMS_REQUIRES(mutex_);
  std::vector<int> pids_of(const UnitState& state) CEEMS_REQUIRES(mutex_);
  void read_stats(UnitState& state, StatScope::Cpu cpu) CEEMS_REQUIRES(mutex_);
  bool read_cpu(UnitState& state) CEEMS_REQUIRES(mutex_);
  void sample_stats(UnitState& state, DirectoryUse& parent) CEEMS_REQUIRES(mutex_);
  void account(UnitState& state, DirectoryUse& parent) CEEMS_REQUIRES(mutex_);
  void set_fault(UnitState& state, std::string fault) CEEMS_REQUIRES(mutex_);
  void start_watch() CEEMS_REQUIRES(mutex_);
  void watch(UnitState& state) CEEMS_REQUIRES(mutex_);
  void on_event(std::uint64_t token) CEEMS_EXCLUDES(mutex_);
  void on_populated(std::uint64_t serial) CEEMS_REQUIRES(mutex_);
  std::size_t on_directories() CEEMS_REQUIRES(mutex_);
  void on_timer() CEEMS_REQUIRES(mutex_);
  std::uint64_t end(UnitState& state, Clock::SteadyTime since) CEEMS_REQUIRES(mutex_);
  std::uint64_t end(const std::string& key, const Unit& unit, Clock::SteadyTime since)
      CEEMS_REQUIRES(mutex_);
  void forget_ended(const std::string& key) CEEMS_REQUIRES(mutex_);
  void report_stale() CEEMS_REQUIRES(mutex_);
  void join_parts(UnitSnapshot& result) CEEMS_REQUIRES(mutex_);
  std::shared_ptr<UnitSnapshot> assemble() CEEMS_REQUIRES(mutex_);

  const CgroupSourceOptions options_;
  const Clock& clock_;

  std::atomic<std::size_t> young_count_ = 0;  // size of young_

  Mutex mutex_;
  // Before tree_ and its units, which use the reader's budget of open files until they are gone.
  StatReader reader_ CEEMS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, UnitState*> by_key_ CEEMS_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, UnitState*> watched_ CEEMS_GUARDED_BY(mutex_);  // by serial
  CgroupTree tree_ CEEMS_GUARDED_BY(mutex_);
  // Of the current walk: its units in order, and with one_root the directory they must be below.
  std::vector<UnitState*> current_ CEEMS_GUARDED_BY(mutex_);
  std::string root_ CEEMS_GUARDED_BY(mutex_);
  std::vector<UnitState*> young_ CEEMS_GUARDED_BY(mutex_);
  std::vector<UnitState*> newborn_ CEEMS_GUARDED_BY(mutex_);         // read by the thread
  std::map<std::string, Unit> past_parts_ CEEMS_GUARDED_BY(mutex_);  // sums, by key of the unit
  std::map<std::string, Unit> running_ CEEMS_GUARDED_BY(mutex_);     // without a directory, by key
  std::set<std::string> hosts_ CEEMS_GUARDED_BY(mutex_);  // virtual nodes, "" for units of none
  std::vector<std::uint64_t> doubtful_ CEEMS_GUARDED_BY(mutex_);       // by serial, in ended_
  std::map<std::uint64_t, EndedUnit> ended_ CEEMS_GUARDED_BY(mutex_);  // by serial: oldest first
  std::unordered_map<std::string, std::uint64_t> ended_by_key_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> newly_stale_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const UnitSnapshot> last_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime now_ CEEMS_GUARDED_BY(mutex_);
  Clock::SystemTime wall_ CEEMS_GUARDED_BY(mutex_);
  std::uint64_t walks_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::uint64_t serial_ CEEMS_GUARDED_BY(mutex_) = 0;
  bool want_processes_ CEEMS_GUARDED_BY(mutex_) = false;
  bool traffic_counted_ CEEMS_GUARDED_BY(mutex_) = false;
  bool all_ CEEMS_GUARDED_BY(mutex_) = true;        // the current sample reads all statistics
  bool last_all_ CEEMS_GUARDED_BY(mutex_) = false;  // last_ has all statistics
  bool list_ CEEMS_GUARDED_BY(mutex_) = true;       // the next walk must list the tree
  Clock::SteadyTime listed_ CEEMS_GUARDED_BY(mutex_){};
  Clock::SteadyTime changes_since_ CEEMS_GUARDED_BY(mutex_){};
  std::size_t changes_ CEEMS_GUARDED_BY(mutex_) = 0;  // since then
  bool watch_refused_ CEEMS_GUARDED_BY(mutex_) = false;
  bool births_refused_ CEEMS_GUARDED_BY(mutex_) = false;
  bool reported_now_ CEEMS_GUARDED_BY(mutex_) = false;  // the kernel is reporting changes
  std::optional<DirectoryWatch> births_ CEEMS_GUARDED_BY(mutex_);
  UniqueFd timer_ CEEMS_GUARDED_BY(mutex_);
  bool timer_armed_ CEEMS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<PopulatedWatch> watch_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter
