// The usage of users and projects.
#include <algorithm>
#include <array>
#include <ctime>
#include <span>
#include <utility>

#include "api/endpoints/all.h"
#include "api/request/row_filter.h"
#include "base/json.h"
#include "base/strings.h"
#include "store/json.h"
#include "store/merge.h"

namespace ceems::api {
namespace {

store::UsageQuery usage_query(const Call& call) {
  return {
      .members = call.admin_route
                     ? access::chosen_rows(call.identity, call.params.users, call.params.projects)
                     : access::own_projects(call.identity, access::parse_part(call.params.scope)),
      .projects = call.params.projects,
      .clusters = call.params.clusters};
}

std::string sorted_text(std::vector<std::string> list) {
  std::ranges::sort(list);
  return store::string_list_text(list);
}

std::string tags_text(const std::vector<store::TagFilter>& tags) {
  std::string text;
  for (const store::TagFilter& tag : tags) {
    text += tag.name + sorted_text(tag.values);
  }
  return text + ";";
}

/// All inputs that determine the answer.
std::string cache_key(const Call& call,
                      const store::CurrentUsageQuery& query,
                      const std::vector<std::size_t>& fields) {
  std::string key = call.admin_route ? "admin" : "user ";
  if (!call.admin_route) {
    append_json_string(key, call.identity.user);
    append_json_string(key, call.params.scope);
  }
  key += sorted_text(query.rows.clusters) + sorted_text(query.rows.projects);
  key += sorted_text(call.admin_route ? call.params.users : std::vector<std::string>());
  key += sorted_text(call.params.match) + tags_text(query.tags);
  key += fmt::format("{} {} {}{}{}{}", query.updated.from_ms, query.updated.to_ms, query.daily,
                     query.terminated_only, query.by_groupname, query.by_resource_manager);
  for (const std::size_t field : fields) {
    key += fmt::format(" {}", field);
  }
  return key;
}

/// The names in the metric maps of all units of the window, one JSON list a map.
using Names = std::array<std::vector<std::string>, model::kMetricCount + 1>;

Names names_of(const std::vector<store::UsageGroup>& groups) {
  Names names;
  if (groups.empty()) {
    return names;
  }
  for (std::size_t map = 0; map < names.size(); ++map) {
    for (const auto& [name, value] : groups.front().maps[map]) {  // the same in all groups
      names[map].push_back(name);
    }
  }
  return names;
}

std::string names_text(const Names& names) {
  std::string text;
  for (const auto& list : names) {
    text += store::string_list_text(list) + "\n";
  }
  return text;
}

Names parse_names(std::string_view text) {
  Names names;
  for (auto& list : names) {
    list = store::parse_string_list(take_until(text, '\n')).value_or(std::vector<std::string>());
  }
  return names;
}

/// Gives each group the names that any unit of the window, the clusters and the projects has, with
/// 0, as the reference does: dashboards select these columns. The names are the same for all users,
/// so they are read once for each window.
Result<> add_names(const Services& services,
                   const store::CurrentUsageQuery& query,
                   std::uint64_t generation,
                   std::vector<store::UsageGroup>& groups) {
  if (groups.empty() || query.rows.members.everybody ||
      std::ranges::find(query.maps, true) == query.maps.end()) {
    return {};
  }
  store::CurrentUsageQuery all = query;
  all.rows.members = {.everybody = true};
  all.by_groupname = all.by_resource_manager = false;
  std::string key = fmt::format("names {}{} {} {} {}{} ", sorted_text(all.rows.clusters),
                                sorted_text(all.rows.projects), all.updated.from_ms,
                                all.updated.to_ms, all.daily, all.terminated_only) +
                    tags_text(all.tags);
  for (const bool wanted : all.maps) {
    key += wanted ? '1' : '0';
  }
  Names names;
  const std::int64_t now_ms = services.now_ms();
  if (const auto hit = services.usage_cache->find(key, generation, now_ms)) {
    names = parse_names(*hit->data);
  } else {
    QueryTimer timer(*services.metrics, Query::kCurrentUsage);
    CEEMS_TRY(everything, timer.run([&] { return services.reader->current_usage(all); }));
    names = names_of(everything);
    services.usage_cache->store(std::move(key), generation, now_ms, names_text(names));
  }
  for (store::UsageGroup& group : groups) {
    for (std::size_t map = 0; map < names.size(); ++map) {
      if (map > 0 && store::is_extreme(static_cast<model::Metric>(map - 1))) {
        continue;  // 0 would be a value
      }
      for (const std::string& name : names[map]) {
        group.maps[map].try_emplace(name, 0);
      }
    }
  }
  return {};
}

/// The additional columns to group by. Usage is always grouped by cluster, user and project.
/// Columns that are not texts of the usage table are refused, because grouping by them makes no
/// sense.
bool add_groups(const std::vector<std::string>& names, store::CurrentUsageQuery& query) {
  for (const std::string& name : names) {
    if (std::ranges::find(group_columns(), name) == group_columns().end()) {
      return false;
    }
    query.by_groupname = query.by_groupname || name == "groupname";
    query.by_resource_manager = query.by_resource_manager || name == "resource_manager";
  }
  return true;
}

std::string_view text_of(const store::UsageGroup& group, std::string_view field) {
  if (field == "cluster_id") {
    return group.cluster_id;
  }
  if (field == "resource_manager") {
    return group.resource_manager;
  }
  if (field == "project") {
    return group.project;
  }
  return field == "groupname" ? group.groupname : group.username;
}

void append_group(JsonWriter& json,
                  const store::UsageGroup& group,
                  const std::vector<bool>& selected) {
  const auto fields = store::usage_fields();
  json.begin_object();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = fields[i].name;
    if (i >= store::kUsageTimes) {
      const model::MetricMap& map = group.maps[i - store::kUsageTimes];
      if (selected[i] && !map.empty()) {
        store::append_metric_map(json.key(name).begin_value(), map);
      }
    } else if (fields[i].kind == store::FieldKind::kInteger) {
      json.member(name, selected[i] ? group.num_units : 0);
    } else {
      json.member(name, selected[i] ? text_of(group, name) : "");
    }
  }
  json.end_object();
}

/// What tells a group from all others, in the order of the groups.
std::vector<std::string> key_of(const store::UsageGroup& group,
                                const store::CurrentUsageQuery& query) {
  return {group.cluster_id, group.username, group.project,
          query.by_groupname ? group.groupname : "",
          query.by_resource_manager ? group.resource_manager : ""};
}

/// All groups, or the groups of the requested page.
void answer_groups(Call& call,
                   const store::CurrentUsageQuery& query,
                   std::span<const store::UsageGroup> groups,
                   const std::vector<bool>& selected,
                   std::string& data) {
  std::size_t behind = 0;  // the page
  if (call.page) {
    const auto first = std::ranges::find_if(groups, [&](const store::UsageGroup& group) {
      return call.page->after.empty() || key_of(group, query) > call.page->after;
    });
    groups = groups.subspan(static_cast<std::size_t>(first - groups.begin()));
    const std::size_t count = std::min(groups.size(), call.page->limit);
    behind = groups.size() - count;
    groups = groups.first(count);
  }
  JsonWriter json(data);
  json.begin_array();
  for (const store::UsageGroup& group : groups) {
    append_group(json, group, selected);
  }
  json.end_array();
  if (!call.page) {
    answer_data(*call.response, data);
    return;
  }
  answer_page(*call.response, data,
              behind > 0 ? key_of(groups.back(), query) : std::vector<std::string>(),
              {.listing = call.listing,
               .query = call.request->query,
               .window = call.window,
               .page = &*call.page,
               .key = {}});
}

/// RFC 9110 IMF-fixdate
std::string http_date(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday],
                     parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

void get_global_usage(const Services& services, Call& call) {
  auto fields = select_fields(store::usage_fields(), call.params.fields);
  if (!fields) {
    answer_bad_request(call, fields.error());
    return;
  }
  RowFormat format(store::usage_fields(), std::move(*fields));
  std::vector<std::size_t> key;
  if (call.page) {
    key = format.read_also(store::usage_key_fields());
  }
  auto filter = RowFilter::create(call.params, store::usage_fields());
  if (!filter) {
    answer_bad_request(call, filter.error());
    return;
  }
  filter->read_with(format);
  QueryTimer timer(*services.metrics, Query::kUsage);
  auto rows =
      timer.run([&] { return services.reader->usage(usage_query(call), format.columns()); });
  if (!filter->empty() && rows) {
    rows = std::move(*filter).rows_of(std::move(*rows));
  }
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(rows),
                     .format = std::move(format),
                     .key_columns = key});
}

void get_current_usage(const Services& services, Call& call) {
  const auto fields = select_fields(store::usage_fields(), call.params.fields);
  if (!fields) {
    answer_bad_request(call, fields.error());
    return;
  }
  store::CurrentUsageQuery query;
  query.rows = usage_query(call);
  query.updated = call.window.value_or(store::TimeRange{});
  query.daily = call.params.experimental;
  query.terminated_only = call.params.terminated;
  if (!add_groups(call.params.group_by, query)) {
    answer_error(*call.response, ApiErrorType::kBadData, "invalid query fields");
    return;
  }
  query.tags = call.params.tags;
  if (query.daily && !query.tags.empty()) {
    answer_error(*call.response, ApiErrorType::kBadData,
                 "query parameters 'tags.*' do not go together with 'experimental': days have no"
                 " tags");
    return;
  }
  const auto filter = RowFilter::create(call.params, store::usage_fields());
  if (!filter) {
    answer_bad_request(call, filter.error());
    return;
  }
  std::vector<bool> selected(store::usage_fields().size());
  for (const std::size_t field : *fields) {
    selected[field] = true;
    if (field >= store::kUsageTimes) {
      query.maps[field - store::kUsageTimes] = true;
    }
  }
  std::string key = cache_key(call, query, *fields);
  // The generation is read before the query, so an answer that misses a later commit is not cached.
  const std::uint64_t generation = services.reader->usage_generation();
  const std::int64_t now_ms = services.now_ms();
  // Pages are not kept: each would need its own entry.
  const auto hit = call.page ? std::nullopt : services.usage_cache->find(key, generation, now_ms);
  if (!call.page) {
    services.metrics->count_cache_lookup(hit.has_value());
  }
  if (hit) {
    answer_data(*call.response, *hit->data);
    call.response->set_header("Expires", http_date(hit->expires_ms));
    return;
  }
  QueryTimer timer(*services.metrics, Query::kCurrentUsage);
  auto groups = timer.run([&] { return services.reader->current_usage(query); });
  if (!groups) {
    answer_failure(*call.response, groups.error());
    return;
  }
  std::erase_if(*groups, [&filter](const store::UsageGroup& group) {
    return !filter->matches([&group](std::string_view field) { return text_of(group, field); });
  });
  if (auto added = add_names(services, query, generation, *groups); !added) {
    answer_failure(*call.response, added.error());
    return;
  }
  std::string data;
  answer_groups(call, query, *groups, selected, data);
  if (!groups->empty() && !call.page) {
    services.usage_cache->store(std::move(key), generation, now_ms, std::move(data));
  }
}

}  // namespace

Endpoints usage_endpoints() {
  const DataSchema rows{.name = "Usage", .fields = store::usage_fields()};
  const Endpoint current{
      .handler = get_current_usage,
      .data = rows,
      .params = {Param::kClusterId, Param::kProject, Param::kFrom, Param::kTo, Param::kField,
                 Param::kGroupBy, Param::kExperimental, Param::kTerminated, Param::kMatch,
                 Param::kPartition, Param::kQos, Param::kQueue, Param::kLimit, Param::kCursor},
      .window = WindowKind::kRounded,
      .page_key = 5};  // as below, group name and resource manager
  const Endpoint global{.handler = get_global_usage,
                        .data = rows,
                        .params = {Param::kClusterId, Param::kProject, Param::kField, Param::kLimit,
                                   Param::kCursor, Param::kMatch},
                        .page_key = 3};  // cluster, user, project
  return {current.for_users("usage/current",
                            "Usage by the members of the caller's projects in the window.",
                            {Param::kScope}),
          current.for_admins("usage/current/admin", "Usage by all users in the window.",
                             {Param::kUser}),
          global.for_users("usage/global", "Usage by the members of the caller's projects so far.",
                           {Param::kScope}),
          global.for_admins("usage/global/admin", "Usage by all users so far.", {Param::kUser})};
}

}  // namespace ceems::api
