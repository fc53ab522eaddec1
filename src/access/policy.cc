#include "access/policy.h"

#include <set>

#include "base/log.h"

namespace ceems::access {

std::string user_name(const net::Headers& headers, const std::vector<std::string>& header_names) {
  for (const std::string& name : header_names) {
    const std::string* value = net::find_header(headers, name);
    if (value != nullptr && !value->empty()) {
      return *value;
    }
  }
  return {};
}

Identity identify(store::Reader& reader,
                  const net::Headers& headers,
                  const std::vector<std::string>& header_names) {
  Identity identity;
  identity.user = user_name(headers, header_names);
  if (identity.user.empty()) {
    return identity;
  }
  const auto admin = reader.is_admin(identity.user);
  if (!admin) {
    log::error("cannot read the list of admins, so nobody is one",
               {{"err", admin.error().message}});
    return identity;
  }
  identity.admin = *admin;
  return identity;
}

Decision admin_area(const Identity& identity) {
  return identity.admin && !identity.user.empty() ? Decision::kAllow : Decision::kDeny;
}

store::Scope own_rows(const Identity& identity, const std::vector<std::string>& projects) {
  if (identity.user.empty()) {
    return {};
  }
  return {.everybody = false, .names = {identity.user}, .service_projects = projects};
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

store::Scope own_projects(const Identity& identity) {
  return own_rows(identity, {});
}

Decision see_metrics(store::Reader& reader,
                     const Identity& identity,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids) {
  if (identity.user.empty() || clusters.empty() || uuids.empty()) {
    return Decision::kDeny;
  }
  if (identity.admin) {
    return Decision::kAllow;
  }
  const std::set<std::string> distinct(uuids.begin(), uuids.end());
  const auto found =
      reader.count_member_units(own_projects(identity), clusters,
                                {distinct.begin(), distinct.end()});
  if (!found) {
    log::error("cannot look up the owner of units, access is denied",
               {{"err", found.error().message}});
    return Decision::kDeny;
  }
  return *found == distinct.size() ? Decision::kAllow : Decision::kDeny;
}

}  // namespace ceems::access
