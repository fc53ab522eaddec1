#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/source_gate.h"
#include "host/paths.h"

namespace ceems::exporter {

/// What the gate of the service makes of one meter.
struct MeterCheck {
  std::optional<energy::Doubt> doubt;
  /// A counter that did not move. The service knows only after some seconds whether it stands
  /// still.
  bool unmoved = false;
};

/// Does some work, so that counters move.
void keep_busy(std::chrono::milliseconds period);

/// Reads `meters` through energy::ReadingGate, as the service does: counters several times within
/// `watch`, in which this thread works, and then the powers of the node, which must not be below
/// what the counters show. With a watch of 0, all are read once. Results are in the order of the
/// meters; nothing is said of a model.
std::vector<MeterCheck> check_meters(const energy::Meters& meters,
                                     const host::Paths& paths,
                                     std::chrono::milliseconds watch);

}  // namespace ceems::exporter
