#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "exporter/perf/counter_pool.h"
#include "exporter/perf/unit_counters.h"
#include "exporter/unit/process_filter.h"
#include "exporter/unit/unit.h"
#include "host/cgroup/mount.h"
#include "host/paths.h"

namespace ceems::exporter::perf {

struct ProfilerOptions {
  host::Paths paths;
  host::CgroupMode mode = host::CgroupMode::kUnified;
  std::vector<std::size_t> events;  ///< indices into all_events()
  bool exclude_kernel = false;
  std::size_t max_counters = default_counter_limit();
  ProcessFilter filter;  ///< if not empty, processes are counted instead of cgroups
  /// Called once, when the processes of units are needed from then on.
  std::function<void()> want_processes;
  std::function<std::uint64_t()> boot_ticks;
};

/// Counts events of one manager's units: by cgroup if the kernel and the number of counters allow
/// it, otherwise by process. Kernel and clock must outlive it. Not thread-safe.
class Profiler {
 public:
  Profiler(ProfilerOptions options, Kernel& kernel, const Clock& clock);

  /// Updates the list of live units and reads all counters.
  void update(const UnitSnapshot& snapshot);

  /// The events of each unit, by uuid, since the profiler found the unit. Sums never decrease while
  /// the unit lives.
  [[nodiscard]] const std::map<std::string, Totals>& totals() const { return totals_; }

 private:
  struct State {
    std::optional<CgroupCounters> cgroup;
    std::optional<ProcessCounters> processes;
    bool seen = false;
  };
  /// Virtual node and uuid, because units of several virtual nodes may share a uuid.
  using Key = std::pair<std::string, std::string>;

  [[nodiscard]] std::filesystem::path directory(const Unit& unit) const;
  void update_unit(const Unit& unit, State& state, Totals& totals);
  bool count_cgroup(const Unit& unit, State& state, Totals& totals);
  void count_processes(std::vector<int> pids, State& state, Totals& totals);
  void report(std::optional<Error> failure);

  ProfilerOptions options_;
  const Clock& clock_;
  UnitCountersOptions shared_;
  CounterPool pool_;
  bool by_cgroup_;
  bool processes_requested_ = false;
  std::map<Key, State> states_;
  std::map<std::string, Totals> totals_;
  std::optional<Error> failure_;  ///< of the current update
  bool failing_ = false;
};

/// The time now on the clock of process start times.
std::uint64_t boot_ticks();

}  // namespace ceems::exporter::perf
