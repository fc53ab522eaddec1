// The time series of a unit.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/chart_lines.h"
#include "api/endpoints/unit_period.h"
#include "base/log.h"
#include "base/strings.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

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
  const bool bins = aggregation == "bins" || aggregation == "mean";
  if (!bins && !aggregation.empty() && aggregation != "lines") {
    return wrong_parameter("'agg': expected lines, bins or mean");
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

/// One point: the mean of the line. Thousands of devices have to fit into an answer, and the ids of
/// GPUs are most of what does not compress, so where the device has an index, that is its name.
void fold_to_mean(Series& line, std::int64_t at_ms) {
  constexpr int kDigits = 2;
  if (line.points.empty()) {
    return;
  }
  double sum = 0;
  for (const auto& [ms, value] : line.points) {
    sum += value;
  }
  line.points = {{at_ms, rounded(sum / static_cast<double>(line.points.size()), kDigits)}};
  const auto has_index = [](const auto& label) { return label.first == "index"; };
  if (std::ranges::any_of(line.labels, has_index)) {
    std::erase_if(line.labels, [](const auto& label) { return label.first == "gpuuuid"; });
  }
}

void answer_series(const Services& services, Call& call, const SeriesRequest& request) {
  auto series = services.series->series(request);
  if (series) {
    if (call.params.text(Param::kAggregation) == "mean") {
      for (Series& line : *series) {
        fold_to_mean(line, request.to_ms);
      }
    }
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
  SeriesRequest request;
  if (const auto read = read_charts(call, request); !read) {
    answer_bad_request(call, read.error());
    return;
  }
  auto period = period_of_unit(services, call);
  if (!period) {
    return;
  }
  const auto [begin, end] = period->range;
  if (services.max_period_ms > 0 && end - begin > services.max_period_ms) {
    answer_error(*call.response, ApiErrorType::kBadData, "maximum query window exceeded");
    return;
  }
  if (services.series == nullptr || end <= begin) {
    answer_data(*call.response, "[]");
    return;
  }
  request.cluster_id = call.params.clusters.front();
  request.uuid = call.params.uuids.front();
  request.from_ms = begin;
  request.to_ms = end;
  request.lives = std::move(period->lives);
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
