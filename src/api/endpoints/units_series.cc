// The time series of a unit.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/chart_lines.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "promql/reach.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

/// Created, started and ended, which identify a life of an ID.
using Times = std::array<std::int64_t, 3>;

/// The lives of the ID that the caller may see the series of. Marks calls for units of other users.
Result<std::vector<Times>> visible_lives(const Services& services, Call& call) {
  store::UnitQuery query;
  query.owners = access::series_rows(call.identity, call.params.projects);
  query.clusters = call.params.clusters;
  query.uuids = call.params.uuids;
  const auto fields = select_fields(store::unit_fields(),
                                    {"username", "created_at_ts", "started_at_ts", "ended_at_ts"});
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->units(query, *fields); }));
  std::vector<Times> lives;
  while (true) {
    CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
    if (!row) {
      return lives;
    }
    const bool own = rows->text(0) == call.identity.user;
    call.foreign = call.foreign || (!own && call.identity.role == access::Role::kAdmin);
    lives.push_back({rows->integer(1), rows->integer(2), rows->integer(3)});
  }
}

/// All lives of the ID. One that is not among the caller's own, each of which counts once, is
/// somebody else's.
Result<gate::SharedId> lives_of(const Services& services, Call& call) {
  CEEMS_TRY(own, visible_lives(services, call));
  if (own.empty()) {
    return gate::SharedId{};
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(lives, timer.run([&] {
    return services.reader->unit_lives({}, call.params.clusters.front(), call.params.uuids);
  }));
  for (store::UnitLife& life : lives) {
    const auto found =
        std::ranges::find(own, Times{life.created_ms, life.started_ms, life.ended_ms});
    life.in_scope = found != own.end();
    if (life.in_scope) {
      own.erase(found);
    }
  }
  auto by_id = gate::lives_by_id(std::move(lives));
  return std::move(by_id[call.params.uuids.front()]);
}

/// From the first start to the last end, at most until now.
store::TimeRange bounds_of(const std::vector<promql::TimeSpan>& lives, std::int64_t now_ms) {
  store::TimeRange bounds{.from_ms = lives.front().from_ms, .to_ms = 0};
  for (const promql::TimeSpan& life : lives) {
    bounds.from_ms = std::max<std::int64_t>(std::min(bounds.from_ms, life.from_ms), 0);
    bounds.to_ms = std::max(bounds.to_ms, std::min(life.to_ms, now_ms));
  }
  return bounds;
}

/// The requested time, or the default, in milliseconds.
std::int64_t in_milliseconds(std::optional<std::int64_t> seconds, std::int64_t default_ms) {
  return seconds ? *seconds * kSecondMs : default_ms;
}

/// The charts and lines that the parameters ask for.
Result<> read_charts(const Call& call, SeriesRequest& request) {
  constexpr std::int64_t kMaxPoints = 300, kBinPoints = 24;
  constexpr std::size_t kMaxBins = 4096;
  const Params& params = call.params;
  request.charts = params.list(Param::kMetric);
  for (const std::string& name : request.charts) {
    if (find_unit_chart(name) == nullptr) {
      std::vector<std::string_view> names;
      std::ranges::transform(unit_charts(), std::back_inserter(names), &UnitChart::name);
      return wrong_parameter(fmt::format("'metric': expected {}", fmt::join(names, ", ")));
    }
  }
  const std::string_view by = params.text(Param::kBy);
  const auto found = chart_by(by.empty() ? "sum" : by);
  if (!found) {
    return wrong_parameter(fmt::format("'by': expected {}", fmt::join(kChartBys, ", ")));
  }
  request.by = *found;
  const std::string_view aggregation = params.text(Param::kAggregation);
  const bool bins = aggregation == "bins";
  if (!bins && !aggregation.empty() && aggregation != "lines") {
    return wrong_parameter("'agg': expected lines or bins");
  }
  request.max_points = bins ? kBinPoints : kMaxPoints;
  request.max_lines = bins ? kMaxBins : request.max_lines;
  if (const std::string_view points = params.text(Param::kPoints); !points.empty()) {
    const auto count = parse_int<std::int64_t>(points);
    if (!count || *count < 2 || *count > request.max_points) {
      return wrong_parameter(
          fmt::format("'points': expected a number from 2 to {}", request.max_points));
    }
    request.max_points = *count;
  }
  if (request.charts.empty() && (request.by != ChartBy::kSum || bins)) {
    return wrong_parameter("'metric': expected, because 'by' or 'agg' is given");
  }
  return {};
}

void answer_series(const Services& services, Call& call, const SeriesRequest& request) {
  auto series = services.series->series(request);
  if (series) {
    constexpr int kDigits = 4;
    for (Series& line : *series) {
      for (auto& [ms, value] : line.points) {
        value = request.charts.empty() ? value : rounded(value, kDigits);
      }
    }
    answer_data(*call.response, series_json(*series));
    return;
  }
  switch (series.error().code) {
    case ErrorCode::kNotFound:
      answer_data(*call.response, "[]");
      return;
    case ErrorCode::kPermissionDenied:
      log::warn("refused the time series of a unit",
                {{"cluster_id", request.cluster_id}, {"err", series.error().message}});
      answer_error(*call.response, ApiErrorType::kForbidden,
                   "the time series do not name the cluster that they belong to");
      return;
    default:
      if (!tsdb::CancelScope::cancelled()) {
        log::warn("cannot read the time series of a unit", {{"err", series.error().message}});
      }
      answer_tsdb_failure(*call.response);
  }
}

void get_unit_series(const Services& services, Call& call) {
  const Params& params = call.params;
  if (params.uuids.size() != 1 || params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id and one uuid are needed");
    return;
  }
  const auto from = parse_seconds("from", params.from);
  const auto to = parse_seconds("to", params.to);
  if (!from || !to) {
    answer_bad_request(call, !from ? from.error() : to.error());
    return;
  }
  SeriesRequest request{.cluster_id = params.clusters.front(), .uuid = params.uuids.front()};
  if (const auto read = read_charts(call, request); !read) {
    answer_bad_request(call, read.error());
    return;
  }
  auto lives = lives_of(services, call);
  if (!lives) {
    answer_failure(*call.response, lives.error());
    return;
  }
  if (lives->own.empty()) {
    answer_error(*call.response, ApiErrorType::kForbidden, "user do not have permissions on uuids");
    return;
  }
  // The period extends a little beyond the lives to include the first and last samples of short
  // units. It is limited, because ids are reused and the unit of another time may belong to
  // somebody else.
  const store::TimeRange life = bounds_of(lives->own, services.now_ms());
  const std::int64_t begin =
      std::max({in_milliseconds(*from, life.from_ms), life.from_ms - kMinuteMs, std::int64_t{0}});
  const std::int64_t end = std::min(in_milliseconds(*to, life.to_ms), life.to_ms + kMinuteMs);
  if (services.max_period_ms > 0 && end - begin > services.max_period_ms) {
    answer_error(*call.response, ApiErrorType::kBadData, "maximum query window exceeded");
    return;
  }
  if (services.series == nullptr || end <= begin) {
    answer_data(*call.response, "[]");
    return;
  }
  request.from_ms = begin;
  request.to_ms = end;
  request.lives = std::move(*lives);
  answer_series(services, call, request);
}

}  // namespace

Endpoints units_series_endpoints() {
  return {{.path = "units/series",
           .caller = Caller::kUser,
           .summary = "CPU, memory, GPUs, power and more of one of the caller's units over time.",
           .handler = get_unit_series,
           .data = lines_of_charts(),
           .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kFrom, Param::kTo,
                      Param::kMetric, Param::kBy, Param::kAggregation, Param::kPoints},
           .required = {Param::kClusterId, Param::kUuid},
           .window = WindowKind::kOwn,
           .tagged = false,
           .waits = true,
           .refusals = {ApiErrorType::kForbidden}}};
}

}  // namespace ceems::api
