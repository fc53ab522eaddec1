#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/reader.h"
#include "store/sql/session.h"

namespace ceems::store {

// Sums over units for questions about long times (docs/api/database.md, "Sums over time"). The time
// of units' last update is cut into spans, of four spans each one of the next level. The table
// ceems_unit_sums holds what the units of a span add up to per cluster, user, project, group,
// manager and whether they have ended. It counts for the spans in ceems_unit_spans only; a write or
// purge that touches a unit of a span takes the span out of there, and it is summed up anew later.
// The rows of daily_usage are summed up by their day in the same tables, under levels of their own.

inline constexpr std::int64_t kSpanMs = 4LL * 60 * 60 * 1000;  ///< of level 0
inline constexpr std::int64_t kSpansOfNext = 4;
inline constexpr int kSpanLevels = 5;

/// What sums are made of: units by their last update, or days.
enum class SumsOf { kUnits, kDays };
/// Days begin with this level: their smallest spans have 256 h.
inline constexpr int kFirstDayLevel = 3;
/// The number under which a level stands in the tables.
constexpr std::int64_t stored_level(SumsOf what, int level) {
  return what == SumsOf::kUnits ? level : kSpanLevels + level;
}

std::int64_t span_width(int level);

/// Level and number: a span holds the moments from number · width on.
using Span = std::pair<int, std::int64_t>;
using Spans = std::set<Span>;

/// What a range of time is read from.
struct SpanPlan {
  struct Run {
    int level = 0;
    std::int64_t first = 0, last = 0;  ///< numbers
  };
  std::vector<Run> runs;        ///< of sums
  std::vector<TimeRange> rest;  ///< of units themselves
  std::size_t spans = 0;        ///< in the runs
};
/// As few spans as possible. `known` are those that are summed up.
SpanPlan plan_spans(const TimeRange& range, const Spans& known);

/// " WHERE (last_updated_at_ts is in one of them)"
void add_rest(Sql& sql, const std::vector<TimeRange>& rest);
/// " WHERE (level and span are in one of them)"
void add_runs(Sql& sql, SumsOf what, const std::vector<SpanPlan::Run>& runs);

/// Takes the spans that hold one of the moments out, in a transaction that changes their units.
Result<> forget_spans(Session& session, SumsOf what, const std::set<std::int64_t>& moments);
/// The same for what a purge deletes: units or days that `condition` holds for.
Result<> forget_spans_of(Session& session, SumsOf what, const Sql& condition);

/// Sums up spans that ended before `until_ms`, for half a second at most. In a transaction.
Result<> sum_spans(Session& session, std::int64_t until_ms);

}  // namespace ceems::store
