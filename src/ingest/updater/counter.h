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

/// What the time a sample stands for has added, at the sample's time.
struct Increment {
  std::int64_t time_ms = 0;
  double value = 0;
};

/// The same one by one; increments of 0 are left out.
std::vector<Increment> counter_increments(std::span<const tsdb::Sample> samples,
                                          double before,
                                          std::int64_t from_ms,
                                          std::int64_t to_ms);

/// When a unit began and, if it did, ended (else 0), epoch ms.
struct Life {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

struct GaugeArea {
  double value_ms = 0;         ///< value times milliseconds
  std::int64_t unseen_ms = 0;  ///< of the window's part of the life, behind `reach` before a sample
};

/// The area under a gauge that belongs to (from, to]: every sample stands for the time since the
/// one before it, or since the unit's start, `reach` at most, and counts in the window that holds
/// its time, as with counters. So areas of windows that follow one another add up to the same
/// however they are cut. A unit that ended in the window gets its last value up to its end. Nothing
/// where no sample says anything about the window.
std::optional<GaugeArea> gauge_area(std::span<const tsdb::Sample> samples,
                                    Life life,
                                    std::int64_t from_ms,
                                    std::int64_t to_ms,
                                    std::int64_t reach_ms);

/// One counter of one origin (host and unit) as the TSDB holds it: usually one series, several when
/// the target was renamed or is scraped twice.
struct CounterSeries {
  std::vector<tsdb::Sample> samples;  ///< ascending, at least one
  std::optional<double> before;       ///< known value ahead of the first sample
};

/// What the origin counted: series that follow one another in time continue the same counter;
/// series at the same time are two sights of it, of which the one that saw more is taken. A first
/// sample without known value ahead counts from 0.
std::vector<Increment> origin_increments(std::vector<CounterSeries> series,
                                         std::int64_t from_ms,
                                         std::int64_t to_ms);
/// Their sum.
double origin_increase(std::vector<CounterSeries> series, std::int64_t from_ms, std::int64_t to_ms);

}  // namespace ceems::ingest
