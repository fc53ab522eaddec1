#include "access/policy.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::access {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// The role is not known, so the caller gets neither a lower nor a higher one.
std::unexpected<Error> unknown_role(const Error& error) {
  return fail(ErrorCode::kUnavailable, "cannot read the role of a user: {}", error.message);
}

bool is_somebody(const Identity& identity) {
  return identity.role != Role::kNobody && !identity.user.empty();
}

}  // namespace

std::optional<std::string> user_name(const net::Headers& headers,
                                     const std::vector<std::string>& header_names) {
  std::string user;
  for (const std::string& name : header_names) {
    const auto is_it = [&name](const auto& header) { return same_in_any_case(header.first, name); };
    if (std::ranges::count_if(headers, is_it) > 1) {
      return std::nullopt;
    }
    const auto found = std::ranges::find_if(headers, is_it);
    if (user.empty() && found != headers.end()) {
      user = found->second;
    }
  }
  return user;
}

Result<Identity> identify(store::Reader& reader,
                          const Roles& roles,
                          std::string user,
                          Role granted) {
  Identity identity;
  if (user.empty()) {
    return identity;
  }
  identity.user = std::move(user);
  auto stored = reader.led_projects(identity.user);
  if (!stored) {
    return unknown_role(stored.error());
  }
  identity.led = std::move(*stored);
  for (const Roles::Leads& entry : roles.project_leads) {
    const bool known = std::ranges::any_of(identity.led, [&](const store::ClusterProject& led) {
      return led.cluster_id == entry.cluster_id && led.project == entry.project;
    });
    if (!known && contains(entry.users, identity.user)) {
      identity.led.push_back({.cluster_id = entry.cluster_id, .project = entry.project});
    }
  }
  bool admin = granted == Role::kAdmin || contains(roles.admins, identity.user);
  if (!admin) {
    const auto listed = reader.is_admin(identity.user);
    if (!listed) {
      return unknown_role(listed.error());
    }
    admin = *listed;
  }
  if (admin) {
    identity.role = Role::kAdmin;
  } else if (granted == Role::kSupport || contains(roles.support, identity.user)) {
    identity.role = Role::kSupport;
  } else {
    identity.role = identity.led.empty() ? Role::kUser : Role::kProjectLead;
  }
  return identity;
}

Result<std::vector<std::string>> leads_of(store::Reader& reader,
                                          const Roles& roles,
                                          std::string_view cluster_id,
                                          std::string_view project) {
  CEEMS_TRY(names, reader.leads_of(cluster_id, project));
  for (const Roles::Leads& entry : roles.project_leads) {
    if (entry.project == project && (cluster_id.empty() || entry.cluster_id == cluster_id)) {
      names.insert(names.end(), entry.users.begin(), entry.users.end());
    }
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

bool leads(const Identity& identity, std::string_view cluster_id, std::string_view project) {
  return is_somebody(identity) &&
         std::ranges::any_of(identity.led, [&](const store::ClusterProject& led) {
           return led.cluster_id == cluster_id && led.project == project;
         });
}

Decision admin_area(const Identity& identity) {
  const bool may = identity.role == Role::kAdmin || identity.role == Role::kSupport;
  return may && is_somebody(identity) ? Decision::kAllow : Decision::kDeny;
}

Decision see_admins(const Identity& identity) {
  return identity.role == Role::kAdmin && is_somebody(identity) ? Decision::kAllow
                                                                : Decision::kDeny;
}

Decision see_bill(const Identity& identity) {
  return see_admins(identity);
}

Part parse_part(std::string_view name) {
  if (name == "own") {
    return Part::kOwn;
  }
  return name == "led" ? Part::kLed : Part::kAll;
}

store::Scope own_rows(const Identity& identity,
                      const std::vector<std::string>& projects,
                      Part part) {
  if (!is_somebody(identity)) {
    return {};
  }
  store::Scope scope;
  if (part != Part::kLed) {
    scope.names = {identity.user};
    scope.service_projects = projects;
  }
  if (part != Part::kOwn) {
    scope.led_projects = identity.led;
  }
  return scope;
}

store::Scope own_accounts(const Identity& identity, const std::vector<std::string>& projects) {
  return own_rows(identity, projects, Part::kOwn);
}

store::Scope chosen_rows(const Identity& identity,
                         const std::vector<std::string>& users,
                         const std::vector<std::string>& projects) {
  if (admin_area(identity) != Decision::kAllow) {
    return {};
  }
  if (users.empty()) {
    return {.everybody = true};
  }
  store::Scope scope{.everybody = false, .names = users};
  for (const std::string& project : projects) {
    scope.names.push_back(project + ":svc");
  }
  return scope;
}

store::Scope own_projects(const Identity& identity, Part part) {
  return own_rows(identity, {}, part);
}

store::Scope series_rows(const Identity& identity, const std::vector<std::string>& projects) {
  return identity.role == Role::kAdmin ? chosen_rows(identity, {}, {})
                                       : own_rows(identity, projects);
}

store::Scope all_rows_for_reports() {
  store::Scope scope;
  scope.everybody = true;
  return scope;
}

store::Scope rows_of_owner(const std::string& owner) {
  store::Scope scope;
  if (!owner.empty()) {
    scope.names = {owner};
  }
  return scope;
}

bool sees_written(const Identity& identity,
                  std::string_view owner,
                  std::string_view cluster_id,
                  std::string_view project) {
  if (identity.user.empty()) {
    return false;
  }
  return identity.role == Role::kAdmin || identity.user == owner ||
         leads(identity, cluster_id, project);
}

Decision see_metrics(store::Reader& reader,
                     const Identity& identity,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids) {
  if (!is_somebody(identity) || clusters.empty() || uuids.empty()) {
    return Decision::kDeny;
  }
  if (identity.role == Role::kAdmin) {
    return Decision::kAllow;
  }
  const std::set<std::string> distinct(uuids.begin(), uuids.end());
  const auto found = reader.count_member_units(own_projects(identity), clusters,
                                               {distinct.begin(), distinct.end()});
  if (!found) {
    log::error("cannot look up the owner of units, denying access",
               {{"err", found.error().message}});
    return Decision::kDeny;
  }
  return *found == distinct.size() ? Decision::kAllow : Decision::kDeny;
}

}  // namespace ceems::access
