#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/perf/counter_pool.h"
#include "host/process_origin.h"

namespace ceems::exporter::perf {

/// What units of one collector share.
struct UnitCountersOptions {
  std::filesystem::path proc;
  std::vector<int> cpus;  ///< online
  /// Now on the clock of process start times (ticks of 1/100 s since boot).
  std::function<std::uint64_t()> boot_ticks;
};

/// Counts everything in the cgroup of one unit: a counter for each CPU and event. Follows the unit
/// to another cgroup of the same path. Not thread-safe.
class CgroupCounters {
 public:
  /// `directory` is the unit's in the hierarchy that perf events know. Errors: kNotFound (no such
  /// directory), and those of CounterPool::open().
  static Result<CgroupCounters> open(CounterPool& pool,
                                     const UnitCountersOptions& options,
                                     const std::filesystem::path& directory);

  /// Adds what was counted since the last call. False: the cgroup is another one now or gone, this
  /// object counts nothing any more.
  bool read(Totals& totals, const std::filesystem::path& directory);

 private:
  ino_t inode_ = 0;
  std::vector<Counter> counters_;
};

/// Counts the processes of one unit. Each thread of a process has its counters, which threads and
/// processes made later inherit; so a child of a counted process is not counted by itself as well.
/// What has no parent in the unit any more is known by its session. Not thread-safe.
class ProcessCounters {
 public:
  /// First wait before a process that could not be counted is tried again; doubled each time.
  static constexpr auto kFirstRetry = std::chrono::minutes(1);
  static constexpr auto kLastRetry = std::chrono::hours(1);

  /// Counts new processes in `pids` from now on, adds what was counted since the last call, of
  /// those that ended, too. Gives why some process is not counted, empty: all are. References
  /// outlive it.
  std::optional<Error> update(CounterPool& pool,
                              const UnitCountersOptions& options,
                              std::span<const int> pids,
                              Clock::SteadyTime now,
                              Totals& totals);

 private:
  /// Counters of one process, and everything that inherits from them.
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
  void take_in(CounterPool& pool,
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

}  // namespace ceems::exporter::perf
