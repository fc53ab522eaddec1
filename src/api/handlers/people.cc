// Users, projects, clusters and counts.
#include <chrono>
#include <utility>

#include "api/envelope.h"
#include "api/handlers/handlers.h"
#include "store/json.h"

namespace ceems::api {

std::int64_t Services::now_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock->now().time_since_epoch())
      .count();
}

void answer_bad_request(Call& call, const Error& error) {
  answer_error(*call.response, ApiErrorType::kBadData, error.message);
}

void answer_cursor(Call& call,
                   Result<std::unique_ptr<store::Cursor>> rows,
                   std::span<const store::Field> fields) {
  if (!rows) {
    answer_failure(*call.response, rows.error());
    return;
  }
  std::vector<std::size_t> all(fields.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  answer_rows(*call.response, std::move(*rows), RowFormat(fields, std::move(all)));
}

void get_users(const Services& services, Call& call) {
  const Params& params = call.params;
  if (call.admin_route && params.role == "admin") {
    answer_cursor(call, services.reader->admins(), store::user_fields());
    return;
  }
  const store::Scope scope = call.admin_route
                                 ? access::chosen_rows(call.identity, params.users, params.projects)
                                 : access::own_rows(call.identity, params.projects);
  answer_cursor(call, services.reader->users(scope, params.clusters), store::user_fields());
}

void get_projects(const Services& services, Call& call) {
  const Params& params = call.params;
  const store::UsageQuery query{.members = call.admin_route
                                               ? access::chosen_rows(call.identity, {}, {})
                                               : access::own_projects(call.identity,
                                                                      access::parse_part(params.scope)),
                                .projects = params.projects,
                                .clusters = params.clusters};
  answer_cursor(call, services.reader->projects(query), store::project_fields());
}

void get_clusters(const Services& services, Call& call) {
  answer_cursor(call, services.reader->clusters(), store::cluster_fields());
}

void get_current_stats(const Services& services, Call& call) {
  const auto window = parse_window(call.params, services.now_ms(), services.max_period_ms);
  if (!window) {
    answer_bad_request(call, window.error());
    return;
  }
  answer_cursor(call, services.reader->stats(call.params.clusters, *window), store::stat_fields());
}

void get_global_stats(const Services& services, Call& call) {
  answer_cursor(call, services.reader->stats(call.params.clusters, std::nullopt),
                store::stat_fields());
}

void get_whoami(const Services& services, Call& call) {
  if (services.sign_in != nullptr) {
    answer_data(*call.response, "[" + services.sign_in->whoami(*call.request, call.identity) + "]");
    return;
  }
  std::string data = R"([{"user":)";
  store::append_json_string(data, call.identity.user);
  data += call.identity.admin ? R"(,"admin":true}])" : R"(,"admin":false}])";
  answer_data(*call.response, data);
}

}  // namespace ceems::api
