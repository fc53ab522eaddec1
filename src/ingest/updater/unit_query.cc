#include "ingest/updater/unit_query.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/duration.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kMinBatch = 10;
constexpr std::int64_t kMaxBatch = 2000;
// An answer with more series than this is not about a batch of units.
constexpr std::size_t kMinSeriesBound = 10'000;

/// An expression that matches these ids, and means the same between double quotes, single quotes
/// and back-ticks, of which a template may use any. So it has no backslash: special characters
/// stand in classes, and those that no class can hold are matched by any character. Answers about
/// other units are dropped.
std::string uuids_expression(const std::vector<std::string>& uuids) {
  std::string expression;
  for (const std::string& uuid : uuids) {
    if (!expression.empty()) {
      expression += '|';
    }
    for (const char c : uuid) {
      if (std::string_view(".+*?()|[]{}$").find(c) != std::string_view::npos) {
        expression += fmt::format("[{}]", c);
      } else if (std::string_view("^\\\"'`\n").find(c) != std::string_view::npos) {
        expression += '.';
      } else {
        expression += c;
      }
    }
  }
  return expression;
}

}  // namespace

QueryContext query_context(model::Window window, const tsdb::Settings& settings) {
  QueryContext context;
  auto& variables = context.variables;
  variables.scrape_interval = config::prometheus_duration(settings.scrape_interval);
  variables.scrape_interval_milli = fmt::format("{}", settings.scrape_interval.count());
  variables.evaluation_interval = config::prometheus_duration(settings.evaluation_interval);
  variables.evaluation_interval_milli = fmt::format("{}", settings.evaluation_interval.count());
  variables.rate_interval = config::prometheus_duration(settings.rate_interval());
  variables.range =
      config::go_duration(std::chrono::seconds((window.end_ms - window.start_ms) / 1000));
  // The points of a subquery are at multiples of its step. Prometheus 2 includes the points at both
  // ends of a range, so consecutive ranges would share one. Ending a millisecond earlier avoids
  // this.
  context.time_ms = window.end_ms - 1;
  // Keeps samples after a unit's end from counting.
  context.lookback = settings.scrape_interval;
  context.timeout = settings.query_timeout;
  return context;
}

Result<std::vector<UnitValue>> ask_units(tsdb::Client& client,
                                         const tsdb::QueryTemplate& query,
                                         const QueryContext& context,
                                         const std::vector<std::string>& uuids,
                                         const std::stop_token& stop) {
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  tsdb::QueryVariables variables = context.variables;
  variables.uuids = uuids_expression(uuids);
  auto answer = client.query(
      {.query = query.render(variables),
       .time_ms = context.time_ms,
       .lookback = context.lookback,
       .timeout = context.timeout,
       .complete = context.complete,
       .max_series = std::max(kMinSeriesBound, uuids.size() * context.max_series_per_unit)});
  if (answer) {
    std::vector<UnitValue> values;
    std::set<std::string_view> seen;
    for (const auto& series : answer->series) {
      const std::string_view uuid = series.labels.get("uuid");
      // The answer may contain units that were not requested.
      if (std::ranges::binary_search(uuids, uuid)) {
        if (!seen.insert(uuid).second) {
          return fail(ErrorCode::kInvalidArgument,
                      "the answer has more than one sample of the unit {}; aggregate the query by"
                      " (uuid)",
                      printable(uuid));
        }
        values.push_back({.uuid = std::string(uuid), .value = series.samples.front().value});
      }
    }
    return values;
  }
  if (answer.error().code != ErrorCode::kInvalidArgument || uuids.size() == 1 ||
      answer.error().message.find("too many samples") == std::string::npos) {
    return fail(std::move(answer).error());
  }
  const auto middle = uuids.begin() + static_cast<std::ptrdiff_t>(uuids.size() / 2);
  CEEMS_TRY(first, ask_units(client, query, context, {uuids.begin(), middle}, stop));
  CEEMS_TRY(second, ask_units(client, query, context, {middle, uuids.end()}, stop));
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::int64_t batch_size(model::Window window,
                        const tsdb::Settings& settings,
                        std::int64_t max_series,
                        double min_samples) {
  const std::int64_t steps =
      std::max<std::int64_t>((window.end_ms - window.start_ms) /
                                 std::max<std::int64_t>(settings.scrape_interval.count(), 1),
                             1);
  const double limit = std::floor(static_cast<double>(settings.max_samples) /
                                  (static_cast<double>(max_series) * static_cast<double>(steps)));
  const double batch = std::floor(min_samples * limit);
  return std::clamp(static_cast<std::int64_t>(std::min(batch, 1e9)), kMinBatch, kMaxBatch);
}

}  // namespace ceems::ingest
