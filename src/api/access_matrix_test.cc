// Every endpoint in every role: the rows and fields of the answers match the table in
// docs/api/endpoints.md.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/access_test_support.h"
#include "api/statements/all.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using Table = std::map<std::string, std::map<std::string, std::string>>;

/// Endpoint and role to what the documentation says.
Table documented() {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/../docs/api/endpoints.md");
  Table table;
  std::vector<std::string> roles;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find("<!-- matrix") != std::string::npos) {
      inside = true;
      continue;
    }
    if (!inside || !line.starts_with("|")) {
      inside = inside && table.empty() && roles.empty();
      continue;
    }
    std::vector<std::string> cells;
    for (const std::string_view cell : split(line, '|')) {
      cells.emplace_back(trim(cell));
    }
    cells.erase(cells.begin());
    cells.pop_back();
    if (roles.empty()) {
      roles.assign(cells.begin() + 1, cells.end() - 1);  // the last one is the description
    } else if (cells[0].starts_with("`")) {
      for (std::size_t i = 0; i < roles.size(); ++i) {
        table[cells[0].substr(1, cells[0].size() - 2)][roles[i]] = cells.at(i + 1);
      }
    }
  }
  return table;
}
const std::map<std::string, std::string> kCallers{{"nobody", ""},
                                                  {"user", "ada"},
                                                  {"project_lead", "lea"},
                                                  {"support", "sue"},
                                                  {"admin", "root"}};

class AccessMatrix : public AccessTest {
 protected:
  /// Compares all endpoints with the table. By token, all but leads are users, and tokens cannot
  /// make or list tokens.
  void compare_all(const Table& table) {
    compare(table, false);
    ASSERT_NO_FATAL_FAILURE(follow_suggestions());
    compare(table, true);
  }
  void compare(const Table& table, bool helped) {
    for (const auto& [endpoint, roles] : table) {
      if (endpoint.starts_with("insight/helped") != helped) {
        continue;
      }
      ASSERT_EQ(roles.size(), kCallers.size()) << endpoint;
      for (const auto& [role, user] : kCallers) {
        const bool as_user = by_token_ && role != "nobody" && role != "project_lead";
        std::string word = roles.at(as_user ? "user" : role);
        if (by_token_ && word != "401" && endpoint.starts_with("tokens") &&
            !endpoint.ends_with("admin")) {
          word = "403";
        }
        EXPECT_EQ(observed(endpoint, user), word) << endpoint << " as " << role;
      }
    }
  }

  /// What the caller gets from the endpoint, in the words of the table.
  std::string observed(const std::string& endpoint, const std::string& user) {
    if (endpoint.starts_with("units/compare") || endpoint.starts_with("units/report")) {
      return observed_reports(endpoint, user);
    }
    // stragglers_tsdb_test.cc has the list without a unit.
    if (requires_param(endpoint, Param::kUuid) || endpoint == "insight/stragglers/admin") {
      return observed_by_unit(endpoint, user);
    }
    if (endpoint.starts_with("usage/digest")) {
      return observed_digests(endpoint, user);
    }
    if (endpoint == "search") {
      return observed_found(user);
    }
    if (endpoint == "units/check") {
      return observed_check(user);
    }
    if (endpoint == "insight/report/admin") {
      const auto response = get(endpoint + "?kind=year&period=2025", user);
      return response.status == 200 ? "all" : std::to_string(response.status);
    }
    // neighbours_tsdb_test.cc has rows.
    if (endpoint == "nodes/series/admin" || endpoint == "insight/neighbours/admin") {
      const auto response = get(endpoint + "?cluster_id=c&host=n1", user);
      return response.status == 200 ? "all" : std::to_string(response.status);
    }
    if (requires_param(endpoint, Param::kClusterId)) {
      return observed_by_cluster(endpoint, user);
    }
    const auto response = get(endpoint, user);
    if (response.status != 200) {
      return std::to_string(response.status);
    }
    const json::value data = json::parse(response.body).at("data");
    if (endpoint.starts_with("grid") || endpoint == "nodes/admin" ||
        endpoint == "nodes/map/admin") {
      const char* const member = endpoint == "grid"          ? "now"
                                 : endpoint.starts_with("n") ? "rows"
                                                             : "windows";
      return data.as_object().contains(member) ? "all" : "something else";
    }
    if (endpoint.starts_with("gpus")) {
      return observed_on_gpus(data, user);
    }
    for (const char* list : {"findings", "kinds"}) {
      if (endpoint.starts_with(std::string("units/") + list)) {
        return word_for(rows_of_list(data.at(list)), user);
      }
    }
    if (endpoint.starts_with("units/summary") || endpoint.starts_with("usage/series")) {
      return observed_by_user(endpoint, user);
    }
    if (!data.is_array() && !is_table(data)) {
      return "all";
    }
    const json::array rows = is_table(data) ? rows_of_table(data) : data.as_array();
    if (endpoint.starts_with("insight/")) {
      return observed_insight(endpoint, rows, user);
    }
    if (endpoint.starts_with("demo/")) {
      return rows.empty() ? "nothing" : "all";
    }
    if (endpoint.starts_with("clusters/") || endpoint.starts_with("stats/")) {
      return rows.size() == 2 ? "all" : "something else";
    }
    if (endpoint == "site") {
      return rows.size() == 1 && rows[0].at("unit_links").is_array() ? "all" : "something else";
    }
    if (endpoint.starts_with("tokens")) {
      return observed_tokens(rows, user);
    }
    if (endpoint == "whoami") {
      return rows.size() == 1 && rows[0].at("user").as_string() == user.c_str() ? "own"
                                                                                : "something else";
    }
    if (endpoint.ends_with("role=admin")) {
      return rows.size() == 1 && rows[0].at("name").as_string() == "root" ? "all"
                                                                          : "something else";
    }
    if (std::ranges::none_of(rows, [](const json::value& row) { return names_owner(row); })) {
      return rows.empty() ? "nothing" : "all";
    }
    return word_for(rows, user);
  }

  static bool requires_param(const std::string& endpoint, Param param) {
    const Endpoint* known = find_endpoint(endpoint.substr(0, endpoint.find('?')), "GET");
    return known != nullptr && known->required.contains(param);
  }

  static std::string observed_tokens(const json::array& rows, const std::string& user) {
    std::set<std::string> seen;
    for (const json::value& row : rows) {
      seen.emplace(row.at("user").as_string());
    }
    const bool all = seen.size() == kPeople.size();
    return all ? "all" : seen == std::set{user} ? "own" : "something else";
  }

  /// Whether it is a row of units, usage, users or projects.
  static bool names_owner(const json::value& row) {
    const json::object* members = row.if_object();
    return members != nullptr && members->contains("cluster_id") &&
           (members->contains("username") || members->contains("name"));
  }

  static bool is_table(const json::value& data) {
    const json::object* members = data.if_object();
    return members != nullptr && members->contains("columns") && members->contains("rows");
  }

  /// The rows of a table as rows of `units`. A name that is withheld is left out, and tags with it.
  /// The partition is in every row, as in reports.
  static json::array rows_of_table(const json::value& data) {
    json::array rows;
    const json::array& columns = data.at("columns").as_array();
    for (const json::value& values : data.at("rows").as_array()) {
      json::object row;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string name(columns[i].as_string());
        const json::value& value = values.as_array().at(i);
        if (name == "partition") {
          EXPECT_EQ(value, "site-part");
        }
        if (name == "name" && !value.is_null()) {
          row["tags"] = "";
        }
        if (!value.is_null()) {
          row[name == "user" ? "username" : name] = value;
        }
      }
      rows.push_back(row);
    }
    return rows;
  }

  /// Findings or kinds as rows of `units`.
  static json::array rows_of_list(const json::value& list) {
    json::array rows;
    for (const json::value& one : list.as_array()) {
      json::object row = one.as_object();
      const json::value user = row.at("user");
      row["username"] = user;
      if (!row.contains("uuid")) {
        row["uuid"] = "";  // kinds have none
      }
      if (row.at("name").is_null()) {
        row.erase("name");
      } else {
        row["tags"] = "";
      }
      rows.push_back(row);
    }
    return rows;
  }

  /// Whose run a job of the name of all of them is compared with: each has one on each cluster.
  std::string observed_check(const std::string& user) {
    std::set<std::string> seen;
    for (const std::string cluster : {"a", "b"}) {
      for (const std::string& owner : kPeople) {
        const auto response =
            post("units/check",
                 fmt::format(
                     R"({{"cluster_id":"{}","request":{{"name":"secret name","project":"p-{}"}}}})",
                     cluster, owner),
                 user);
        if (response.status != 200) {
          return std::to_string(response.status);
        }
        const json::value basis = json::parse(response.body).at("data").at(0).at("basis");
        if (basis.at("kind") == "family") {
          EXPECT_EQ(basis.at("runs").as_int64(), 1);
          seen.insert(owner + "-" + cluster);
        } else {
          EXPECT_EQ(basis.at("kind").as_string(), "none");
        }
      }
    }
    return word_for(seen, user);
  }

  /// What the names of all people find: their ended units, and people and projects of the same.
  std::string observed_found(const std::string& user) {
    json::array units;
    json::array projects;
    for (const std::string& owner : kPeople) {
      const auto response = get("search?q=" + owner, user);
      if (response.status != 200) {
        return std::to_string(response.status);
      }
      const json::value data = json::parse(response.body).at("data");
      const std::size_t before = units.size();
      for (const json::value& run : rows_of_list(data.at("units"))) {
        if (!std::string_view(run.at("uuid").as_string()).ends_with("-2")) {
          units.push_back(run);
        }
      }
      EXPECT_EQ(data.at("people").as_array().empty(), units.size() == before) << owner;
      for (const json::value& one : data.at("projects").as_array()) {
        projects.push_back({{"cluster_id", one.at("cluster_id")}, {"name", one.at("project")}});
      }
    }
    const std::string word = word_for(units, user);
    const std::string of_projects = word_for(projects, user);
    return word == of_projects || word == of_projects + "*" ? word : word + ", " + of_projects;
  }

  /// The own month, or of which projects the month or the band is shown.
  std::string observed_digests(const std::string& endpoint, const std::string& user) {
    if (endpoint == "usage/digest") {
      const auto response = get(endpoint + "?month=2025-12", user);
      if (response.status != 200) {
        return std::to_string(response.status);
      }
      const json::value data = json::parse(response.body).at("data");
      const bool own = data.at("user").as_string() == user.c_str() &&
                       data.at("months").at(0).at("units").to_number<double>() == 2;
      return own ? "own" : "something else";
    }
    std::set<std::string> whole;
    std::set<std::string> bands;
    bool written = false;
    int status = 0;
    for (const std::string& owner : kPeople) {
      for (const std::string cluster : {"a", "b"}) {
        const auto response =
            get(fmt::format("{}p-{}&cluster_id={}&month=2025-12", endpoint, owner, cluster), user);
        status = response.status;
        if (status != 200) {
          continue;
        }
        const json::value data = json::parse(response.body).at("data");
        const bool band = data.at("band_only").as_bool();
        EXPECT_EQ(data.at("months").as_array().empty(), band);
        EXPECT_EQ(data.at("suggestions").as_array().empty(), band);
        (band ? bands : whole).insert(owner + "-" + cluster);
        written = written || response.body.contains("--mem=secret");
      }
    }
    if (!bands.empty()) {
      const std::string word = word_for(bands, user) == "own" ? "bands" : "something else";
      return whole.empty() ? word
                           : word + (whole == std::set<std::string>{"bob-b"} ? "+led" : "+?");
    }
    const std::string word = word_for(whole, user);
    return whole.empty() ? std::to_string(status) : (word == "all" && !written ? "all*" : word);
  }

  /// Whose units or usage the sums of each cluster are of.
  std::string observed_by_user(const std::string& endpoint, const std::string& user) {
    std::set<std::string> seen;
    for (const std::string cluster : {"a", "b"}) {
      const std::string target = endpoint + "?cluster_id=" + cluster + "&facets=user&by=user&top=9";
      const json::value data = json::parse(get(target, user).body).at("data");
      if (const json::value* groups = data.as_object().if_contains("groups")) {
        for (const json::value& group : groups->as_array()) {
          seen.insert(std::string(group.as_string()) + "-" + cluster);
        }
        continue;
      }
      for (const json::value& one : data.at("facets").at("user").as_array()) {
        seen.insert(std::string(one.at(0).as_string()) + "-" + cluster);
      }
    }
    return word_for(seen, user);
  }

  /// The rows of both clusters, of an endpoint that requires one. If it requires a node as well,
  /// the TSDB of each cluster has one of this name.
  std::string observed_by_cluster(const std::string& endpoint, const std::string& user) {
    json::array rows;
    for (const std::string cluster : {"a", "b"}) {
      const auto response = get(endpoint + "?host=n1&cluster_id=" + cluster, user);
      if (response.status != 200) {
        return std::to_string(response.status);
      }
      const json::value data = json::parse(response.body).at("data");
      for (const json::value& found : is_table(data) ? rows_of_table(data) : data.as_array()) {
        json::object row = found.as_object();
        row["cluster_id"] = cluster;
        rows.push_back(row);
      }
    }
    return word_for(rows, user);
  }

  /// Whose units the board of GPUs shows. Other users' units only show that they exist.
  static std::string observed_on_gpus(const json::value& data, const std::string& user) {
    std::set<std::string> seen;
    for (const json::value& row : data.at("rows").as_array()) {
      const json::value& cell = row.at("cells").as_array().back();
      const json::array& units = cell.at("units").as_array();
      EXPECT_EQ(cell.at("others").as_bool(), units.size() < kPeople.size());
      for (const json::value& unit : units) {
        const std::string cluster(row.at("cluster_id").as_string());
        const std::string owner(unit.at("user").as_string());
        EXPECT_EQ(std::string(unit.at("uuid").as_string()), owner + "-" + cluster + "-2");
        seen.insert(owner + "-" + cluster);
      }
    }
    return word_for(seen, user);
  }

  /// Each user follows a suggestion on each cluster. Other endpoints see the units, too, so they
  /// come before.
  void follow_suggestions() {
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
      update.window = {kNow, kNow + kHour};
      std::vector<store::ReportRow> rows;
      for (const std::string& user : kPeople) {
        for (const bool follows : {false, true}) {
          model::Unit& unit = update.units.emplace_back();
          unit.resource_manager = "slurm";
          unit.uuid = user + "-" + cluster + (follows ? "-less" : "-much");
          unit.name = "followed";
          unit.username = user;
          unit.project = "p-" + user;
          unit.state = "COMPLETED";
          unit.ended_at_ts = kNow - (follows ? 10 : 20) * kDayMs;
          unit.started_at_ts = unit.ended_at_ts - kHour;
          unit.allocation = follows ? R"({"mem":1024,"nodes":1})" : R"({"mem":4096,"nodes":1})";
          store::ReportRow& row = rows.emplace_back();
          row.key = {.cluster_id = cluster, .uuid = unit.uuid, .started_at_ts = unit.started_at_ts};
          row.ended_at_ts = unit.ended_at_ts;
          row.final = true;
          row.verdict = store::Verdict::kFits;
          if (!follows) {
            row.findings = {{.rule = "mem-excess", .numbers = "{}"}};
          }
        }
      }
      write(update);
      ASSERT_TRUE(db_->writer().store_reports(rows));
    }
  }

  /// Budgets and what helped by their project, idle units by their user.
  static std::string observed_insight(const std::string& endpoint,
                                      const json::array& rows,
                                      const std::string& user) {
    if (endpoint == "insight/report/kinds/admin") {
      return rows.size() == statements().size() ? "all" : "something else";
    }
    if (endpoint == "insight/bill/admin") {
      return rows.size() == 9 ? "all" : "something else";
    }
    if (endpoint == "insight/feedback/admin") {
      return rows.size() == 1 && rows[0].at("people") == 5 ? "all" : "something else";
    }
    if (endpoint == "insight/nodes/admin") {  // insight_nodes_test.cc has rows
      return rows.empty() ? "all" : "something else";
    }
    std::set<std::string> seen;
    for (const json::value& row : rows) {
      const bool idle = row.as_object().contains("uuid");
      std::string owner(row.at(idle ? "user" : "project").as_string());
      owner.erase(0, idle ? 0 : 2);
      seen.insert(owner + "-" + std::string(row.at("cluster_id").as_string()));
    }
    return word_for(seen, user);
  }

  std::string observed_by_unit(const std::string& endpoint, const std::string& user) {
    std::set<std::string> seen;
    int status = 0;
    for (const std::string& owner : kPeople) {
      for (const std::string cluster : {"a", "b"}) {
        std::string target = endpoint;
        target += "?cluster_id=" + cluster + "&uuid=" + owner + "-" + cluster;
        status = get(target, user).status;
        if (status == 200) {
          seen.insert(owner + "-" + cluster);
        }
      }
    }
    return seen.empty() ? std::to_string(status) : word_for(seen, user);
  }

  /// Reports of each unit, or comparisons of the two of each owner: those that are answered, and
  /// those among them that hold what people wrote.
  std::string observed_reports(const std::string& endpoint, const std::string& user) {
    std::set<std::string> seen;
    std::set<std::string> written;
    int status = 0;
    for (const std::string& owner : kPeople) {
      for (const std::string cluster : {"a", "b"}) {
        std::string target = endpoint;
        target += "?cluster_id=" + cluster + "&uuid=" + owner + "-" + cluster;
        if (endpoint.starts_with("units/compare")) {
          target += "&so_far&uuid=" + owner + "-" + cluster + "-2";
        }
        const auto response = get(target, user);
        status = response.status;
        if (status != 200) {
          continue;
        }
        const std::string id = owner + "-" + cluster;
        seen.insert(id);
        const bool named = response.body.find("secret name") != std::string::npos;
        // The site names its partitions.
        EXPECT_NE(response.body.find("site-part"), std::string::npos) << id;
        if (named) {
          written.insert(id);
        }
      }
    }
    if (seen.empty()) {
      return std::to_string(status);
    }
    const std::string word = word_for(seen, user);
    if (written == seen) {
      return word;
    }
    return word == "all" && word_for(written, user) == "own" ? "all*" : "something else";
  }
};

INSTANTIATE_TEST_SUITE_P(Leads,
                         AccessMatrix,
                         ::testing::Values(LeadsFrom::kConfiguration, LeadsFrom::kManager),
                         name_of_leads);

TEST_P(AccessMatrix, IsWhatTheDocumentationSays) {
  const Table table = documented();
  ASSERT_FALSE(table.empty());
  compare_all(table);
}

// A token of anybody is at most a user who may lead a project. What it sees of each endpoint is
// what such a user sees, even if its owner is an admin.
TEST_P(AccessMatrix, OfTokensIsThatOfUsers) {
  const Table table = documented();
  by_token_ = true;
  compare_all(table);
}

TEST_P(AccessMatrix, HasEveryEndpoint) {
  const Table table = documented();
  std::set<std::string> routes;
  for (const Endpoint& endpoint : all_endpoints()) {
    routes.emplace(endpoint.path);
    EXPECT_TRUE(table.contains(std::string(endpoint.path))) << endpoint.path;
  }
  for (const auto& [endpoint, roles] : table) {
    EXPECT_TRUE(routes.contains(endpoint.substr(0, endpoint.find('?')))) << endpoint;
  }
}

}  // namespace
}  // namespace ceems::api
