#include "access/digests.h"

#include <algorithm>

#include "access/lists.h"

namespace ceems::access {

DigestRows own_digest(const Identity& identity) {
  if (identity.role == Role::kNobody || identity.user.empty()) {
    return {};
  }
  DigestRows rows{.seen = DigestRows::Seen::kWhole,
                  .members = own_projects(identity, Part::kOwn),
                  .written = true};
  list_own(identity, Part::kOwn, rows.units);
  rows.units.users = {identity.user};
  return rows;
}

DigestRows project_digest(const Identity& identity,
                          const std::string& project,
                          const std::vector<std::string>& clusters,
                          bool member) {
  if (project.empty() || identity.role == Role::kNobody || identity.user.empty()) {
    return {};
  }
  DigestRows rows;
  if (identity.role != Role::kAdmin) {
    Identity here = identity;
    std::erase_if(here.led, [&](const store::ClusterProject& led) {
      return led.project != project ||
             (!clusters.empty() && std::ranges::find(clusters, led.cluster_id) == clusters.end());
    });
    if (!here.led.empty()) {
      rows.seen = DigestRows::Seen::kWhole;
      rows.members = own_projects(here, Part::kLed);
      rows.written = true;
      list_own(here, Part::kLed, rows.units);
      rows.units.projects = {project};
      return rows;
    }
  }
  if (admin_area(identity) == Decision::kAllow) {
    rows.seen = DigestRows::Seen::kWhole;
    rows.members = chosen_rows(identity, {}, {});
    rows.written = identity.role == Role::kAdmin;
    list_everybodys(identity, {}, rows.units);
    rows.units.projects = {project};
    return rows;
  }
  rows.seen = member ? DigestRows::Seen::kBand : DigestRows::Seen::kNothing;
  return rows;
}

store::FactFilter all_rows_for_bands() {
  store::FactFilter filter;
  filter.owners.everybody = true;
  return filter;
}

}  // namespace ceems::access
