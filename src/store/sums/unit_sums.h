#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time/durations.h"
#include "store/reader.h"
#include "store/sql/session.h"

namespace ceems::store {

// Sums over units for queries over long periods (docs/api/database.md, "Sums over time"). Time, by
// the last update of a unit, is divided into spans; four spans make one of the next level. The
// table ceems_unit_sums has the sums over the units of a span by cluster, user, project, group,
// manager and whether they have ended. They are valid only for spans listed in ceems_unit_spans: a
// write or purge that touches a unit of a span removes the span from there, and its sums are
// computed again later. The rows of daily_usage are summed up by day in the same tables, under
// separate levels.

inline constexpr std::int64_t kSpanMs = 4 * kHourMs;  ///< of level 0
inline constexpr std::int64_t kSpansOfNext = 4;
inline constexpr int kSpanLevels = 5;

/// The summed rows: units, by their last update, or rows of daily_usage, by their day.
enum class SumsOf { kUnitSums, kDaySums };
/// The first level of days, whose spans are 256 h long.
inline constexpr int kFirstDayLevel = 3;
/// The number of a level in the tables.
constexpr std::int64_t stored_level(SumsOf what, int level) {
  return what == SumsOf::kUnitSums ? level : kSpanLevels + level;
}

std::int64_t span_width(int level);

/// Level and number of a span, which begins at number · width (epoch ms).
using Span = std::pair<int, std::int64_t>;
using Spans = std::set<Span>;

/// How a range of time is read: from sums where possible, otherwise from units.
struct SpanPlan {
  struct Run {
    int level = 0;
    std::int64_t first = 0, last = 0;  ///< numbers
  };
  std::vector<Run> runs;        ///< read from sums
  std::vector<TimeRange> rest;  ///< read from units
  std::size_t spans = 0;        ///< number of spans in `runs`
};
/// Covers the range with as few spans as possible. `known` are the spans whose sums are valid.
SpanPlan plan_spans(const TimeRange& range, const Spans& known);

/// " WHERE (last_updated_at_ts is in one of them)"
void add_rest(Sql& sql, const std::vector<TimeRange>& rest);
/// " WHERE (level and span are in one of them)"
void add_runs(Sql& sql, SumsOf what, const std::vector<SpanPlan::Run>& runs);

/// Makes the sums of all spans that contain one of the moments (epoch ms) invalid. Call it in the
/// transaction that changes their units.
Result<> forget_spans(Session& session, SumsOf what, const std::set<std::int64_t>& moments);
/// The same for a purge, which deletes the units or days that fulfil `condition`.
Result<> forget_spans_of(Session& session, SumsOf what, const Sql& condition);

/// Computes the sums of spans that ended before `until_ms`, for at most half a second. Returns how
/// many are left. Call it in a transaction.
Result<std::size_t> sum_spans(Session& session, std::int64_t until_ms);

}  // namespace ceems::store
