#include "store/writer/leads.h"

#include <set>
#include <string>
#include <utility>

namespace ceems::store {
namespace {

using Lead = std::pair<std::string, std::string>;  // name, project

/// Whether every database can store the name. PostgreSQL refuses NULs, and long texts in an index,
/// and a refused name would fail the window.
bool is_name(const std::string& text) {
  constexpr std::size_t kMaxBytes = 512;
  return !text.empty() && text.size() <= kMaxBytes && text.find('\0') == std::string::npos;
}

}  // namespace

Result<> write_leads(Session& session,
                     const std::string& cluster_id,
                     const std::map<std::string, std::vector<std::string>>& leads) {
  std::set<Lead> wanted;
  for (const auto& [project, names] : leads) {
    for (const std::string& name : names) {
      if (is_name(name) && is_name(project)) {
        wanted.emplace(name, project);
      }
    }
  }
  const auto sql = [&session](std::string_view text) { return Sql(session.dialect(), text); };
  std::set<Lead> stored;
  Sql select = sql("SELECT name, project FROM ceems_project_leads WHERE cluster_id = ");
  CEEMS_TRY(session.run(select.value(cluster_id), [&stored](std::size_t, const AnswerRow& row) {
    stored.emplace(row.text(0), row.text(1));
  }));
  std::vector<Sql> changes;
  for (const auto& [name, project] : stored) {
    if (!wanted.contains({name, project})) {
      Sql& change = changes.emplace_back(sql("DELETE FROM ceems_project_leads WHERE name = "));
      change.value(name).add(" AND cluster_id = ").value(cluster_id);
      change.add(" AND project = ").value(project);
    }
  }
  for (const auto& [name, project] : wanted) {
    if (!stored.contains({name, project})) {
      Sql& change = changes.emplace_back(
          sql("INSERT INTO ceems_project_leads (name, cluster_id, project) VALUES ("));
      change.value(name).add(",").value(cluster_id).add(",").value(project);
      change.add(") ON CONFLICT DO NOTHING");
    }
  }
  for (const Sql& change : changes) {
    CEEMS_TRY(session.run(change, {}));
  }
  return {};
}

}  // namespace ceems::store
