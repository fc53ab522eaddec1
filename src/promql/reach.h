#pragma once

#include <cstdint>
#include <optional>

#include "promql/ast.h"

namespace ceems::promql {

/// Milliseconds, both ends included.
struct TimeSpan {
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  bool operator==(const TimeSpan&) const = default;
};

/// The sum, or the end of the numbers where it would lie beyond.
std::int64_t add_times(std::int64_t left, std::int64_t right);

/// Which times the selectors of a query read, all of them together: the least spans that hold them
/// all. Without the look-back of instant selectors, which the server chooses
/// (https://prometheus.io/docs/prometheus/latest/querying/basics/#staleness): it lies before each
/// span. Nothing where no selector reads that way.
struct Reach {
  std::optional<TimeSpan> around = {};    ///< relative to each time of evaluation
  std::optional<TimeSpan> at_start = {};  ///< "@ start()": relative to the first one
  std::optional<TimeSpan> at_end = {};    ///< "@ end()": relative to the last one
  std::optional<TimeSpan> fixed = {};     ///< "@ 1609746000": epoch
  bool operator==(const Reach&) const = default;
};

/// Ranges, subqueries, "offset" and "@" in each other are added up as Prometheus does.
Reach reach_of(const Expr& query);

}  // namespace ceems::promql
