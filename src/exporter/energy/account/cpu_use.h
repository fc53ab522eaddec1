#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "host/cpu_topology.h"
#include "host/proc.h"

namespace ceems::exporter::energy {

/// What one logical CPU did in an interval.
struct CpuUse {
  int socket = -1;   ///< 0...sockets - 1; -1: offline
  double busy = 0;   ///< CPU-seconds per second, 0...1
  double cores = 0;  ///< its part of the core's use, in busy cores; see CpuUseMeter
};

/// What one socket did in an interval, and what it could do.
struct SocketUse {
  double cpus = 0;  ///< CPUs online
  double busy = 0;  ///< sums of CpuUse
  double cores = 0;
  double cores_max = 0;  ///< `cores` with all CPUs busy
};

/// Computes the use of CPUs and cores from the counters of /proc/stat.
///
/// A core with one busy thread counts as one busy core. Each further busy thread adds
/// `second_thread`, because it shares what the first one has already woken up. The sum is divided
/// among the busy threads by their CPU time. How long two threads of a core were busy at the same
/// time is not known. It is taken to be as long as can be, because threads that are busy for a good
/// part of an interval mostly belong to a job that started, ended or paused in it, all at once;
/// threads that are hardly busy are taken to be independent. Where no siblings are known, cores are
/// CPUs.
///
/// Where the counters of all CPU time, idle or not, move with the clock, they show whether they
/// were read late; the interval is then as long as they say, not as the clock says.
///
/// Units: ticks of 10 ms, CPU-seconds per second, busy cores. Sources: kSecondThread, and for the
/// counters Documentation/filesystems/proc.rst of Linux, "/proc/stat".
///
/// Does no I/O. Allocates only when CPUs appear. Not thread-safe.
class CpuUseMeter {
 public:
  /// What a second thread adds to the power of its core, as a fraction of what the first one takes.
  /// An assumption: it depends on the CPU and the program (R. Schöne, D. Hackenberg, D. Molka,
  /// "Simultaneous multithreading on x86_64 systems: an energy efficiency evaluation", HotPower
  /// 2011). docs/energy.md says how to measure it.
  static constexpr double kSecondThread = 0.25;

  explicit CpuUseMeter(host::CpuTopology topology = {}, double second_thread = kSecondThread);

  /// Whether all the CPUs have a place in the topology. If not, it should be read again.
  [[nodiscard]] bool knows(std::span<const host::BusyCpu> cpus) const;
  void set_topology(host::CpuTopology topology);

  /// Takes the counter of all CPUs together and of each that is online, and returns CPU-seconds per
  /// second since the last call. Nothing at the first call and when the counter fell, as in some
  /// kernels when a CPU goes offline. A CPU that was not there before, or whose counter fell,
  /// counts as idle in this interval. `all_ticks` is the counter of all time of all CPUs; 0 if it
  /// is not known.
  std::optional<double> advance(std::uint64_t ticks,
                                std::span<const host::BusyCpu> cpus,
                                Clock::SteadyTime now,
                                std::uint64_t all_ticks = 0);

  /// Seconds by which CPU time was counted for longer than the last interval took by the clock; 0
  /// if that is not known.
  [[nodiscard]] double slip() const { return slip_; }

  /// By CPU number. Empty at first, and while the CPUs' counters do not add up to that of all.
  [[nodiscard]] std::span<const CpuUse> cpus() const { return cpus_; }
  /// At least one. All CPUs are in the first if the topology is not known.
  [[nodiscard]] std::span<const SocketUse> sockets() const { return sockets_; }

 private:
  struct Counter {
    std::uint64_t ticks = 0;
    std::uint64_t round = 0;  ///< number of the advance() that had it last; 0: none
  };
  /// The CPUs of one core.
  struct Core {
    double busy = 0;     ///< of all together
    double most = 0;     ///< of the busiest
    double threads = 0;  ///< how many there are
  };
  [[nodiscard]] host::CpuPlace place_of(int cpu) const;
  void take_cpus(std::span<const host::BusyCpu> cpus, double seconds);
  [[nodiscard]] double cores_of(const Core& core) const;
  void add_up();
  [[nodiscard]] double find_slip(std::uint64_t all_ticks, std::size_t cpus, double seconds);

  host::CpuTopology topology_;
  double second_thread_;
  std::vector<Counter> counters_;  // by CPU number
  std::vector<CpuUse> cpus_;
  std::vector<SocketUse> sockets_;
  std::vector<Core> cores_;  // by core
  std::optional<Clock::SteadyTime> last_;
  std::uint64_t ticks_ = 0;
  std::uint64_t round_ = 0;
  std::uint64_t all_ticks_ = 0;
  std::size_t cpu_count_ = 0;
  double slip_ = 0;
  /// CPU time that was counted, and the time by the clock, over about `seconds`.
  struct Rate {
    double seconds = 0;
    double counted = 0;
    double passed = 0;
    void add(double counted_seconds, double passed_seconds);
    /// As if it had been 1 for `seconds` before.
    [[nodiscard]] double value() const { return (seconds + counted) / (seconds + passed); }
  };
  Rate rate_{.seconds = 600};   // of counters that are a clock
  Rate recent_{.seconds = 60};  // decides whether they are
};

}  // namespace ceems::exporter::energy
