#include "store/queries/owners.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace ceems::store {
namespace {

std::set<std::string> set_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

bool allows(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// The conditions on projects and clusters. Where the units have a single owner, they must not
/// choose the index, unless they fix all columns of ceems_units_counts before the end.
void add_filters(Sql& sql, const UnitQuery& query, bool one_owner) {
  if (one_owner && (query.projects.size() != 1 || query.clusters.size() != 1)) {
    sql.and_filter_in("project", query.projects).and_filter_in("cluster_id", query.clusters);
  } else {
    sql.and_in("project", query.projects).and_in("cluster_id", query.clusters);
  }
}

void add_users(const UnitQuery& query, Dialect dialect, std::vector<Sql>& owners) {
  const Scope& scope = query.owners;
  const std::set<std::string> names = set_of(scope.names);
  for (const std::string& name : names) {
    Sql& owner = owners.emplace_back(dialect, " AND username = ").value(name);
    add_filters(owner, query, true);
  }
  for (const std::string& project : set_of(scope.service_projects)) {
    const std::string account = project + ":svc";
    if (!names.contains(account)) {
      Sql& owner = owners.emplace_back(dialect, " AND username = ").value(account);
      owner.and_service_of(project, scope);
      add_filters(owner, query, true);
    }
  }
}

void add_led(const UnitQuery& query, Dialect dialect, std::vector<Sql>& owners) {
  const Scope& scope = query.owners;
  std::set<std::pair<std::string, std::string>> led;
  for (const ClusterProject& one : scope.led_projects) {
    if (allows(query.clusters, one.cluster_id) && allows(query.projects, one.project)) {
      led.emplace(one.project, one.cluster_id);
    }
  }
  for (const auto& [project, cluster] : led) {
    Sql& owner = owners.emplace_back(dialect, " AND project = ").value(project);
    owner.and_filter_in("cluster_id", {cluster});
    if (!scope.names.empty()) {
      owner.add(" AND coalesce(username, '') NOT IN ").list(scope.names);
    }
  }
}

}  // namespace

std::vector<Sql> single_owners(Dialect dialect, const UnitQuery& query) {
  std::vector<Sql> owners;
  if (!query.owners.everybody) {
    add_users(query, dialect, owners);
    add_led(query, dialect, owners);
  } else if (query.projects.empty()) {
    owners.emplace_back(dialect, "").and_filter_in("cluster_id", query.clusters);
  } else {
    for (const std::string& project : set_of(query.projects)) {
      Sql& owner = owners.emplace_back(dialect, " AND project = ").value(project);
      owner.and_filter_in("cluster_id", query.clusters);
    }
  }
  return owners;
}

Sql every_owner(Dialect dialect, const UnitQuery& query) {
  Sql owner(dialect, "");
  owner.and_owner_in(query.owners);
  add_filters(owner, query,
              !query.owners.everybody && query.uuids.empty() && query.clusters.empty());
  return owner.and_in("uuid", query.uuids);
}

}  // namespace ceems::store
