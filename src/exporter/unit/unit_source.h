#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

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

  /// Called by the unit collector after it has exported a snapshot. Ended units in it need not be
  /// kept any longer. Without this call they are kept for CollectorContext::keep_ended.
  virtual void mark_exported(const UnitSnapshot& snapshot) { static_cast<void>(snapshot); }
};

}  // namespace ceems::exporter
