#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter::energy {

/// What a unit did on one GPU or instance since it was first seen there.
struct GpuUse {
  std::string device;    ///< uuid of the GPU
  std::string instance;  ///< number of the instance; empty for a whole GPU
  std::string index;
  std::optional<double> busy_seconds = {};
  std::optional<double> sm_seconds = {};  ///< integral of the part of the SMs that worked for it
  std::optional<double> memory_peak_bytes = {};
};

/// How a unit used its resources since it was first seen (use_meter.h). Unknown values are absent.
class UnitUse {
 public:
  /// Takes the memory of a snapshot.
  void take(const UnitStats& stats);

  [[nodiscard]] std::optional<double> memory_shmem_bytes() const { return shmem_bytes_; }
  /// The most memory without file cache.
  [[nodiscard]] std::optional<double> memory_peak_bytes() const;
  /// The highest mean number of busy CPUs in UseMeter::kMeanSeconds.
  [[nodiscard]] std::optional<double> cpu_max() const { return cpu_max_; }
  [[nodiscard]] std::optional<double> idle_seconds() const { return idle_seconds_; }
  [[nodiscard]] const std::vector<GpuUse>& gpus() const { return gpus_; }

 private:
  friend class UseMeter;
  /// CPU time at one time, both in seconds since the unit was first seen.
  struct Mark {
    double time = 0;
    double cpu = 0;
  };

  std::optional<double> shmem_bytes_;
  std::uint64_t peak_bytes_ = 0;
  double unchecked_cpu_ = 0;         // CPU-seconds since its memory was looked at
  std::uint64_t charged_bytes_ = 0;  // highest charge for which the peak is known

  std::array<Mark, 12> marks_{};  // a ring
  std::size_t mark_count_ = 0;
  Mark now_;
  std::optional<double> cpu_max_;

  std::optional<double> idle_seconds_;
  bool seen_ = false;
  double unsettled_ = 0;  // seconds that are idle if there was no I/O
  // The last reading of I/O: bytes, or seconds in which something waited for it.
  std::optional<double> io_;
  bool io_in_bytes_ = false;
  // Where traffic is counted: seconds that are idle if the next note of it says so.
  double unconfirmed_ = 0;
  std::optional<double> traffic_;
  std::uint64_t traffic_notes_ = 0;
  double io_age_ = 0;  // seconds since, without those in which the unit did nothing at all

  std::vector<GpuUse> gpus_;
  double gpu_busy_ = 0;       // of the last reading, the busiest one
  bool gpu_unknown_ = false;  // at least one in the last reading
};

/// A counter of joules that adds small amounts for years without losing them, by compensated
/// summation (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen",
/// 1974). It never decreases.
class JouleCounter {
 public:
  /// Adds `joules`; negative and non-finite amounts are ignored.
  void add(double joules) {
    if (!(joules > 0) || !std::isfinite(joules)) {
      return;
    }
    const double sum = sum_ + joules;
    // The larger operand keeps its digits in `sum`. What the smaller one lost goes to the carry.
    carry_ += sum_ >= joules ? (sum_ - sum) + joules : (joules - sum) + sum_;
    sum_ = sum;
    // Rounding may lower the total by one unit in the last place, which a counter must not show.
    value_ = std::max(value_, sum_ + carry_);
  }
  [[nodiscard]] double value() const { return value_; }

 private:
  double sum_ = 0;
  double carry_ = 0;
  double value_ = 0;
};

/// A unit with its energy. `parts` are the counters of all domains except kNode, which is their
/// sum.
struct UnitEntry {
  std::string manager;
  std::string cgrouphostname;
  std::string uuid;
  std::array<JouleCounter, kPartCount> parts;
  std::array<JouleCounter, kPartCount> idle_parts;    ///< of these: idle energy of what it reserves
  std::array<JouleCounter, kPartCount> unused_parts;  ///< of these: of what it did not use then
  UnitUse use;

  // State of the current interval, for attribution.
  double busy_cpus = 0;                             ///< CPU-seconds per second
  double cpus = 0;                                  ///< CPUs reserved; 0: no reservation known
  std::shared_ptr<const std::vector<int>> cpu_set;  ///< see UnitStats
  double memory_limit_bytes = 0;                    ///< 0: none
  double memory_used_bytes = 0;                     ///< without the inactive file cache
  double presence = 1;  ///< fraction of the interval in which it existed, 0...1

  /// The part of its reserved CPUs that was not busy in the interval, 0...1. 0 without a
  /// reservation, because such a unit is charged with what it uses.
  [[nodiscard]] double unused_cpus() const;
  /// The part of its reserved memory that it has never touched so far, 0...1. 0 without a limit,
  /// with one of all of the node's memory or more, and where its memory is not counted.
  [[nodiscard]] double unused_memory(double memory_total_bytes) const;

  std::optional<Clock::SteadyTime> ended;  ///< set when it has ended
  bool scraped_since_end = false;
  std::uint64_t serial = 0;  ///< counts from 1; never reused
  std::size_t position = 0;  ///< in UnitTable::entries() at the last advance() of the account

  /// Joules of `domain`. kNode is the sum of the others.
  [[nodiscard]] double joules(Domain domain) const;
  /// The part of joules() that is idle energy of what the unit has reserved; at most joules().
  [[nodiscard]] double idle_joules(Domain domain) const;
  /// The part of idle_joules() of what the unit had reserved and did not use in that interval; at
  /// most idle_joules().
  [[nodiscard]] double unused_idle_joules(Domain domain) const;

 private:
  friend class UnitTable;
  double cpu_seconds_ = 0;
  std::uint64_t seen_ = 0;  // number of the last update() whose snapshot had it
  std::size_t manager_index_ = 0;
};

/// The snapshot of one manager for one interval. `snapshot` is null if discovery failed.
struct ManagerUnits {
  std::string_view manager;
  const UnitSnapshot* snapshot = nullptr;
};

/// Follows units from snapshot to snapshot: converts CPU counters to rates, detects new and ended
/// units, and keeps ended ones until they may be dropped.
///
/// - CPU use is the difference of the counter divided by the time between the two snapshots of its
///   manager, at most all CPUs online. A missed or shared snapshot therefore does not add the CPU
///   time of one interval to another. A counter that fell (recreated cgroup) counts from 0.
/// - A unit that appears also counts from 0, except in the first snapshot of its manager.
/// - If discovery fails or returns the previous snapshot, the last rate holds for kHold. Units stay
///   alive while discovery fails, but at most for the keep time of ended units.
/// - If several units in one snapshot have the same manager, host and uuid, the first live one
///   counts.
///
/// Units: seconds, CPU-seconds per second, bytes. Source: bookkeeping; nothing is modelled.
///
/// update() does not allocate while the set of units stays the same. Not thread-safe.
class UnitTable {
 public:
  static constexpr auto kHold = std::chrono::seconds(10);
  static constexpr auto kMinKeep = std::chrono::seconds(60);
  static constexpr std::size_t kMaxEnded = 20'000;

  explicit UnitTable(std::chrono::milliseconds keep_ended) : keep_ended_(keep_ended) {}

  /// `managers` keep their order from call to call. Drops ended units that were scraped and ended
  /// at least kMinKeep ago, units that ended at least `keep_ended` ago, and beyond kMaxEnded the
  /// oldest that are no longer in a snapshot. Passes each to `dropped` first.
  void update(Clock::SteadyTime now,
              double cpus_online,
              std::span<const ManagerUnits> managers,
              const std::function<void(const UnitEntry&)>& dropped);

  /// Records that the current entries were put on a page.
  void mark_scraped();

  [[nodiscard]] std::span<const std::unique_ptr<UnitEntry>> entries() const { return entries_; }
  /// Null if there is no such unit.
  [[nodiscard]] const UnitEntry* find(std::string_view manager,
                                      std::string_view cgrouphostname,
                                      std::string_view uuid);

 private:
  struct ManagerState {
    std::optional<Clock::SteadyTime> taken;  // of the last snapshot
    Clock::SystemTime wall{};
    std::uint64_t round = 0;  // number of the update() that took it
  };
  struct Hash {
    using is_transparent =
        void;  // NOLINT(readability-identifier-naming): name given by the standard
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  void take(std::size_t manager, const ManagerUnits& units, double cpus_online);
  void take_unit(std::size_t manager,
                 const ManagerUnits& units,
                 const Unit& unit,
                 double gap_seconds,
                 double cpus_online);
  UnitEntry* find_or_add(std::string_view manager, const Unit& unit, bool& added);

  std::chrono::milliseconds keep_ended_;
  std::vector<ManagerState> managers_;
  std::vector<std::unique_ptr<UnitEntry>> entries_;
  std::unordered_map<std::string, UnitEntry*, Hash, std::equal_to<>> by_key_;
  std::string key_;  // reused
  std::uint64_t round_ = 0;
  std::uint64_t serial_ = 0;
};

}  // namespace ceems::exporter::energy
