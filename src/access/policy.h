#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/role.h"
#include "base/result.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::access {

/// The zero value denies.
enum class Decision { kDeny, kAllow };

/// Who sends a request. api/login determines the name (docs/api/access.md, "Who asks"). A caller
/// without identity has an empty name.
struct Identity {
  std::string user = {};
  Role role = Role::kNobody;  ///< the strongest role that the user has
  /// Projects the user leads, whatever the role: support may lead projects as well.
  std::vector<store::ClusterProject> led = {};
};

/// Roles from the configuration. The lists of admins and of project leads in the database come on
/// top.
struct Roles {
  std::vector<std::string> admins = {};
  struct Leads {
    std::string cluster_id = {}, project = {};
    std::vector<std::string> users = {};
  };
  std::vector<Leads> project_leads = {};
  std::vector<std::string> support = {};
};

/// The value of the first of `header_names` that has one; empty if none has. Nothing if one of the
/// headers is given twice: two programs may then read different names, so callers must deny.
std::optional<std::string> user_name(const net::Headers& headers,
                                     const std::vector<std::string>& header_names);

/// Determines the role of a user. Only exact names count. `granted` is the role from an identity
/// provider (by the user's groups), which can only add support or admin. An empty user gets no
/// role. kUnavailable if a list cannot be read from the database: the role is not known then.
Result<Identity> identify(store::Reader& reader,
                          const Roles& roles,
                          std::string user,
                          Role granted = Role::kNobody);

bool leads(const Identity& identity, std::string_view cluster_id, std::string_view project);
/// Who leads a project on a cluster (empty: on any), by name, each once. Errors come
/// from the reader.
Result<std::vector<std::string>> leads_of(store::Reader& reader,
                                          const Roles& roles,
                                          std::string_view cluster_id,
                                          std::string_view project);

/// Whether the caller may use the endpoints for admins: admins and support may.
Decision admin_area(const Identity& identity);
/// Whether the caller may see who is an admin: only admins may.
Decision see_admins(const Identity& identity);
/// Whether the caller may see the site's bills: only admins may.
Decision see_bill(const Identity& identity);

// The rows that a query of the caller may touch. A caller without identity gets none.

/// Selects among the caller's rows: their own, rows of projects they lead, or both.
enum class Part { kAll, kOwn, kLed };
/// Parses "own" and "led"; any other text is kAll.
Part parse_part(std::string_view name);

/// The rows of the caller, of the service accounts "p:svc" of the given projects if the caller is a
/// member, and of projects the caller leads.
store::Scope own_rows(const Identity& identity,
                      const std::vector<std::string>& projects,
                      Part part = Part::kAll);
/// The same without led projects: the caller as a plain user.
store::Scope own_accounts(const Identity& identity, const std::vector<std::string>& projects);
/// For admins and support: the rows of the given users and of the service accounts of the given
/// projects, or all rows if no user is given. For others: none.
store::Scope chosen_rows(const Identity& identity,
                         const std::vector<std::string>& users,
                         const std::vector<std::string>& projects);
/// Own rows, and rows of the projects that the caller is a member of or leads, for
/// store::UsageQuery.
store::Scope own_projects(const Identity& identity, Part part = Part::kAll);
/// Units whose time series the caller may read: all for admins, own_rows() for others.
store::Scope series_rows(const Identity& identity, const std::vector<std::string>& projects);

/// All rows, for the finisher of reports, and to find for whom there are mails. Access to a stored
/// report is decided when it is requested.
store::Scope all_rows_for_reports();

/// All rows of one user, for mails to that user.
store::Scope rows_of_owner(const std::string& owner);

/// Whether the caller may see what people wrote of a unit (visible.h): of their own units, of units
/// in projects they lead, and of all units for admins.
bool sees_written(const Identity& identity,
                  std::string_view owner,
                  std::string_view cluster_id,
                  std::string_view project);

/// Whether the caller may see the metrics of all these units. Admins may. Others need, for every
/// id, a unit in one of the clusters that is theirs, or whose project there has them as a member or
/// is led by them.
/// Errors of the database deny access and are logged.
Decision see_metrics(store::Reader& reader,
                     const Identity& identity,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids);

}  // namespace ceems::access
