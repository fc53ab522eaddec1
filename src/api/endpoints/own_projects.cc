#include "api/endpoints/own_projects.h"

#include <algorithm>

#include "api/accounting/accounting.h"
#include "api/accounting/budgets.h"

namespace ceems::api {

std::set<std::pair<std::string, std::string>> own_projects(const Services& services,
                                                           const Call& call) {
  std::set<std::pair<std::string, std::string>> projects;
  QueryTimer timer(*services.metrics, Query::kProjects);
  auto rows = timer.run(
      [&] { return services.reader->projects({.members = access::own_projects(call.identity)}); });
  const auto cluster = store::find_field(store::project_fields(), "cluster_id");
  const auto name = store::find_field(store::project_fields(), "name");
  while (rows && cluster && name) {
    const auto row = timer.run([&] { return (*rows)->next(); });
    if (!row || !*row) {
      break;
    }
    projects.emplace((*rows)->text(*cluster), (*rows)->text(*name));
  }
  return projects;
}

SeenBudgets::SeenBudgets(const Services& services, const Call& call)
    : all_(access::admin_area(call.identity) == access::Decision::kAllow) {
  if (!all_ && !services.accounting->options().budgets.empty()) {
    own_ = own_projects(services, call);
  }
}

bool SeenBudgets::sees(const std::string& cluster, const std::string& project) const {
  if (all_) {
    return true;
  }
  if (project == ProjectBudget::kAllProjects) {
    return false;  // a project that has this name does not open the site's budget
  }
  if (own_.contains({cluster, project})) {
    return true;
  }
  return cluster.empty() &&
         std::ranges::any_of(own_, [&project](const auto& own) { return own.second == project; });
}

}  // namespace ceems::api
