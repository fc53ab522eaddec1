#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::exporter {

/// What the threads of a unit did between two looks.
struct UnitThreads {
  /// Threads that ran, or were ready to run and waited for a CPU, for more than half of the time.
  /// Threads that share a CPU run for a fraction of it each, so that waiting has to count.
  std::size_t busy = 0;
  /// CPUs on which the threads that ran for 1 % of the time or longer may run, ascending. Threads
  /// that do less, such as daemons of the batch system, say nothing about the program.
  std::vector<int> cpus = {};
};

/// Looks at the threads of units from time to time: at their times in `schedstat` (or, where the
/// kernel has none, in `stat`, which does not know of waiting) and at the affinity masks of those
/// that ran. What threads did that began and ended between two looks is not seen. Not thread-safe.
class ThreadUse {
 public:
  struct Limits {
    std::size_t of_unit = 4096;
    std::size_t all = 32'768;
  };
  struct Look {
    /// In the order of the units that were asked for. Nothing where it is not known: at the first
    /// look, where no process can be read, and for units that are left out.
    std::vector<std::optional<UnitThreads>> units;
    /// Units with more threads than Limits::of_unit, and those for which Limits::all left none. A
    /// part of the threads would show too few busy ones and too few CPUs.
    std::size_t left_out = 0;
  };

  explicit ThreadUse(std::filesystem::path proc) : ThreadUse(std::move(proc), Limits{}) {}
  ThreadUse(std::filesystem::path proc, Limits limits) : proc_(std::move(proc)), limits_(limits) {}

  /// Looks at the live processes of each unit. `online` are the CPUs that count; empty: all.
  /// Errors: /proc/uptime cannot be read, or units have processes, but none can be read.
  Result<Look> look(std::span<const std::span<const int>> units, std::span<const int> online);

 private:
  /// In nanoseconds since the thread began.
  struct Times {
    std::uint64_t ran = 0;
    std::uint64_t waited = 0;
  };
  struct Pass;

  std::optional<UnitThreads> look_at(std::span<const int> pids, Pass& pass);
  void look_at_process(int pid, Pass& pass);
  void look_at_thread(int tid, int folder, Pass& pass);
  std::optional<Times> read_times(int tid, int folder);
  [[nodiscard]] std::optional<Times> times_before(int tid, int folder, const Times& now);
  void add_cpus(int tid, int folder, Pass& pass);

  const std::filesystem::path proc_;
  const Limits limits_;
  std::optional<std::uint64_t> looked_;         // at this time since boot, in 1/100 s
  std::unordered_map<int, Times> before_ = {};  // by thread, at the last look
  std::string buffer_;
};

}  // namespace ceems::exporter
