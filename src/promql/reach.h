#pragma once

#include <cstdint>
#include <optional>

#include "promql/ast.h"

namespace ceems::promql {

/// In milliseconds, including both ends.
struct TimeSpan {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  bool operator==(const TimeSpan&) const = default;
};

/// The sum, limited to the range of std::int64_t.
std::int64_t add_times(std::int64_t left, std::int64_t right);

/// The times that the selectors of a query read: the smallest spans that contain the times of all
/// selectors, or nothing if no selector is relative to that base. The look-back of instant
/// selectors is not included, because the server chooses it
/// (https://prometheus.io/docs/prometheus/latest/querying/basics/#staleness). It is before each
/// span.
struct Reach {
  std::optional<TimeSpan> around = {};    ///< relative to each time of evaluation
  std::optional<TimeSpan> at_start = {};  ///< "@ start()": relative to the first of them
  std::optional<TimeSpan> at_end = {};    ///< "@ end()": relative to the last of them
  std::optional<TimeSpan> fixed = {};     ///< "@ 1609746000": since the epoch
  /// "smoothed": a selector also reads as far behind its times as it looks back before them.
  bool looks_ahead = false;
  bool operator==(const Reach&) const = default;
};

/// Adds up nested ranges, subqueries, "offset" and "@" as Prometheus does. Durations that depend on
/// the request ("step()") reach everywhere. start(), end() and range() count as "@ start()" and "@
/// end()": other times would change their values.
Reach reach_of(const Expr& query);

}  // namespace ceems::promql
