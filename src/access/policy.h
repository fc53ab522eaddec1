#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "access/role.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::access {

/// The zero value denies.
enum class Decision { kDeny, kAllow };

/// Who asks. api/login finds out the name (docs/api/access.md, "Who asks"). An empty user is
/// nobody.
struct Identity {
  std::string user = {};
  Role role = Role::kNobody;  ///< the strongest that the user has
  /// Projects the user leads, whatever the role: support may lead projects, too.
  std::vector<store::ClusterProject> led = {};
};

/// Roles that the configuration gives, beside the lists of admins and of project leads in the data
/// base.
struct Roles {
  struct Leads {
    std::string cluster_id = {}, project = {};
    std::vector<std::string> users = {};
  };
  std::vector<Leads> project_leads = {};
  std::vector<std::string> support = {};
};

/// First non-empty value of the first of `header_names` that has one; empty when none has.
std::string user_name(const net::Headers& headers, const std::vector<std::string>& header_names);

/// What the user is. Only exact names count. `granted` is what a provider of identities said of the
/// user (its groups); it can add support or admin, nothing else. When a list of the data base
/// cannot be read it counts as empty, and that is logged. An empty user is nobody.
Identity identify(store::Reader& reader,
                  const Roles& roles,
                  std::string user,
                  Role granted = Role::kNobody);

bool leads(const Identity& identity, std::string_view cluster_id, std::string_view project);

/// May the caller use the endpoints of admins? Admins and support.
Decision admin_area(const Identity& identity);
/// May the caller see who is an admin? Admins.
Decision see_admins(const Identity& identity);

// What rows a query of the caller may touch; a nobody gets nobody's.

/// Which part of what is the caller's: their own, what they lead, or both.
enum class Part { kAll, kOwn, kLed };
/// "own", "led"; all else is all.
Part parse_part(std::string_view name);

/// The caller's own, those of the service accounts "p:svc" of the projects asked for where the
/// caller is a member, and those of projects they lead.
store::Scope own_rows(const Identity& identity,
                      const std::vector<std::string>& projects,
                      Part part = Part::kAll);
/// The same without projects that are led: the caller as a user.
store::Scope own_accounts(const Identity& identity, const std::vector<std::string>& projects);
/// Of admins and support: those of the users asked for and of the service accounts of the projects
/// asked for; everybody's when no user is asked for. Of others: nobody's.
store::Scope chosen_rows(const Identity& identity,
                         const std::vector<std::string>& users,
                         const std::vector<std::string>& projects);
/// Rows of the projects that the caller is a member of or leads, for store::UsageQuery.
store::Scope own_projects(const Identity& identity, Part part = Part::kAll);
/// Units whose figures over time the caller may read: admins everybody's, others as own_rows().
store::Scope series_rows(const Identity& identity, const std::vector<std::string>& projects);

/// May the caller see the metrics of these units? Admins may. Others need, for every single id, a
/// unit in one of the clusters whose project there has them as a member or is led by them. Errors
/// of the data base deny and are logged.
Decision see_metrics(store::Reader& reader,
                     const Identity& identity,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids);

}  // namespace ceems::access
