#pragma once

#include <cstdint>

#include "gate/request.h"
#include "gate/shared_ids.h"

namespace ceems::gate {

/// The parameters of the HTTP API of Prometheus that say when a query is evaluated
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview).
enum class TimeForm : std::uint8_t {
  kInstant,  ///< time, by default now
  kRange,    ///< start, end, step
  kBounds,   ///< start, end, by default all times
};

struct AskedTimes {
  Evaluation times;
  std::int64_t lookback_ms = 0;  ///< of instant selectors, as the server is told
  /// How far before a time of evaluation the server may read all the same: it may know no such
  /// parameter, take the step for it, and begin up to a step earlier.
  std::int64_t longest_lookback_ms = 0;
  /// How much later than asked for it may evaluate: one step of a range.
  std::int64_t moved_ms = 0;
};

/// Refuses what is missing, no time, or no positive step.
Checked<AskedTimes> read_times(const Fields& fields, TimeForm form, std::int64_t now_ms);

/// Writes start and end, or the time, and the look-back into `fields`, so that nobody reads them
/// otherwise. Bounds that are far away stay out.
void write_times(Fields& fields, TimeForm form, const AskedTimes& asked);

}  // namespace ceems::gate
