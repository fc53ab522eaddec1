#include "store/sums/unit_sums.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "store/json.h"
#include "store/schema/sums_columns.h"
#include "store/schema/table_sql.h"
#include "store/schema/tables.h"
#include "store/sums/usage_sums.h"

namespace ceems::store {
namespace {

constexpr auto kTimeToSum = std::chrono::milliseconds(500);
// With more pieces a query takes longer than reading all units.
constexpr std::size_t kMaxPieces = 400;

/// cluster, user, project, group, manager, ended
using SumsKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::int64_t>;
struct SumsRow {
  std::int64_t first_id = 0;
  UsageSums sums;
};
using SumsRows = std::map<SumsKey, SumsRow>;

int first_level(SumsOf what) {
  return what == SumsOf::kUnitSums ? 0 : kFirstDayLevel;
}

std::string_view table_of(SumsOf what) {
  return what == SumsOf::kUnitSums ? "units" : "daily_usage";
}

constexpr std::string_view kKeyColumns = "cluster_id,username,project,groupname,resource_manager";

model::MetricMap map_of(std::string_view text) {
  auto map = parse_metric_map(text);
  return map ? std::move(*map) : model::MetricMap();
}

SumsRow& row_of(SumsRows& rows, const AnswerRow& row) {
  const std::int64_t id = row.integer(6);
  const auto [found, fresh] = rows.try_emplace(
      SumsKey{row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), row.integer(5)});
  SumsRow& sums = found->second;
  sums.first_id = fresh ? id : std::min(sums.first_id, id);
  return sums;
}

UsageMaps maps_of(const AnswerRow& row, std::size_t first) {
  UsageMaps maps;
  for (std::size_t map = 0; map < maps.size(); ++map) {
    maps[map] = map_of(row.text(first + map));
  }
  return maps;
}

/// Sums of the units or days in a span of the first level.
Result<> read_rows(Session& session, SumsOf what, Span span, SumsRows& rows) {
  constexpr std::size_t kFirstMap = 8;
  const bool days = what == SumsOf::kDaySums;
  Sql sql(session.dialect(),
          fmt::format("SELECT {}, {}, id, {}, {} FROM {}", kKeyColumns,
                      days ? "0" : "CASE WHEN ended_at_ts > 0 THEN 1 ELSE 0 END",
                      days ? "num_units" : "1", selected_of(kMapColumns, session.reference()),
                      table_of(what)));
  const std::int64_t width = span_width(span.first);
  add_rest(sql, {{span.second * width, (span.second + 1) * width - 1}});
  return session.run(sql, [&rows](std::size_t, const AnswerRow& row) {
    UsageSums& sums = row_of(rows, row).sums;
    sums.num_units += row.integer(7);
    sums.add_row(maps_of(row, kFirstMap), kAllMaps);
  });
}

/// Sums of the sums one level below.
Result<> read_sums(Session& session, SumsOf what, Span span, SumsRows& rows) {
  constexpr std::size_t kFirstMap = 8;
  Sql sql(session.dialect(),
          fmt::format("SELECT {}, ended, first_id, num_units, {} FROM ceems_unit_sums"
                      " WHERE level = ",
                      kKeyColumns, sums_columns(kAllMaps)));
  sql.value(stored_level(what, span.first - 1)).add(" AND span BETWEEN ");
  sql.value(span.second * kSpansOfNext).add(" AND ").value((span.second + 1) * kSpansOfNext - 1);
  return session.run(sql, [&rows](std::size_t, const AnswerRow& row) {
    UsageSums sums;
    sums.num_units = row.integer(7);
    sums.maps = maps_of(row, kFirstMap);
    std::size_t column = kFirstMap + sums.maps.size();
    for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
      if (is_average(metric)) {
        sums.weights[metric] = map_of(row.text(column++));
      }
    }
    row_of(rows, row).sums.add(sums);
  });
}

std::vector<WriterCall> insert_calls(SumsOf what, Span span, const SumsRows& rows) {
  std::vector<WriterCall> calls;
  calls.reserve(rows.size());
  for (const auto& [key, row] : rows) {
    WriterCall& call = calls.emplace_back();
    call.statement = WriterStatement::kInsertSums;
    const auto& [cluster, user, project, group, manager, ended] = key;
    call.values = {stored_level(what, span.first),
                   span.second,
                   cluster,
                   user,
                   project,
                   group,
                   manager,
                   ended,
                   row.first_id,
                   row.sums.num_units};
    for (const auto& map : row.sums.maps) {
      call.values.emplace_back(metric_map_text(map));
    }
    for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
      if (is_average(metric)) {
        call.values.emplace_back(metric_map_text(row.sums.weights[metric]));
      }
    }
  }
  return calls;
}

Result<> sum_span(Session& session, SumsOf what, Span span) {
  const std::int64_t level = stored_level(what, span.first);
  const WriterCall remove{.statement = WriterStatement::kDeleteSums,
                          .values = {level, span.second}};
  auto done = session.run(std::span(&remove, 1), {});
  SumsRows rows;
  if (done) {
    done = span.first == first_level(what) ? read_rows(session, what, span, rows)
                                           : read_sums(session, what, span, rows);
  }
  if (done) {
    done = session.run(insert_calls(what, span, rows), {});
  }
  if (done) {
    const WriterCall insert{.statement = WriterStatement::kInsertSpan,
                            .values = {level, span.second}};
    done = session.run(std::span(&insert, 1), {});
  }
  return done;
}

Result<std::optional<std::int64_t>> number(Session& session, std::string_view text) {
  std::optional<std::int64_t> result;
  CEEMS_TRY(session.run(Sql(session.dialect(), text), [&result](std::size_t, const AnswerRow& row) {
    if (!row.text(0).empty()) {
      result = row.integer(0);
    }
  }));
  return result;
}

}  // namespace

std::int64_t span_width(int level) {
  std::int64_t width = kSpanMs;
  for (; level > 0; --level) {
    width *= kSpansOfNext;
  }
  return width;
}

SpanPlan plan_spans(const TimeRange& range, const Spans& known) {
  SpanPlan plan;
  SpanPlan nothing{.runs = {}, .rest = {range}, .spans = 0};
  if (known.empty() || range.from_ms < 0) {
    return nothing;
  }
  const auto add_rest = [&plan](std::int64_t from, std::int64_t to) {
    if (!plan.rest.empty() && plan.rest.back().to_ms == from - 1) {
      plan.rest.back().to_ms = to;
    } else if (from <= to) {
      plan.rest.push_back({from, to});
    }
  };
  // The sums are valid for spans in [begin, end) only.
  std::int64_t begin = range.to_ms;
  std::int64_t end = range.from_ms;
  for (const auto& [level, number] : known) {
    begin = std::min(begin, number * span_width(level));
    end = std::max(end, (number + 1) * span_width(level));
  }
  begin = std::max(begin, range.from_ms);
  end = range.to_ms < end ? range.to_ms + 1 : end;
  if (begin > range.from_ms) {
    add_rest(range.from_ms, begin - 1);
  }
  for (std::int64_t at = begin; at < end;) {
    int level = kSpanLevels - 1;
    while (level >= 0 && (at % span_width(level) != 0 || at + span_width(level) > end ||
                          !known.contains({level, at / span_width(level)}))) {
      --level;
    }
    if (level < 0) {
      const std::int64_t next = std::min(end, (at / kSpanMs + 1) * kSpanMs);
      add_rest(at, next - 1);
      at = next;
      continue;
    }
    const std::int64_t number = at / span_width(level);
    if (!plan.runs.empty() && plan.runs.back().level == level &&
        plan.runs.back().last == number - 1) {
      plan.runs.back().last = number;
    } else {
      plan.runs.push_back({.level = level, .first = number, .last = number});
    }
    ++plan.spans;
    at += span_width(level);
    if (plan.runs.size() + plan.rest.size() > kMaxPieces) {
      return nothing;
    }
  }
  if (end <= range.to_ms) {
    add_rest(std::max(end, range.from_ms), range.to_ms);
  }
  return plan;
}

void add_rest(Sql& sql, const std::vector<TimeRange>& rest) {
  sql.add(" WHERE (");
  for (std::size_t i = 0; i < rest.size(); ++i) {
    sql.add(i == 0 ? "" : " OR ").add("last_updated_at_ts BETWEEN ").value(rest[i].from_ms);
    sql.add(" AND ").value(rest[i].to_ms);
  }
  sql.add(rest.empty() ? "1=0)" : ")");
}

void add_runs(Sql& sql, SumsOf what, const std::vector<SpanPlan::Run>& runs) {
  sql.add(" WHERE (");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    sql.add(i == 0 ? "" : " OR ").add("(level = ").value(stored_level(what, runs[i].level));
    sql.add(" AND span BETWEEN ").value(runs[i].first).add(" AND ").value(runs[i].last).add(")");
  }
  sql.add(")");
}

Result<> forget_spans(Session& session, SumsOf what, const std::set<std::int64_t>& moments) {
  Spans spans;
  for (const std::int64_t moment : moments) {
    for (int level = first_level(what); level < kSpanLevels; ++level) {
      spans.emplace(level, moment / span_width(level));
    }
  }
  std::vector<WriterCall> calls;
  calls.reserve(spans.size());
  for (const auto& [level, number] : spans) {
    calls.push_back({WriterStatement::kDeleteSpan, {stored_level(what, level), number}});
  }
  return session.run(calls, {});
}

Result<> forget_spans_of(Session& session, SumsOf what, const Sql& condition) {
  for (int level = first_level(what); level < kSpanLevels; ++level) {
    Sql sql(session.dialect(), "DELETE FROM ceems_unit_spans WHERE level = ");
    sql.value(stored_level(what, level)).add(" AND span IN (SELECT last_updated_at_ts / ");
    sql.value(span_width(level)).add(" FROM ").add(table_of(what)).add(" WHERE ");
    sql.append(condition).add(")");
    CEEMS_TRY(session.run(sql, {}));
  }
  return {};
}

namespace {

/// Computes the sums of spans that ended before `until_ms`, until the deadline. Returns how many
/// are left.
Result<std::size_t> sum_some(Session& session,
                             SumsOf what,
                             std::int64_t until_ms,
                             std::chrono::steady_clock::time_point deadline,
                             Spans known) {
  std::size_t left = 0;
  CEEMS_TRY(oldest, number(session, fmt::format("SELECT min(last_updated_at_ts) FROM {}"
                                                " WHERE last_updated_at_ts > 0",
                                                table_of(what))));
  if (!oldest) {
    return left;
  }
  for (int level = first_level(what); level < kSpanLevels; ++level) {
    const std::int64_t width = span_width(level);
    for (std::int64_t number = *oldest / width; (number + 1) * width <= until_ms; ++number) {
      const Span span{level, number};
      if (known.contains(span)) {
        continue;
      }
      bool ready = true;  // spans before the first unit are empty
      for (std::int64_t part = number * kSpansOfNext;
           level > first_level(what) && part < (number + 1) * kSpansOfNext; ++part) {
        const std::int64_t below = span_width(level - 1);
        ready = ready && ((part + 1) * below <= *oldest || known.contains({level - 1, part}));
      }
      if (!ready || std::chrono::steady_clock::now() > deadline) {
        ++left;
        continue;
      }
      CEEMS_TRY(sum_span(session, what, span));
      known.insert(span);
    }
  }
  return left;
}

}  // namespace

Result<std::size_t> sum_spans(Session& session, std::int64_t until_ms) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeToSum;
  Spans units;
  Spans days;
  auto done = session.run(Sql(session.dialect(), "SELECT level, span FROM ceems_unit_spans"),
                          [&](std::size_t, const AnswerRow& row) {
                            const auto level = static_cast<int>(row.integer(0));
                            if (level < kSpanLevels) {
                              units.emplace(level, row.integer(1));
                            } else {
                              days.emplace(level - kSpanLevels, row.integer(1));
                            }
                          });
  if (!done) {
    return fail(std::move(done).error());
  }
  CEEMS_TRY(units_left, sum_some(session, SumsOf::kUnitSums, until_ms, deadline, std::move(units)));
  constexpr std::int64_t kMaxDayMs = 26 * kHourMs;  // a day is written to until it is over
  CEEMS_TRY(days_left,
            sum_some(session, SumsOf::kDaySums, until_ms - kMaxDayMs, deadline, std::move(days)));
  return units_left + days_left;
}

}  // namespace ceems::store
