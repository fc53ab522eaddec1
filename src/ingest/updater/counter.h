#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tsdb/answer.h"

namespace ceems::ingest {

/// What one counter counted in (from, to], from its raw samples in ascending order.
///
/// Every sample stands for what was counted since the one before it: the difference, or after a
/// reset (a smaller value) the whole value. A sample belongs to the window that holds its time. So
/// windows that follow one another add up to the same total however they are cut, which
/// increase() of PromQL does not give: it extrapolates to the ends of its range.
///
/// `before` is the value ahead of the first sample: 0 for a counter that was born with it. Values
/// that are negative or not finite are skipped.
double counter_increase(std::span<const tsdb::Sample> samples,
                        double before,
                        std::int64_t from_ms,
                        std::int64_t to_ms);

/// What was added since the sample before, at the time of a sample.
struct Increment {
  std::int64_t time_ms = 0;
  double value = 0;
};

/// The increments of which counter_increase() is the sum, without those of 0.
std::vector<Increment> counter_increments(std::span<const tsdb::Sample> samples,
                                          double before,
                                          std::int64_t from_ms,
                                          std::int64_t to_ms);

/// The start and end of a unit, epoch ms. The end is 0 while it runs.
struct Life {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

struct GaugeArea {
  double value_ms = 0;         ///< value times milliseconds
  std::int64_t unseen_ms = 0;  ///< of the window's part of the life, behind `reach` before a sample
};

/// The area under a gauge in (from, to]. Every sample stands for the time since the sample before
/// it, or since the unit's start, but for `reach_ms` at most, and counts in the window that
/// contains its time, as with counters. So the areas of successive windows add up to the same sum
/// however time is divided. The last value of a unit that ended in the window lasts until its end.
/// Nothing if no sample covers a part of the window.
std::optional<GaugeArea> gauge_area(std::span<const tsdb::Sample> samples,
                                    Life life,
                                    std::int64_t from_ms,
                                    std::int64_t to_ms,
                                    std::int64_t reach_ms);

/// A series of one counter of one origin (host and unit). There are several if the target was
/// renamed or is scraped twice.
struct CounterSeries {
  std::vector<tsdb::Sample> samples;  ///< ascending, at least one
  std::optional<double> before;       ///< known value ahead of the first sample
};

/// What the origin counted. Series that follow one another in time are one counter. Of series at
/// the same time, which show the same counter twice, the one with the larger increase is used. If
/// the value before the first sample is not known, it counts from 0.
std::vector<Increment> origin_increments(std::vector<CounterSeries> series,
                                         std::int64_t from_ms,
                                         std::int64_t to_ms);
/// The sum of origin_increments().
double origin_increase(std::vector<CounterSeries> series, std::int64_t from_ms, std::int64_t to_ms);

}  // namespace ceems::ingest
