// Units as rows of the database.
#include <span>
#include <utility>

#include "access/visible.h"
#include "api/endpoints/all.h"
#include "api/request/row_filter.h"
#include "base/strings.h"
#include "base/time/time_zone.h"

namespace ceems::api {
namespace {

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
  auto filter = RowFilter::create(params, store::unit_fields());
  if (!filter) {
    answer_bad_request(call, filter.error());
    return;
  }
  const bool filtered = !filter->empty();
  if (filtered) {
    filter->read_with(format);
    query.limit = 0;  // the page is cut from the rows that are left
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run(
      [&] { return access::read_units(*services.reader, call.identity, query, format.columns()); });
  if (filtered && rows) {
    rows = std::move(*filter).rows_of(std::move(*rows));
  }
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(rows),
                     .format = std::move(format),
                     .key_columns = key,
                     .placed = true});
}

}  // namespace

Endpoints units_endpoints() {
  const Endpoint units{.handler = get_units,
                       .data = {.name = "Unit", .fields = store::unit_fields()},
                       .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kFrom,
                                  Param::kTo, Param::kRunning, Param::kField, Param::kTimeZone,
                                  Param::kLimit, Param::kCursor, Param::kSort, Param::kOrder,
                                  Param::kMatch, Param::kPartition, Param::kQos, Param::kQueue},
                       .window = WindowKind::kEnded,
                       .page_key = 3};  // cluster, id, start
  return {units.for_users("units", "The caller's units that ended in the window.", {Param::kScope}),
          units.for_admins("units/admin", "All units that ended in the window.", {Param::kUser})};
}

}  // namespace ceems::api
