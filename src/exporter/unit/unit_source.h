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

  /// Errors: what discovery says (spec exporter-units §0.2): the collector then has no unit series
  /// in this scrape. A cgroup that vanishes during the walk is no error.
  virtual Result<std::shared_ptr<const UnitSnapshot>> snapshot(
      std::chrono::milliseconds max_age) = 0;
};

}  // namespace ceems::exporter
