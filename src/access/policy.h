#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "store/reader.h"

namespace ceems::access {

/// The zero value denies.
enum class Decision { kDeny, kAllow };

/// Who asks. Names are believed as sent: whoever can reach the port and passes basic auth can claim
/// any (docs/api/endpoints.md, "Identity"). An empty user is nobody.
struct Identity {
  std::string user = {};
  bool admin = false;
};

/// First non-empty value of the first of `header_names` that has one; empty when none has.
std::string user_name(const net::Headers& headers, const std::vector<std::string>& header_names);

/// Who these headers name. Only an exact entry in the list of admins makes an admin; when the list
/// cannot be read nobody is one, and that is logged.
Identity identify(store::Reader& reader,
                  const net::Headers& headers,
                  const std::vector<std::string>& header_names);

/// May the caller use the endpoints of admins?
Decision admin_area(const Identity& identity);

// What rows a query of the caller may touch; a nobody gets nobody's.

/// The caller's own, and those of the service accounts "p:svc" of the projects asked for where the
/// caller is a member.
store::Scope own_rows(const Identity& identity, const std::vector<std::string>& projects);
/// Of admins: those of the users asked for and of the service accounts of the projects asked for;
/// everybody's when no user is asked for. Of others: nobody's.
store::Scope chosen_rows(const Identity& identity,
                         const std::vector<std::string>& users,
                         const std::vector<std::string>& projects);
/// Rows of the projects that the caller is a member of, for store::UsageQuery.
store::Scope own_projects(const Identity& identity);

/// May the caller see the metrics of these units? Admins may. Others need, for every single id, a
/// unit in one of the clusters whose project there has them as a member. Errors of the data base
/// deny and are logged.
Decision see_metrics(store::Reader& reader,
                     const Identity& identity,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids);

}  // namespace ceems::access
