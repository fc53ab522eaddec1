#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tsdb/answer.h"

namespace ceems::api {

/// What one counter counted in (from, to], from its raw samples in ascending order.
///
/// Every sample stands for what was counted since the one before it: the difference, or after a
/// reset (a smaller value) the whole value. A sample belongs to the window that holds its time. So
/// windows that follow one another add up to the same total however they are cut, which
/// increase() of PromQL does not give: it extrapolates to the ends of its range.
///
/// `before` is the value ahead of the first sample: 0 for a counter that was born with it. Values
/// that are negative or not finite are passed over.
double counter_increase(std::span<const tsdb::Sample> samples,
                        double before,
                        std::int64_t from_ms,
                        std::int64_t to_ms);

/// Mean of the samples in (from, to]; nothing where there are none.
std::optional<double> gauge_mean(std::span<const tsdb::Sample> samples,
                                 std::int64_t from_ms,
                                 std::int64_t to_ms);

/// One counter of one origin (host and unit) as the TSDB holds it: usually one series, several when
/// the target was renamed or is scraped twice.
struct CounterSeries {
  std::vector<tsdb::Sample> samples;  ///< ascending, at least one
  std::optional<double> before;       ///< known value ahead of the first sample
};

/// What the origin counted: series that follow one another in time continue the same counter;
/// series at the same time are two sights of it, of which the one that saw more is taken. A first
/// sample without known value ahead counts from 0.
double origin_increase(std::vector<CounterSeries> series, std::int64_t from_ms, std::int64_t to_ms);

}  // namespace ceems::api
