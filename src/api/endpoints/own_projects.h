#pragma once

#include <set>
#include <string>
#include <utility>

#include "api/endpoints/endpoint.h"

namespace ceems::api {

/// The projects that the caller is a member of or leads, as cluster and name. Empty if they cannot
/// be read.
std::set<std::pair<std::string, std::string>> own_projects(const Services& services,
                                                           const Call& call);

/// Whether the caller may see a budget: admins and support see all, others the budgets of their
/// projects. A budget of all clusters is of a project if the caller has it on any of them.
class SeenBudgets {
 public:
  SeenBudgets(const Services& services, const Call& call);
  [[nodiscard]] bool sees(const std::string& cluster, const std::string& project) const;

 private:
  bool all_ = false;
  std::set<std::pair<std::string, std::string>> own_;
};

}  // namespace ceems::api
