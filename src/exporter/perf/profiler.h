#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/perf/events.h"
#include "exporter/perf/kernel.h"
#include "exporter/unit/process_filter.h"
#include "exporter/unit/unit.h"
#include "host/cgroup/mount.h"
#include "host/cgroup/process.h"
#include "host/paths.h"

namespace ceems::exporter::perf {

/// The count of each event, by index in all_events().
using Totals = std::vector<std::uint64_t>;

class CounterPool;

/// An open counter, closed by the destructor. Move-only.
class Counter {
 public:
  Counter(CounterPool& pool, int handle, std::size_t event)
      : pool_(&pool), handle_(handle), event_(event) {}
  Counter(Counter&& other) noexcept;
  Counter& operator=(Counter&& other) noexcept;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { close(); }

  /// Adds the events counted since the last call. A counter that cannot be read adds nothing.
  void add_to(Totals& totals);

 private:
  void close();

  CounterPool* pool_;
  int handle_;
  std::size_t event_;
  Reading last_{};
};

/// Opens counters of the selected events, up to a limit. Must outlive them. Not thread-safe.
class CounterPool {
 public:
  /// `events` are indices into all_events(). `limit` is the maximum number of open counters.
  CounterPool(Kernel& kernel,
              std::vector<std::size_t> events,
              bool exclude_kernel,
              std::size_t limit)
      : kernel_(kernel),
        events_(std::move(events)),
        unsupported_(all_events().size()),
        exclude_kernel_(exclude_kernel),
        left_(limit) {}

  /// Whether enough counters are left for this many targets.
  [[nodiscard]] bool fits(std::size_t targets) const { return targets * events_.size() <= left_; }

  /// Appends a counter for each event that can be counted. On an error nothing is appended: kNoData
  /// (the target is gone), kUnavailable (no counters left), or the reason why none of the events
  /// could be opened. An event that this machine does not support is logged and not tried again.
  Result<> open(const Target& target, std::vector<Counter>& counters);

  [[nodiscard]] std::size_t left() const { return left_; }

 private:
  friend class Counter;
  void log_unsupported(std::size_t event);

  Kernel& kernel_;
  std::vector<std::size_t> events_;
  std::vector<bool> unsupported_;
  bool exclude_kernel_;
  std::size_t left_;
};

/// How many counters one collector may have open: an eighth of the file descriptors that the
/// process may have, at most 65536. Most others are for cgroup files (unit/stat/kept_file.h).
std::size_t default_counter_limit();

/// Shared by the units of one collector.
struct UnitCountersOptions {
  std::filesystem::path proc;
  std::vector<int> cpus;  ///< online
  /// The time now on the clock of process start times (ticks of 1/100 s since boot).
  std::function<std::uint64_t()> boot_ticks;
};

/// Counts everything in the cgroup of one unit, with one counter per CPU and event. Follows the
/// unit to another cgroup with the same path. Not thread-safe.
class CgroupCounters {
 public:
  /// `directory` is the unit's directory in the hierarchy of perf events. Errors: kNotFound (no
  /// such directory), and any of CounterPool::open().
  static Result<CgroupCounters> open(CounterPool& pool,
                                     const UnitCountersOptions& options,
                                     const std::filesystem::path& directory);

  /// Adds the events counted since the last call. False if the cgroup was replaced or is gone; this
  /// object then counts nothing any more.
  bool read(Totals& totals, const std::filesystem::path& directory);

 private:
  ino_t inode_ = 0;
  std::vector<Counter> counters_;
};

/// Counts the processes of one unit. Each thread of a process has counters, which threads and
/// processes created later inherit, so a child of a counted process is not counted separately. A
/// process whose parent has left the unit is recognized by its session. Not thread-safe.
class ProcessCounters {
 public:
  /// First pause before a process that could not be counted is tried again. It doubles each time up
  /// to the maximum.
  static constexpr auto kFirstRetryPause = std::chrono::minutes(1);
  static constexpr auto kMaxRetryPause = std::chrono::hours(1);

  /// Counts new processes in `pids` from now on, and adds the events counted since the last call,
  /// including events of ended processes. Returns why a process is not counted, or nothing if all
  /// are counted. The references must outlive it.
  std::optional<Error> update(CounterPool& pool,
                              const UnitCountersOptions& options,
                              std::span<const int> pids,
                              Clock::SteadyTime now,
                              Totals& totals);

 private:
  /// Counters of one process, with everything that inherits from them.
  struct Family {
    std::vector<Counter> counters;
    std::uint64_t since = 0;  ///< boot ticks at which counting began
    std::size_t members = 0;
  };
  using FamilyRef = std::list<Family>::iterator;
  struct Member {
    FamilyRef family;
    std::uint64_t seen = 0;  ///< number of the last update that listed it
  };
  struct Failure {
    Clock::SteadyTime next{};
    Clock::SteadyTime::duration wait{};
    Error error{};
    std::uint64_t seen = 0;
  };

  void join(int pid, int session, FamilyRef family);
  bool waits(int pid, Clock::SteadyTime now);
  void count_from_now(CounterPool& pool,
                      const UnitCountersOptions& options,
                      int pid,
                      const host::ProcessOrigin& facts,
                      Clock::SteadyTime now);

  std::list<Family> families_;
  std::unordered_map<int, Member> members_;
  std::unordered_map<int, FamilyRef> sessions_;
  std::unordered_map<int, Failure> failures_;
  std::uint64_t updates_ = 0;
};

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
