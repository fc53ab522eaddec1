// Users and administrators.
#include <array>
#include <utility>

#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

// Indexes into user_fields(), of the key of a row. They are also columns, because the query reads
// all fields.
constexpr std::array<std::size_t, 2> kUserKey{1, 3};

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
                     .key_columns = kUserKey});
}

}  // namespace

Endpoints users_endpoints() {
  const Endpoint users{
      .handler = get_users,
      .data = {.name = "User", .fields = store::user_fields()},
      .params = {Param::kClusterId, Param::kProject, Param::kLimit, Param::kCursor},
      .page_key = kUserKey.size()};
  return {users.for_users("users", "The caller and the projects they are a member of."),
          users.for_admins("users/admin", "All users, or the administrators.",
                           {Param::kUser, Param::kRole})};
}

}  // namespace ceems::api
