// Units, checks whether a user may see their metrics, and their time series.
#include <algorithm>
#include <span>
#include <utility>

#include "access/visible.h"
#include "api/handlers/handlers.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/time_zone.h"
#include "model/protocol.h"
#include "store/json.h"

namespace ceems::api {

void get_units(const Services& services, Call& call) {
  const Params& params = call.params;
  auto fields = select_fields(store::unit_fields(), params.fields);
  if (!fields) {
    answer_bad_request(call, fields.error());
    return;
  }
  store::UnitQuery query;
  query.owners =
      call.admin_route
          ? access::chosen_rows(call.identity, params.users, params.projects)
          : access::own_rows(call.identity, params.projects, access::parse_part(params.scope));
  query.projects = params.projects;
  query.clusters = params.clusters;
  query.uuids = params.uuids;
  query.running = params.running;
  query.ended = call.window;
  query.order = call.sorting.by;
  query.descending = call.sorting.descending;
  RowFormat format(store::unit_fields(), std::move(*fields));
  if (!params.time_zone.empty()) {
    // An unknown zone is not an error: the times stay in the zone of the database.
    if (const auto zone = TimeZone::find(params.time_zone); zone) {
      format.convert_times(*zone);
    }
  }
  std::vector<std::size_t> key;
  if (call.page) {
    key = format.read_also(store::unit_key_fields());
    query.limit = call.page->limit + 1;  // one more row shows whether there is a next page
    if (query.order == store::UnitOrder::kByEnd) {
      const auto end = format.read_also(*select_fields(store::unit_fields(), {"ended_at_ts"}));
      key.insert(key.begin(), end.begin(), end.end());
    }
    if (std::span after(call.page->after); !after.empty()) {
      if (query.order == store::UnitOrder::kByEnd) {
        query.after_ended_ms = parse_int<std::int64_t>(after[0]).value_or(0);
        after = after.subspan(1);
      }
      query.after = {.cluster_id = after[0], .uuid = after[1], .started_at = after[2]};
    }
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run(
      [&] { return access::read_units(*services.reader, call.identity, query, format.columns()); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(rows),
                     .format = std::move(format),
                     .key_columns = key,
                     .placed = true});
}

void verify_units(const Services& services, Call& call) {
  if (call.params.uuids.empty()) {
    answer_error(*call.response, ApiErrorType::kBadData, "uuids missing in the request");
    return;
  }
  QueryTimer timer(*services.metrics, Query::kVerify);
  const auto decision = timer.run([&] {
    return Result<access::Decision>(access::see_metrics(*services.reader, call.identity,
                                                        call.params.clusters, call.params.uuids));
  });
  if (*decision != access::Decision::kAllow) {
    answer_error(*call.response, ApiErrorType::kForbidden, "user do not have permissions on uuids");
    return;
  }
  // The load balancer sends one id at a time to servers without this header (src/gate).
  call.response->set_header(std::string(model::kVerifiedHeader), std::string(model::kVerifiedEach));
  answer_data(*call.response, "null");
}

namespace {

/// The time from the first start to the last end of the unit, or nothing if the caller may not see
/// it.
Result<std::optional<store::TimeRange>> life_of_unit(const Services& services, const Call& call) {
  store::UnitQuery query;
  query.owners = access::series_rows(call.identity, call.params.projects);
  query.clusters = call.params.clusters;
  query.uuids = call.params.uuids;
  const auto fields = select_fields(store::unit_fields(), {"started_at_ts", "ended_at_ts"});
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run([&] { return services.reader->units(query, *fields); });
  if (!rows) {
    return fail(std::move(rows).error());
  }
  std::optional<store::TimeRange> life;
  while (true) {
    const auto row = timer.run([&] { return (*rows)->next(); });
    if (!row) {
      return fail(row.error());
    }
    if (!*row) {
      return life;
    }
    const std::int64_t start = std::max<std::int64_t>((*rows)->integer(0), 0);
    const std::int64_t end = (*rows)->integer(1) > 0 ? (*rows)->integer(1) : services.now_ms();
    life = life ? store::TimeRange{std::min(life->from_ms, start), std::max(life->to_ms, end)}
                : store::TimeRange{start, end};
  }
}

std::string series_json(const std::vector<Series>& all) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Series& series : all) {
    json.begin_object().member("name", series.name).member("unit", series.unit);
    json.key("points").begin_array();
    for (const auto& [ms, value] : series.points) {
      json.begin_array().value(ms);
      store::append_metric_number(json.begin_value(), value);
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
  return out;
}

/// The requested time, or the default, in milliseconds.
std::int64_t in_milliseconds(std::optional<std::int64_t> seconds, std::int64_t default_ms) {
  constexpr std::int64_t kSecond = 1000;
  return seconds ? *seconds * kSecond : default_ms;
}

}  // namespace

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
  const auto life = life_of_unit(services, call);
  if (!life) {
    answer_failure(*call.response, life.error());
    return;
  }
  const auto& unit_life = *life;
  if (!unit_life) {
    answer_error(*call.response, ApiErrorType::kForbidden, "user do not have permissions on uuids");
    return;
  }
  const std::int64_t life_from = unit_life->from_ms;
  const std::int64_t life_to = unit_life->to_ms;
  constexpr std::int64_t kMinute = 60'000;
  // The period extends a little beyond the unit to include the first and last samples of short
  // units. It is limited, because ids are reused and the unit of another time may belong to
  // somebody else.
  const std::int64_t begin = std::max(in_milliseconds(*from, life_from), life_from - kMinute);
  const std::int64_t end = std::min(in_milliseconds(*to, life_to), life_to + kMinute);
  if (services.max_period_ms > 0 && end - begin > services.max_period_ms) {
    answer_error(*call.response, ApiErrorType::kBadData, "maximum query window exceeded");
    return;
  }
  if (services.series == nullptr || end <= begin) {
    answer_data(*call.response, "[]");
    return;
  }
  const auto series =
      services.series->series(params.clusters.front(), params.uuids.front(), begin, end);
  if (series) {
    answer_data(*call.response, series_json(*series));
  } else if (series.error().code == ErrorCode::kNotFound) {
    answer_data(*call.response, "[]");
  } else {
    log::warn("cannot read the time series of a unit", {{"err", series.error().message}});
    answer_error(*call.response, ApiErrorType::kTimeout, "the time-series server does not respond");
  }
}

}  // namespace ceems::api
