#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/sum.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter::energy {

/// A unit with its energy. `parts` are the counters of all domains but kNode, which is their sum.
struct UnitEntry {
  std::string manager;
  std::string cgrouphostname;
  std::string uuid;
  std::array<JouleCounter, kPartCount> parts;

  // State of the current interval, for attribution.
  double busy_cpus = 0;           ///< CPU-seconds per second
  double cpus = 0;                ///< CPUs reserved; 0: no reservation known
  double memory_limit_bytes = 0;  ///< 0: none
  double memory_used_bytes = 0;   ///< without inactive file cache
  double presence = 1;            ///< part of the interval in which it existed, 0...1

  std::optional<Clock::SteadyTime> ended;  ///< set once it is gone
  bool scraped_since_end = false;
  std::size_t position = 0;  ///< in UnitTable::entries(), as the account counted them last

  /// Joules of `domain`, kNode being the sum of the others.
  [[nodiscard]] double joules(Domain domain) const;

 private:
  friend class UnitTable;
  double cpu_seconds_ = 0;
  std::uint64_t seen_ = 0;  // update() in which it was last in a snapshot
  std::size_t manager_index_ = 0;
};

/// The snapshot of one manager for one interval; `snapshot` is null where discovery failed.
struct ManagerUnits {
  std::string_view manager;
  const UnitSnapshot* snapshot = nullptr;
};

/// Follows units from snapshot to snapshot: turns CPU counters into rates, notices arrivals and
/// ends, keeps ended units until they may go.
///
/// - CPU use is the counter's difference over the time between the two snapshots of its manager, at
///   most all CPUs online, so a missed or shared snapshot does not give one interval the CPU time
///   of another. A counter that fell (cgroup made anew) counts from 0.
/// - A unit that is first seen counts from 0, too, except in the first snapshot of its manager.
/// - Where discovery fails or the snapshot is the one of last time, the last rate holds for kHold.
///   Units stay alive while discovery fails, at most for the keep time of ended units.
/// - Of several units with the same manager, host and uuid in one snapshot, the first live one
///   counts.
///
/// No allocation in update() while the set of units stays the same. Not thread-safe.
class UnitTable {
 public:
  static constexpr auto kHold = std::chrono::seconds(10);
  static constexpr auto kMinKeep = std::chrono::seconds(60);

  explicit UnitTable(std::chrono::milliseconds keep_ended) : keep_ended_(keep_ended) {}

  /// `managers` keep their order from call to call. Drops ended units that were scraped and ended
  /// kMinKeep ago, and all that ended `keep_ended` ago, giving each to `dropped` first.
  void update(Clock::SteadyTime now,
              double cpus_online,
              std::span<const ManagerUnits> managers,
              const std::function<void(const UnitEntry&)>& dropped);

  /// The current content was put on a page.
  void mark_scraped();

  [[nodiscard]] std::span<const std::unique_ptr<UnitEntry>> entries() const { return entries_; }
  /// Null where there is no such unit.
  [[nodiscard]] const UnitEntry* find(std::string_view manager,
                                      std::string_view cgrouphostname,
                                      std::string_view uuid);

 private:
  struct ManagerState {
    std::optional<Clock::SteadyTime> taken;  // of the last snapshot
    Clock::SystemTime wall{};
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
};

}  // namespace ceems::exporter::energy
