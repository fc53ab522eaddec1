#include "store/writer/members.h"

#include <algorithm>
#include <cstdint>
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

/// Whether every database can store the name in an index. PostgreSQL refuses NULs and long texts.
bool is_stored_name(const std::string& text) {
  constexpr std::size_t kMaxBytes = 512;
  return !text.empty() && text.size() <= kMaxBytes && text.find('\0') == std::string::npos;
}

using Member = std::pair<std::string, std::string>;  // project, name

struct Stay {
  std::int64_t since_ms = 0, left_ms = 0;  ///< left_ms is 0: still a member
};

/// What the database knows of a cluster's projects before a window.
struct KnownMembers {
  std::set<std::string> projects = {};  ///< those with members, now or earlier
  std::set<Member> members = {};
  std::map<Member, Stay> stays = {};
};

Result<KnownMembers> known_members(Session& session, const std::string& cluster_id) {
  KnownMembers known;
  Sql lists(session.dialect(), "SELECT p.name, m.value FROM ");
  lists.add(lists.members()).add(" WHERE p.cluster_id = ").value(cluster_id);
  CEEMS_TRY(session.run(lists, [&known](std::size_t, const AnswerRow& row) {
    known.projects.emplace(row.text(0));
    known.members.emplace(row.text(0), row.text(1));
  }));
  Sql stays(session.dialect(),
            "SELECT project, name, since_ms, left_ms FROM ceems_members WHERE cluster_id = ");
  CEEMS_TRY(session.run(stays.value(cluster_id), [&known](std::size_t, const AnswerRow& row) {
    known.projects.emplace(row.text(0));
    known.stays[{std::string(row.text(0)), std::string(row.text(1))}] = {.since_ms = row.integer(2),
                                                                         .left_ms = row.integer(3)};
  }));
  return known;
}

Sql put_stay(Dialect dialect, const std::string& cluster_id, const Member& member, Stay stay) {
  Sql sql(dialect,
          "INSERT INTO ceems_members (name, cluster_id, project, since_ms, left_ms) VALUES (");
  sql.value(member.second).add(",").value(cluster_id).add(",").value(member.first);
  sql.add(",").value(stay.since_ms).add(",").value(stay.left_ms);
  return sql.add(
      ") ON CONFLICT (name, cluster_id, project) DO UPDATE SET since_ms = excluded.since_ms,"
      " left_ms = excluded.left_ms");
}

}  // namespace

Result<> note_members(Session& session,
                      const std::string& cluster_id,
                      const model::Window& window,
                      const std::vector<model::Project>& projects) {
  constexpr std::int64_t kBackMs = std::int64_t{7} * 86'400'000;
  CEEMS_TRY(known, known_members(session, cluster_id));
  std::set<Member> now;
  std::map<Member, Stay> changed;
  for (const model::Project& project : projects) {
    for (const std::string& name : project.users) {
      const Member member(project.name, name);
      now.insert(member);
      if (known.members.contains(member) || !known.projects.contains(project.name) ||
          !is_stored_name(name) || !is_stored_name(project.name)) {
        continue;
      }
      const auto stay = known.stays.find(member);
      const bool back = stay != known.stays.end() && stay->second.left_ms > 0 &&
                        window.start_ms - stay->second.left_ms <= kBackMs;
      changed[member] = {.since_ms = back ? stay->second.since_ms : window.start_ms};
    }
  }
  for (const Member& member : known.members) {
    if (!now.contains(member) && is_stored_name(member.first) && is_stored_name(member.second)) {
      const auto stay = known.stays.find(member);
      changed[member] = {.since_ms = stay == known.stays.end() ? 0 : stay->second.since_ms,
                         .left_ms = window.end_ms};
    }
  }
  for (const auto& [member, stay] : changed) {
    CEEMS_TRY(session.run(put_stay(session.dialect(), cluster_id, member, stay), {}));
  }
  return {};
}

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
