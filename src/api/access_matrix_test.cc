// Every endpoint in every role: the rows and fields of the answers match the table in
// docs/api/endpoints.md.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "api/server.h"
#include "api/test_request.h"
#include "api/tsdb/fleet.h"
#include "base/strings.h"
#include "report/stored.h"
#include "store/reports.h"
#include "store/test_database.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

namespace json = boost::json;

using store::kHour;
using store::kNow;

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

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
    text.replace(at, old.size(), by);
    at += by.size();
  }
  return text;
}

class AnySeries final : public SeriesSource {
 public:
  Result<std::vector<Series>> series(const SeriesRequest& /*request*/) override {
    return std::vector<Series>{{.name = "cpu", .unit = "cores", .points = {{kNow, 1}}}};
  }
};

enum class LeadsFrom { kConfiguration, kManager };

/// Users ada (user), lea (leads p-bob on b), sue (support), root (admin) and bob; on both clusters
/// each has a unit and is the only member of the project "p-NAME".
class AccessMatrix : public store::AnyDatabase, public ::testing::WithParamInterface<LeadsFrom> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    for (const std::string cluster : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
      update.window = {kNow - kHour, kNow};
      update.users.emplace();
      update.projects.emplace();
      for (const std::string& user : kPeople) {
        model::Unit unit;
        unit.resource_manager = "slurm";
        unit.uuid = user + "-" + cluster;
        unit.name = "secret name";
        unit.tags = R"({"workdir":"/secret","partition":"site-part"})";
        unit.username = user;
        unit.project = "p-" + user;
        unit.state = "COMPLETED";
        unit.started_at = "2025-12-31T23:00:00+0000";
        unit.started_at_ts = kNow - kHour;
        unit.ended_at = "2025-12-31T23:30:00+0000";
        unit.ended_at_ts = kNow - kHour / 2;
        unit.total_time_seconds = {{"walltime", 1800}};
        update.units.push_back(unit);
        // Listed only on request, because it has not ended.
        unit.uuid += "-2";
        unit.state = "RUNNING";
        unit.ended_at = "Unknown";
        unit.ended_at_ts = 0;
        update.units.push_back(unit);
        update.users->push_back({.name = user, .projects = {"p-" + user}});
        update.projects->push_back({.name = "p-" + user, .users = {user}});
      }
      if (GetParam() == LeadsFrom::kManager && cluster == "b") {
        update.leads = std::map<std::string, std::vector<std::string>>{{"p-bob", {"lea"}}};
      }
      write(update);
      ASSERT_NO_FATAL_FAILURE(store_reports(cluster));
    }
    for (const std::string cluster : {"a", "b"}) {
      std::string units;
      std::string busy;  // by the units that run
      for (const std::string& user : kPeople) {
        busy += fmt::format(
            "{0}{{\"metric\":{{\"hostname\":\"n1\",\"index\":\"0\",\"kind\":\"busy\","
            "\"uuid\":\"{1}-{2}-2\"}},\"values\":[[{3},\"0.25\"]]}}",
            busy.empty() ? "" : ",", user, cluster, kNow / 60000 * 60);
        units += fmt::format("{}{{\"metric\":{{\"uuid\":\"{}-{}\"}},\"value\":[0,\"1\"]}}",
                             units.empty() ? "" : ",", user, cluster);
      }
      tsdbs_[cluster].client = std::make_unique<tsdb::Client>(
          "http://t",
          std::make_unique<tsdb::FakeTransport>([units, busy, cluster](const auto& request) {
            const bool range = request.path.ends_with("_range");
            const std::string query(request.first("query"));
            std::string rows = range ? "" : units;
            if (query.contains("gpu_busy_seconds")) {
              rows = busy;
            } else if (query.contains("idle_seconds")) {  // those that run
              rows = replaced(rows, "-" + cluster + "\"", "-" + cluster + "-2\"");
            }
            return tsdb::FakeTransport::ok(R"({"status":"success","data":{"resultType":")" +
                                           std::string(range ? "matrix" : "vector") +
                                           R"(","result":[)" + rows + "]}}");
          }),
          clock_);
    }
    ApiOptions options;
    options.fleet = &fleet_;
    options.roles.support = {"sue"};
    options.site.clusters = {{.id = "a", .manager = "slurm", .series = true},
                             {.id = "b", .manager = "slurm", .series = true}};
    for (const std::string& user : kPeople) {
      for (const std::string cluster : {"a", "b"}) {
        options.accounting.budgets.push_back(
            {.cluster = cluster, .project = "p-" + user, .amount = 5});
      }
    }
    if (GetParam() == LeadsFrom::kConfiguration) {
      options.roles.project_leads = {{.cluster_id = "b", .project = "p-bob", .users = {"lea"}}};
    }
    auto server = ApiServer::create(std::move(options), db_->reader(), &series_, registry_, clock_);
    ASSERT_TRUE(server);
    server_ = std::move(*server);
  }

  /// Each ended unit has a final report, with one finding.
  void store_reports(const std::string& cluster) {
    std::vector<store::ReportRow> rows;
    for (const std::string& user : kPeople) {
      report::Report report{.cluster_id = cluster,
                            .uuid = user + "-" + cluster,
                            .started_ms = kNow - kHour,
                            .ended_ms = kNow - kHour / 2,
                            .state = report::State::kFinal,
                            .coverage = 1};
      report.job.name = "secret name";
      report.job.user = user;
      report.job.partition = "site-part";
      report.findings = {{.rule = "mem-excess",
                          .confidence = advice::Confidence::kSure,
                          .text = {{"en", "Ask for less."}},
                          .lines = {{.type = "#SBATCH --mem=secret"}}}};
      store::ReportRow& row = rows.emplace_back();
      row.key = {.cluster_id = cluster, .uuid = report.uuid, .started_at_ts = kNow - kHour};
      row.ended_at_ts = kNow - kHour / 2;
      row.final = true;
      row.version = report::kStoredVersion;
      row.body = report::to_stored(report);
      row.findings = {
          {.rule = "mem-excess", .severity = 2, .confidence = 2, .runs = 5, .numbers = "{}"}};
    }
    const auto stored = db_->writer().store_reports(rows);
    ASSERT_TRUE(stored) << stored.error().message;
    ASSERT_EQ(*stored, kPeople.size());
  }

  net::Response get(const std::string& target, const std::string& user) {
    net::Headers headers;
    if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", user);
    }
    net::Response response;
    server_->handle(request_for("GET", "/api/v1/" + target, headers), response);
    read_whole(response);
    return response;
  }

  /// What the caller gets from the endpoint, in the words of the table.
  std::string observed(const std::string& endpoint, const std::string& user) {
    if (endpoint.starts_with("units/compare") || endpoint.starts_with("units/report")) {
      return observed_reports(endpoint, user);
    }
    if (endpoint == "units/series" || endpoint == "units/verify") {
      return observed_by_unit(endpoint, user);
    }
    if (endpoint.starts_with("usage/digest")) {
      return observed_digests(endpoint, user);
    }
    if (endpoint == "search") {
      return observed_found(user);
    }
    if (endpoint == "units/on-node/admin") {
      return observed_on_nodes(endpoint, user);
    }
    const bool series = endpoint == "nodes/series/admin";
    const auto response = get(series ? endpoint + "?cluster_id=c&host=n1" : endpoint, user);
    if (response.status != 200) {
      return std::to_string(response.status);
    }
    const json::value data = json::parse(response.body).at("data");
    if (series) {
      return data.is_array() ? "all" : "something else";
    }
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
    if (endpoint.starts_with("units/list")) {
      return word_for(rows_of_table(data), user);
    }
    for (const char* list : {"findings", "kinds"}) {
      if (endpoint.starts_with(std::string("units/") + list)) {
        return word_for(rows_of_list(data.at(list)), user);
      }
    }
    if (endpoint.starts_with("units/summary") || endpoint.starts_with("usage/series")) {
      return observed_by_user(endpoint, user);
    }
    if (!data.is_array()) {
      return "all";
    }
    const json::array& rows = data.as_array();
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

  /// Whether it is a row of units, usage, users or projects.
  static bool names_owner(const json::value& row) {
    const json::object* members = row.if_object();
    return members != nullptr && members->contains("cluster_id") &&
           (members->contains("username") || members->contains("name"));
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

  /// Findings as rows of `units`, in the same way.
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

  /// The units that the TSDB has on a node of each cluster.
  std::string observed_on_nodes(const std::string& endpoint, const std::string& user) {
    json::array rows;
    for (const std::string cluster : {"a", "b"}) {
      const auto response = get(endpoint + "?host=n1&cluster_id=" + cluster, user);
      if (response.status != 200) {
        return std::to_string(response.status);
      }
      for (json::value& row : rows_of_table(json::parse(response.body).at("data"))) {
        row.as_object()["cluster_id"] = cluster;
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

  /// Budgets by their project, idle units by their user.
  static std::string observed_insight(const std::string& endpoint,
                                      const json::array& rows,
                                      const std::string& user) {
    if (endpoint == "insight/bill/admin") {
      return rows.size() == 9 ? "all" : "something else";
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

  static std::string word_for(const std::set<std::string>& seen, const std::string& user) {
    std::set<std::string> expected{user + "-a", user + "-b"};
    if (seen == expected) {
      return "own";
    }
    expected.insert("bob-b");
    if (seen == expected) {
      return "own+led";
    }
    return seen.size() == 2 * kPeople.size() ? "all" : "something else";
  }

  /// Rows of units, usage, users or projects.
  std::string word_for(const json::array& rows, const std::string& user) {
    std::set<std::string> seen;
    std::set<std::string> written;  // with name and tags
    bool units = false;
    for (const json::value& value : rows) {
      const json::object& row = value.as_object();
      units = units || row.contains("uuid");
      const char* owner_field = row.contains("username") ? "username" : "name";
      std::string owner(row.at(owner_field).as_string().c_str());
      if (owner.starts_with("p-")) {
        owner.erase(0, 2);
      }
      const std::string id = owner + "-" + std::string(row.at("cluster_id").as_string().c_str());
      EXPECT_TRUE(seen.insert(id).second) << "twice: " << id;
      EXPECT_TRUE(!units || row.contains("name") == row.contains("tags"));
      if (row.contains("name")) {
        written.insert(id);
      }
    }
    const std::string word = word_for(seen, user);
    if (!units || written == seen) {
      return word;
    }
    return word == "all" && word_for(written, user) == "own" ? "all*" : "something else";
  }

  static inline const std::vector<std::string> kPeople{"ada", "lea", "sue", "root", "bob"};
  AnySeries series_;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<ApiServer> server_;
};

const std::map<std::string, std::string> kCallers{{"nobody", ""},
                                                  {"user", "ada"},
                                                  {"project_lead", "lea"},
                                                  {"support", "sue"},
                                                  {"admin", "root"}};

INSTANTIATE_TEST_SUITE_P(Leads,
                         AccessMatrix,
                         ::testing::Values(LeadsFrom::kConfiguration, LeadsFrom::kManager),
                         [](const auto& test) {
                           return test.param == LeadsFrom::kManager ? "OfTheManager"
                                                                    : "OfTheConfiguration";
                         });

TEST_P(AccessMatrix, IsWhatTheDocumentationSays) {
  const Table table = documented();
  ASSERT_FALSE(table.empty());
  for (const auto& [endpoint, roles] : table) {
    ASSERT_EQ(roles.size(), kCallers.size()) << endpoint;
    for (const auto& [role, word] : roles) {
      EXPECT_EQ(observed(endpoint, kCallers.at(role)), word) << endpoint << " as " << role;
    }
  }
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

TEST_P(AccessMatrix, NoAnswerToSupportHoldsWhatPeopleWrote) {
  for (const Endpoint& endpoint : all_endpoints()) {
    const std::string path(endpoint.path);
    for (const std::string query :
         {"", "?user=bob", "?user=bob&field=name&field=tags&field=uuid", "?field=name",
          "?project=p-bob", "?uuid=bob-a&timezone=UTC", "?user=bob&format=csv",
          "?project=p-bob&month=2025-12", "?user=bob&columns=name,uuid",
          "?user=bob&sort=name&order=desc"}) {
      const std::string body = get(path + query, "sue").body;
      const bool own =
          body.find("sue-") != std::string::npos || query.find("bob") == std::string::npos;
      if (!own) {
        EXPECT_EQ(body.find("secret"), std::string::npos) << path << query << body;
      }
    }
  }
}

// Neither may support find out names by asking for them.
TEST_P(AccessMatrix, SupportCannotSearchForNames) {
  const auto count = [this](const std::string& target, const std::string& user) {
    return json::parse(get(target, user).body).at("data").at("count").as_int64();
  };
  EXPECT_EQ(count("units/summary/admin?q=secret", "root"), 20);
  EXPECT_EQ(count("units/summary/admin?q=secret", "sue"), 4);  // its own
  EXPECT_EQ(count("units/summary/admin?q=bob", "sue"), 4);
  const json::value found = json::parse(get("units/list/admin?q=secret", "sue").body).at("data");
  EXPECT_EQ(found.at("rows").as_array().size(), 4U);
}

// What a unit used over time is seen by those who see its series.
TEST_P(AccessMatrix, SupportDoesNotSeeWhatOthersUsedOverTime) {
  const std::string line(24, 'z');
  std::vector<store::UnitStrip> strips;
  for (const std::string& user : kPeople) {
    strips.push_back(
        {.key = {.cluster_id = "a", .uuid = user + "-a", .started_at_ts = kNow - kHour},
         .text = line});
  }
  ASSERT_TRUE(db_->writer().store_strips(strips));
  const auto seen = [&](const std::string& target, const std::string& user) {
    std::set<std::string> users;
    const json::value data =
        json::parse(get(target + "?cluster_id=a&columns=user,strip", user).body).at("data");
    for (const json::value& row : data.at("rows").as_array()) {
      if (row.at(1).is_string()) {
        EXPECT_EQ(row.at(1).as_string(), line);
        users.emplace(row.at(0).as_string());
      }
    }
    return users;
  };
  EXPECT_EQ(seen("units/list/admin", "root").size(), kPeople.size());
  EXPECT_EQ(seen("units/list/admin", "sue"), std::set<std::string>{"sue"});
  EXPECT_EQ(seen("units/list", "bob"), std::set<std::string>{"bob"});
}

TEST_P(AccessMatrix, ScopesNarrowListsAndSums) {
  const auto count = [this](const std::string& target, const std::string& user) {
    return json::parse(get(target, user).body).at("data").at("count").as_int64();
  };
  EXPECT_EQ(count("units/summary", "lea"), 3);
  EXPECT_EQ(count("units/summary?scope=own", "lea"), 2);
  EXPECT_EQ(count("units/summary?scope=led", "lea"), 1);
  EXPECT_EQ(count("units/summary?user=bob", "lea"), 1);
  EXPECT_EQ(count("units/summary?user=bob", "ada"), 0);
  EXPECT_EQ(count("units/summary?scope=led", "ada"), 0);
  EXPECT_EQ(count("units/summary?uuid=bob-a", "ada"), 0);
}

TEST_P(AccessMatrix, ScopesNarrowWhatLeadsSee) {
  const auto rows = [this](const std::string& target, const std::string& user) {
    return word_for(json::parse(get(target, user).body).at("data").as_array(), user);
  };
  for (const std::string endpoint : {"units", "usage/current", "usage/global", "projects"}) {
    EXPECT_EQ(rows(endpoint + "?scope=own", "lea"), "own") << endpoint;
    EXPECT_EQ(rows(endpoint + "?scope=other", "lea"), "own+led") << endpoint;
    const json::array led =
        json::parse(get(endpoint + "?scope=led", "lea").body).at("data").as_array();
    EXPECT_EQ(led.size(), 1U) << endpoint;
    EXPECT_STREQ(led.at(0).at("cluster_id").as_string().c_str(), "b") << endpoint;
    // For others it gives nothing.
    EXPECT_EQ(rows(endpoint + "?scope=own", "ada"), "own") << endpoint;
    EXPECT_TRUE(
        json::parse(get(endpoint + "?scope=led", "ada").body).at("data").as_array().empty());
  }
}

}  // namespace
}  // namespace ceems::api
