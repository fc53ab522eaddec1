// Users, projects, clusters and counts.
#include <array>
#include <chrono>
#include <numeric>
#include <utility>

#include "api/handlers/handlers.h"
#include "base/json.h"

namespace ceems::api {
namespace {

// Indexes into user_fields() and project_fields(). They are also columns, because the queries read
// all fields.
constexpr std::array<std::size_t, 2> kPersonKey{1, 3};

}  // namespace

std::int64_t Services::now_ms() const {
  return clock->now_ms();
}

void answer_bad_request(Call& call, const Error& error) {
  answer_error(*call.response, ApiErrorType::kBadData, error.message);
}

RowFormat all_of(std::span<const store::Field> fields) {
  std::vector<std::size_t> all(fields.size());
  std::iota(all.begin(), all.end(), 0U);
  return {fields, std::move(all)};
}

void answer_with(Call& call, Rows rows) {
  if (!rows.cursor) {
    answer_failure(*call.response, rows.cursor.error());
    return;
  }
  Listing listing{.timer = std::move(rows.timer),
                  .rows = std::move(*rows.cursor),
                  .format = std::move(rows.format)};
  if (!call.page || rows.key_columns.empty()) {
    answer_rows(*call.response, std::move(listing), *call.streams, call.identity.user);
    return;
  }
  answer_page(*call.response, std::move(listing),
              {.listing = call.listing,
               .query = call.request->query,
               .window = call.window,
               .page = &*call.page,
               .key = rows.key_columns,
               .skip = !rows.placed});
}

void get_users(const Services& services, Call& call) {
  const Params& params = call.params;
  QueryTimer timer(*services.metrics, Query::kUsers);
  if (call.admin_route && params.role == "admin") {
    if (access::see_admins(call.identity) != access::Decision::kAllow) {
      answer_error(*call.response, ApiErrorType::kForbidden,
                   "current user does not have admin privileges");
      return;
    }
    auto admins = timer.run([&] { return services.reader->admins(); });
    answer_with(call, {.timer = std::move(timer),
                       .cursor = std::move(admins),
                       .format = all_of(store::user_fields())});
    return;
  }
  const store::Scope scope = call.admin_route
                                 ? access::chosen_rows(call.identity, params.users, params.projects)
                                 : access::own_accounts(call.identity, params.projects);
  auto users = timer.run([&] { return services.reader->users(scope, params.clusters); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(users),
                     .format = all_of(store::user_fields()),
                     .key_columns = kPersonKey});
}

void get_projects(const Services& services, Call& call) {
  const Params& params = call.params;
  const store::UsageQuery query{
      .members = call.admin_route
                     ? access::chosen_rows(call.identity, {}, {})
                     : access::own_projects(call.identity, access::parse_part(params.scope)),
      .projects = params.projects,
      .clusters = params.clusters};
  QueryTimer timer(*services.metrics, Query::kProjects);
  auto projects = timer.run([&] { return services.reader->projects(query); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(projects),
                     .format = all_of(store::project_fields()),
                     .key_columns = kPersonKey});
}

void get_clusters(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kClusters);
  auto clusters = timer.run([&] { return services.reader->clusters(); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(clusters),
                     .format = all_of(store::cluster_fields())});
}

namespace {

void answer_stats(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kStats);
  auto stats = timer.run([&] { return services.reader->stats(call.params.clusters, call.window); });
  answer_with(call, {.timer = std::move(timer),
                     .cursor = std::move(stats),
                     .format = all_of(store::stat_fields())});
}

}  // namespace

void get_current_stats(const Services& services, Call& call) {
  answer_stats(services, call);
}

void get_global_stats(const Services& services, Call& call) {
  answer_stats(services, call);
}

void get_whoami(const Services& services, Call& call) {
  if (services.sign_in != nullptr) {
    answer_data(*call.response, "[" + services.sign_in->whoami(*call.request, call.identity) + "]");
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array().begin_object().member("user", call.identity.user);
  json.member("admin", call.identity.role == access::Role::kAdmin);
  json.member("role", access::role_name(call.identity.role)).end_object().end_array();
  answer_data(*call.response, data);
}

}  // namespace ceems::api
