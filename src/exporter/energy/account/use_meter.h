#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/unit_table.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/unit/unit_source.h"

namespace ceems::exporter::energy {

/// Follows how units use what they have reserved, in the intervals of the energy account: their
/// highest memory, the most CPUs that they kept busy, the seconds in which they did nothing, and
/// what they did on GPUs. The results are in UnitEntry::use.
///
/// - Memory: memory.stat is read when more is charged to the unit than ever before, and by the full
///   snapshots otherwise. Memory takes CPU time to fill (some GB a second), so the charge is read
///   only of units that have used kMemoryCpu since it was read last.
/// - A second is idle if the unit used less than kIdleCpus of the CPUs that it has reserved and
///   less than kIdleCores, had no work on a GPU, and moved less than kIdleBytes from and to disks.
///   Where these are not counted, less than kIdleStall of the time may have been lost waiting for
///   I/O. Where the unit's traffic over networks and to file systems is counted, less than
///   kIdleBytes of that, too; such seconds are counted when the next scrape has shown it. They are
///   judged in spans of up to kSpan seconds, so that I/O is rarely read. Where neither is counted,
///   or the GPU's use is not known, nothing is idle.
///
/// Units: bytes, seconds, busy CPUs. Source: bookkeeping; the limits below are conventions.
///
/// Not thread-safe.
class UseMeter {
 public:
  static constexpr double kMeanSeconds = 10;
  static constexpr double kMemoryCpu = 0.01;  ///< CPU-seconds
  static constexpr double kIdleCpus = 0.02;
  /// The limit for units with many CPUs, where 0.02 of them may be a busy serial program.
  static constexpr double kIdleCores = 0.5;
  static constexpr double kIdleBytes = 1e6;  ///< a second
  static constexpr double kIdleStall = 0.02;
  static constexpr double kSpan = 10;
  static constexpr auto kGpuAge = std::chrono::seconds(30);

  struct Interval {
    Clock::SteadyTime time{};  ///< its end
    double cpus_online = 0;
    std::span<const ManagerUnits> managers;
    std::span<const std::shared_ptr<UnitSource>> sources;  ///< in the order of `managers`
    bool has_devices = false;   ///< the node has devices whose use is read
    bool devices_read = false;  ///< there is a new reading of devices, which is `devices`
    std::span<const DeviceUse> devices = {};
  };

  /// `units` are the account's units after it has advanced to the same time.
  void advance(const Interval& interval, std::span<const std::unique_ptr<UnitEntry>> units);

 private:
  void take_devices(const Interval& interval, std::span<const std::unique_ptr<UnitEntry>> units);
  [[nodiscard]] bool no_gpu_work(const UnitUse& use, const Interval& interval) const;
  static void count_cores(UnitUse& use, double cpus, double seconds);
  void take_unit(UnitEntry& unit, const Interval& interval, double seconds);
  static void take_answer(UnitUse& use, const UnitProbe& probe);
  static void count_idle(UnitUse& use, const UnitProbe& probe, double seconds);

  std::optional<Clock::SteadyTime> last_;
  std::optional<Clock::SteadyTime> devices_read_;
  // Of one manager; reused.
  std::vector<UnitProbe> probes_;
  std::vector<UnitEntry*> probed_;
};

}  // namespace ceems::exporter::energy
