// Projects and their members.
#include <array>
#include <utility>

#include "api/endpoints/all.h"

namespace ceems::api {
namespace {

// Indexes into project_fields(), of the key of a row. They are also columns, because the query
// reads all fields.
constexpr std::array<std::size_t, 2> kProjectKey{1, 3};

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
                     .key_columns = kProjectKey});
}

}  // namespace

Endpoints projects_endpoints() {
  const Endpoint projects{
      .handler = get_projects,
      .data = {.name = "Project", .fields = store::project_fields()},
      .params = {Param::kClusterId, Param::kProject, Param::kLimit, Param::kCursor},
      .page_key = kProjectKey.size()};
  return {
      projects.for_users("projects", "Projects that have the caller as a member.", {Param::kScope}),
      projects.for_admins("projects/admin", "All projects that have members.")};
}

}  // namespace ceems::api
