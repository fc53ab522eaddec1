#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tsdb/answer.h"

namespace ceems::ingest {

/// The increase since the previous sample, at the time of a sample.
struct Increment {
  std::int64_t time_ms = 0;
  double value = 0;
};

/// Returns what one counter counted in (from, to], given its raw samples in ascending order,
/// without increments of 0.
///
/// Every sample stands for the increase since the previous one: the difference or, after a reset (a
/// smaller value), the whole value. The increase belongs to the window that contains the sample's
/// time. So consecutive windows add up to the same total however time is divided. PromQL's
/// increase() does not guarantee this, because it extrapolates to the ends of its range.
///
/// `before` is the value before the first sample: 0 if the counter began with that sample. Values
/// that are negative or not finite are skipped.
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
  std::int64_t unseen_ms = 0;  ///< time in the window that no later sample reaches
};

/// Returns the area under a gauge in (from, to]. Every sample stands for the time since the
/// previous sample or since the unit's start, up to a limit of `reach_ms`. It counts in the window
/// that contains its time, as with counters. So the areas of consecutive windows add up to the same
/// sum however time is divided. The last value of a unit that ended in the window lasts until its
/// end, again for at most `reach_ms`. Nothing if no sample covers a part of the window.
std::optional<GaugeArea> gauge_area(std::span<const tsdb::Sample> samples,
                                    Life life,
                                    std::int64_t from_ms,
                                    std::int64_t to_ms,
                                    std::int64_t reach_ms);

/// A series of one counter of one origin (host and unit). There are several if the target was
/// renamed or is scraped twice.
struct CounterSeries {
  std::vector<tsdb::Sample> samples;  ///< ascending, at least one
  std::optional<double> before;       ///< value before the first sample, if known
};

/// Returns what the origin counted. Series that follow one another in time are one counter. If
/// series overlap in time, they show the same counter twice, and the one with the larger increase
/// is used. If the value before the first sample is not known, counting starts from 0.
std::vector<Increment> origin_increments(std::vector<CounterSeries> series,
                                         std::int64_t from_ms,
                                         std::int64_t to_ms);

}  // namespace ceems::ingest
