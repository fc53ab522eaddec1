#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fleet/robust.h"
#include "tsdb/answer.h"

namespace ceems::api {

/// The windows of a range query: the first ends a step after `from_ms`.
struct Windows {
  std::int64_t from_ms = 0;
  std::int64_t step_ms = 0;
  std::size_t count = 0;

  [[nodiscard]] std::int64_t first_ms() const { return from_ms + step_ms; }
  [[nodiscard]] std::int64_t last_ms() const {
    return from_ms + static_cast<std::int64_t>(count) * step_ms;
  }
  /// The finite samples of a series, by window.
  [[nodiscard]] fleet::WindowValues values_of(const tsdb::Series& series) const {
    fleet::WindowValues values(count);
    for (const tsdb::Sample& sample : series.samples) {
      const std::int64_t place = (sample.time_ms - from_ms + step_ms / 2) / step_ms - 1;
      if (place >= 0 && std::cmp_less(place, count) && std::isfinite(sample.value)) {
        values[static_cast<std::size_t>(place)] = sample.value;
      }
    }
    return values;
  }
};

}  // namespace ceems::api
