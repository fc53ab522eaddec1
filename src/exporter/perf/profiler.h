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
  std::vector<std::size_t> events;  ///< positions in all_events()
  bool exclude_kernel = false;
  std::size_t most_counters = default_counter_limit();
  ProcessFilter filter;  ///< not empty: processes are counted, not cgroups
  /// Called once when the processes of units are needed from now on.
  std::function<void()> want_processes;
  std::function<std::uint64_t()> boot_ticks;
};

/// Counts events of the units of one manager: by cgroup where kernel and number of counters allow,
/// else by process. Not thread-safe; the kernel and the clock outlive it.
class Profiler {
 public:
  Profiler(ProfilerOptions options, Kernel& kernel, const Clock& clock);

  /// Follows the units that have not ended and reads all counters.
  void update(const UnitSnapshot& snapshot);

  /// What was counted of each unit, by uuid, since the profiler met it. Sums never go back while
  /// the unit lives.
  [[nodiscard]] const std::map<std::string, Totals>& totals() const { return totals_; }

 private:
  struct State {
    std::optional<CgroupCounters> cgroup;
    std::optional<ProcessCounters> processes;
    bool seen = false;
  };
  /// Virtual node and uuid: units of several virtual nodes may share a uuid.
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
  std::optional<Error> failure_;  ///< of the update under way
  bool failing_ = false;
};

/// Now on the clock of process start times.
std::uint64_t boot_ticks();

}  // namespace ceems::exporter::perf
