#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

/// Gives snapshots of one manager's units. Implementations are safe for concurrent use; a snapshot
/// younger than `max_age` is shared instead of walking the tree again, so a sampler tick and a
/// scrape that coincide cost one walk.
class UnitSource {
 public:
  virtual ~UnitSource() = default;

  [[nodiscard]] virtual std::string_view manager() const = 0;

  /// Errors: the hierarchy or a root of the manager cannot be read; the collector then fails and
  /// has no unit series in this scrape. A cgroup that vanishes during the walk is no error.
  virtual Result<std::shared_ptr<const UnitSnapshot>> snapshot(
      std::chrono::milliseconds max_age) = 0;

  /// From the next snapshot on, Unit::pids and Unit::children are filled, which costs reading every
  /// cgroup of every unit. Called once by a consumer that needs them (perf, GPU map, ...).
  virtual void want_processes() {}

  /// True while units younger than 25 s exist. The sampler then calls refresh_young() several times
  /// a second, so that a unit which lives only seconds loses little of its last CPU time.
  [[nodiscard]] virtual bool has_young() const { return false; }
  /// Re-reads the CPU time of young units through descriptors that are kept open; a few reads, no
  /// walk. The values show up in the next snapshot, and as last values of a unit that ends.
  virtual void refresh_young() {}

  /// Called by the unit collector after it has exported a snapshot: units that ended and were part
  /// of it need not be kept any longer: they are kept until scraped, at most for
  /// CollectorContext::keep_ended.
  virtual void mark_exported(const UnitSnapshot& snapshot) { static_cast<void>(snapshot); }
};

}  // namespace ceems::exporter
