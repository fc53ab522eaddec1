#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/unit/cgroup_tree.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/populated_watch.h"
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
  bool owners = false;        ///< find out whose processes a unit holds
  bool warn_of_stale = true;  ///< else a debug message
  /// A unit is there as long as its directory, with or without a process in it; its end is the
  /// removal of the directory.
  bool list_empty = false;
  /// Units are below one directory at the top of the hierarchy only: the first by name that has
  /// some. The others are looked at again while it has none.
  bool one_root = false;
  /// Gives the identifier shown to users for an `id`; nothing while it cannot be told: the unit
  /// then appears under its id after kNameTimeout, and is asked for at each snapshot. Empty
  /// function: uuid_of(). Called from snapshot(), so on whatever thread calls that.
  std::function<std::optional<std::string>(const std::string& id)> resolve_uuid = {};
  std::chrono::milliseconds keep_ended = std::chrono::minutes(10);
  std::size_t kept_files = FdBudget::default_limit();
};

/// Units that are cgroups: finds them by a matcher, reads their statistics and follows them to
/// their end. One walk of the tree per snapshot.
///
/// - A unit is alive while a process lives in its subtree; with plain files for a cgroup tree,
/// while
///   <proc>/PID exists for a pid in it. Without one it is idle for kIdle, then stale: no unit any
///   more until a process turns up. A directory that never held a process is stale from the start.
///   With list_empty it is alive while its directory is there.
/// - A unit that vanished, or became stale after it was alive, is in the snapshots as `ended` until
///   it was exported so and kMinKeep have passed since, at most keep_ended.
/// - In v2 the last numbers are read when cgroup.events says that the last process is gone; in v1,
///   and besides, those of units younger than kYoung are read again by refresh_young().
/// - A unit whose files cannot be read keeps its last good numbers and says so in UnitStats::error.
class CgroupUnitSource final : public UnitSource, private TreeVisitor {
 public:
  static constexpr auto kYoung = std::chrono::seconds(25);
  static constexpr auto kIdle = std::chrono::seconds(60);
  static constexpr auto kMinKeep = std::chrono::seconds(60);
  static constexpr std::size_t kMaxEnded = 20'000;

  /// Errors: the hierarchy is not there. `clock` outlives the source.
  static Result<std::shared_ptr<CgroupUnitSource>> create(CgroupSourceOptions options,
                                                          std::unique_ptr<UnitMatcher> matcher,
                                                          const Clock& clock);
  ~CgroupUnitSource() override;

  [[nodiscard]] std::string_view manager() const override { return options_.manager; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override;
  void want_processes() override;
  [[nodiscard]] bool has_young() const override { return young_count_.load() > 0; }
  void refresh_young() override;
  void mark_exported(const UnitSnapshot& snapshot) override;

 private:
  struct EndedUnit {
    Unit unit;
    Clock::SteadyTime since;
    bool exported = false;
  };

  CgroupUnitSource(CgroupSourceOptions options,
                   const std::string& active,
                   std::unique_ptr<UnitMatcher> matcher,
                   const Clock& clock);

  std::unique_ptr<UnitState> found(const DirectoryMatch& match, const std::string& path) override;
  void present(UnitState& state) override;
  void vanished(UnitState& state) override;

  bool below_the_root(const UnitState& state);
  bool check_alive(UnitState& state);
  bool check_any_process(UnitState& state);
  bool collect_processes(UnitState& state);
  void first_sight(UnitState& state);
  bool settle_name(UnitState& state);
  void resolve_again(UnitState& state);
  void claim_key(UnitState& state);
  void end_if_gone(UnitState& state);
  void settle_owner(UnitState& state);
  std::vector<int> pids_of(const UnitState& state);
  void read_stats(UnitState& state);
  void set_fault(UnitState& state, std::string fault);
  void watch(UnitState& state);
  void on_events(std::uint64_t serial);
  void end(UnitState& state, Clock::SteadyTime since);
  void forget_ended(const std::string& key);
  void report_stale();
  std::shared_ptr<UnitSnapshot> assemble();

  const CgroupSourceOptions options_;
  const Clock& clock_;

  std::mutex mutex_;   // guards all below
  StatReader reader_;  // outlives what borrows its budget: tree and units
  std::unordered_map<std::string, UnitState*> by_key_;
  std::unordered_map<std::uint64_t, UnitState*> watched_;
  CgroupTree tree_;
  std::vector<UnitState*> current_;  // units of the current walk, in order
  std::string root_;                 // of the current walk, with one_root
  std::vector<UnitState*> young_;
  std::atomic<std::size_t> young_count_ = 0;
  std::map<std::uint64_t, EndedUnit> ended_;  // by serial: oldest first
  std::unordered_map<std::string, std::uint64_t> ended_by_key_;
  std::vector<std::string> newly_stale_;
  std::shared_ptr<const UnitSnapshot> last_;
  Clock::SteadyTime now_;
  Clock::SystemTime wall_;
  std::uint64_t walks_ = 0;
  std::uint64_t serial_ = 0;
  bool want_processes_ = false;
  bool watch_refused_ = false;
  std::unique_ptr<PopulatedWatch> watch_;
};

}  // namespace ceems::exporter
