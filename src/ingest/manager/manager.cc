#include "ingest/manager/manager.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "config/section.h"

namespace ceems::ingest {
namespace {

void warn_about_unread_section(bool unread, const char* section, const ClusterConfig& config) {
  if (unread) {
    log::warn("the manager of the cluster does not read this section of the configuration",
              {{"cluster_id", config.cluster.id},
               {"manager", config.cluster.manager},
               {"section", section}});
  }
}

}  // namespace

UsersAndProjects users_and_projects(const std::set<Membership>& members) {
  std::map<std::string, model::User> users;
  std::map<std::string, model::Project> projects;
  for (const auto& [project, user] : members) {
    users[user].projects.push_back(project);
    projects[project].users.push_back(user);
  }
  UsersAndProjects result;
  for (auto& [name, user] : users) {
    user.name = name;
    result.users.push_back(std::move(user));
  }
  for (auto& [name, project] : projects) {
    project.name = name;
    result.projects.push_back(std::move(project));
  }
  return result;
}

const ManagerSpec* find_manager(std::string_view name) {
  const auto& specs = all_managers();
  const auto found = std::ranges::find(specs, name, &ManagerSpec::name);
  return found == specs.end() ? nullptr : &*found;
}

Result<std::unique_ptr<ResourceManager>> create_manager(const ManagerSpec& spec,
                                                        const ClusterConfig& config,
                                                        const ManagerContext& context) {
  CEEMS_TRY(config::Section(config.extra).only(spec.extra_keys).done());
  warn_about_unread_section(
      !spec.reads_cli && (!config.cli_path.empty() || !config.cli_environment.empty()), "cli",
      config);
  warn_about_unread_section(!spec.reads_web && !config.web_url.empty(), "web", config);
  return spec.create(config, context);
}

}  // namespace ceems::ingest
