#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

/// A question about one unit that is asked between full snapshots, and the answer.
struct UnitProbe {
  std::string_view cgrouphostname;
  std::string_view uuid;
  /// Asks for `memory_held_bytes` if more memory than this is charged to the unit.
  std::optional<std::uint64_t> memory_above = {};
  bool io = false;  ///< asks for its block I/O

  // The answers; absent where they are not known or were not asked for.
  std::optional<std::uint64_t> memory_charged_bytes = {};  ///< file cache included
  std::optional<std::uint64_t> memory_held_bytes = {};     ///< see UnitStats
  std::optional<double> io_bytes = {};  ///< read and written since the unit's start
  /// Where no bytes are counted: the time in which a process of the unit waited for I/O.
  std::optional<double> io_stalled_seconds = {};
  /// Where traffic is counted: the last of the unit's UnitTraffic, or 0, and how many there were.
  std::optional<double> traffic_bytes = {};
  std::uint64_t traffic_notes = 0;
};

/// What a unit has moved over networks and to file systems, as a collector counted it.
struct UnitTraffic {
  std::string_view cgrouphostname;
  std::string_view uuid;
  double bytes = 0;  ///< since it was found; never decreases
};

/// Takes snapshots of one manager's units. Implementations are safe for concurrent use. A snapshot
/// younger than `max_age` is shared instead of walking the tree again, so that a tick of the
/// sampler and a scrape at the same time cost one walk.
class UnitSource {
 public:
  virtual ~UnitSource() = default;

  [[nodiscard]] virtual std::string_view manager() const = 0;
  /// The v1 controller in whose hierarchy the units are; empty with cgroup v2.
  [[nodiscard]] virtual std::string_view controller() const { return {}; }

  /// Errors: the hierarchy or a root of the manager cannot be read. The collector then fails and
  /// has no series of units in this scrape. A cgroup that vanishes during the walk is not an error.
  virtual Result<std::shared_ptr<const UnitSnapshot>> snapshot(
      std::chrono::milliseconds max_age) = 0;

  /// As snapshot(), for the energy account, which takes one a second: CPU times are read now, other
  /// statistics may be a few seconds old.
  virtual Result<std::shared_ptr<const UnitSnapshot>> energy_snapshot(
      std::chrono::milliseconds max_age) {
    return snapshot(max_age);
  }

  /// From the next snapshot on, Unit::pids and Unit::children are filled, which costs reading every
  /// cgroup of every unit. Called once by each consumer that needs them (perf, GPU map, ...).
  virtual void want_processes() {}

  /// True while units younger than 25 s exist. The sampler then calls refresh_young() several times
  /// a second, so that a unit which lives only seconds loses little of its last CPU time.
  [[nodiscard]] virtual bool has_young() const { return false; }
  /// Reads the CPU time of young units again, through descriptors that are kept open and without a
  /// walk. The values appear in the next snapshot and are the final ones of a unit that ends.
  virtual void refresh_young() {}

  /// Answers all questions in one pass. Units that are gone have no answers.
  virtual void probe(std::span<UnitProbe> probes) { static_cast<void>(probes); }
  /// Takes note of traffic, for probe(). Called at each scrape where it is counted.
  virtual void note_traffic(std::span<const UnitTraffic> traffic) { static_cast<void>(traffic); }

  /// Called by the unit collector after it has exported a snapshot. Ended units in it need not be
  /// kept any longer. Without this call they are kept for CollectorContext::keep_ended.
  virtual void mark_exported(const UnitSnapshot& snapshot) { static_cast<void>(snapshot); }
};

}  // namespace ceems::exporter
