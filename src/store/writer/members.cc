#include "store/writer/members.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/sql/sql.h"

namespace ceems::store {
namespace {

using Lists = std::map<std::string, std::set<std::string>>;

/// Adds what `found` has for each row, and rows for the names that are not there yet.
template <typename Row>
void merge(const Lists& found, std::vector<std::string> Row::* list, std::vector<Row>& rows) {
  std::set<std::string> known;
  for (Row& row : rows) {
    known.insert(row.name);
    if (const auto more = found.find(row.name); more != found.end()) {
      std::set<std::string> all(more->second);
      all.insert((row.*list).begin(), (row.*list).end());
      (row.*list).assign(all.begin(), all.end());
    }
  }
  for (const auto& [name, others] : found) {
    if (!known.contains(name)) {
      Row& row = rows.emplace_back();
      row.name = name;
      (row.*list).assign(others.begin(), others.end());
    }
  }
}

}  // namespace

Result<> add_members_of_usage(Session& session,
                              const std::string& cluster_id,
                              std::vector<model::User>& users,
                              std::vector<model::Project>& projects) {
  Lists projects_of;
  Lists users_of;
  Sql select(session.dialect(),
             "SELECT DISTINCT username, project FROM usage WHERE username <> ''"
             " AND project <> '' AND cluster_id = ");
  CEEMS_TRY(session.run(select.value(cluster_id), [&](std::size_t, const AnswerRow& row) {
    const std::string user(row.text(0));
    const std::string project(row.text(1));
    projects_of[user].insert(project);
    users_of[project].insert(user);
  }));
  merge(projects_of, &model::User::projects, users);
  merge(users_of, &model::Project::users, projects);
  return {};
}

}  // namespace ceems::store
