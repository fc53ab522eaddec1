// What the palette of the page finds, and for whom.
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

class Search : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    const auto add = [&](const std::string& id, const std::string& user, const std::string& project,
                         const std::string& name, const std::string& group = "{}") {
      model::Unit unit = job(id, user, project);
      unit.name = name;
      unit.allocation = group;
      update.units.push_back(unit);
    };
    add("7101", "ada", "fluids", "sweep", R"({"array_job":7100,"array_task":4})");
    add("7102", "ada", "fluids", "sweep", R"({"array_job":7100,"array_task":40})");
    add("8201", "ada", "fluids", "coupled", R"({"het_job":8200,"het_offset":1})");
    add("9000", "ada", "fluids", "100%_o'Brien\"");
    add("9001", "eve", "optics", "Sweep of eve");
    update.leads = std::map<std::string, std::vector<std::string>>{{"optics", {"lea"}}};
    write(update);
  }
  json::value found(const std::string& query, const std::string& user) {
    const auto response = get("/api/v1/search?q=" + query, user);
    EXPECT_EQ(response.status, 200) << query << " " << response.body;
    return json::parse(response.body).at("data");
  }
  Texts all(const std::string& query,
            const std::string& user,
            const char* list = "units",
            const char* member = "uuid") {
    Texts values;
    const json::value data = found(query, user);
    for (const json::value& one : data.at(list).as_array()) {
      values.emplace_back(one.at(member).as_string());
    }
    return values;
  }
};

TEST_F(Search, FindsUnitsByIdAndName) {
  EXPECT_THAT(all("7100_4", "ada"), ElementsAre("7101", "7102"));  // the task itself first
  EXPECT_THAT(all("8200%2B1", "ada"), ElementsAre("8201"));
  EXPECT_THAT(all("900", "ada"), ElementsAre("9000"));
  EXPECT_THAT(all("COUP", "ada"), ElementsAre("8201"));
  EXPECT_THAT(all("upl", "ada"), ElementsAre("8201"));
  const json::value task = found("7100_4", "ada").at("units").at(0);
  EXPECT_EQ(json::serialize(task),
            R"({"cluster_id":"hpc-a","uuid":"7101","started_at_ts":1767222000000,)"
            R"("shown":"7100_4","name":"sweep","user":"ada","project":"fluids",)"
            R"("state":"COMPLETED"})");
}

TEST_F(Search, FindsArraysStepsAndPartsByTheIdOfTheJob) {
  EXPECT_THAT(all("7100", "ada"), ElementsAre("7101", "7102"));
  EXPECT_THAT(all("8200", "ada"), ElementsAre("8201"));
  EXPECT_THAT(all("7100_4.batch", "ada"), ElementsAre("7101", "7102"));
  EXPECT_THAT(all("9000.extern", "ada"), ElementsAre("9000"));
  EXPECT_THAT(all("7100", "eve"), IsEmpty());
}

TEST_F(Search, FindsIdsOfAnyAge) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  const auto add = [&update](int id, int ended, const std::string& group) {
    model::Unit unit = job(std::to_string(id), "ada", "fluids");
    unit.allocation = group;
    unit.ended_at_ts = kNow - kHour / 2 + ended;
    update.units.push_back(std::move(unit));
  };
  add(5200, 0, R"({"het_job":5200,"het_offset":0})");
  add(5201, 1, R"({"het_job":5200,"het_offset":1})");
  // More than are sought by their ids or looked at by their names; 100 have ids that begin with
  // 5200, and 111 have numbers that begin with 4.
  for (int task = 0; task < 2000; ++task) {
    add(520'000 + task, 2 + task, fmt::format(R"({{"array_job":4100,"array_task":{}}})", task));
  }
  write(update);
  EXPECT_EQ(all("5200", "ada").front(), "5200");
  EXPECT_EQ(all("5200%2B1", "ada"), Texts{"5201"});
  EXPECT_EQ(all("4100_4", "ada").front(), "520004");
  EXPECT_EQ(all("4100_1999", "ada"), Texts{"521999"});
  EXPECT_EQ(all("4100", "ada").size(), 6U);
  EXPECT_THAT(all("5200", "eve"), IsEmpty());
  // As cacct asks.
  const auto listed = [this](const std::string& ids, const std::string& user) {
    Texts found;
    const auto response = get("/api/v1/units?field=uuid&uuid=" + ids, user);
    EXPECT_EQ(response.status, 200) << response.body;
    for (const json::value& one : json::parse(response.body).at("data").as_array()) {
      found.emplace_back(one.at("uuid").as_string());
    }
    return found;
  };
  EXPECT_THAT(listed("5200&uuid=5200_*&uuid=5200%2B*", "ada"), ElementsAre("5200", "5201"));
  EXPECT_THAT(listed("5200%2B1", "ada"), ElementsAre("5201"));
  EXPECT_THAT(listed("4100_4", "ada"), ElementsAre("520004"));
  EXPECT_THAT(listed("4100_4", "eve"), IsEmpty());
}

TEST_F(Search, FindsTheNewestOfEachProjectOfALead) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.leads.emplace();
  for (int i = 0; i < 25; ++i) {
    const std::string project = fmt::format("p{:02}", i);
    (*update.leads)[project] = {"max"};
    model::Unit unit = job(std::to_string(6000 + i), "eve", project);
    unit.name = fmt::format("mark{:02}", i);
    update.units.push_back(unit);
  }
  for (int i = 0; i < 400; ++i) {  // more than are looked at of one of so many, all newer
    model::Unit unit = job(std::to_string(61'000 + i), "eve", "p00");
    unit.ended_at_ts += i + 1;
    update.units.push_back(unit);
  }
  write(update);
  EXPECT_THAT(all("mark01", "max"), ElementsAre("6001"));
  EXPECT_THAT(all("mark19", "max"), ElementsAre("6019"));
  EXPECT_THAT(all("mark24", "max"), IsEmpty());  // the first 20 are searched
  EXPECT_THAT(all("mark00", "max"), IsEmpty());  // not among the newest of its project
  EXPECT_THAT(all("6024", "max"), ElementsAre("6024"));
  EXPECT_THAT(all("mark01", "lea"), IsEmpty());
}

TEST_F(Search, KeepsToTheRole) {
  EXPECT_THAT(all("sweep", "eve"), ElementsAre("9001"));
  EXPECT_THAT(all("9001", "ada"), IsEmpty());
  EXPECT_THAT(all("9001", "lea"), ElementsAre("9001"));  // leads the project
  EXPECT_THAT(all("9001", "root"), ElementsAre("9001"));
  EXPECT_THAT(all("7100_4", "eve"), IsEmpty());
  EXPECT_THAT(all("eve", "ada", "people", "user"), IsEmpty());
  EXPECT_THAT(all("bob", "ada", "people", "user"), IsEmpty());
  EXPECT_THAT(all("eve", "lea", "people", "user"), ElementsAre("eve"));
  EXPECT_THAT(all("e", "root", "people", "user"), ElementsAre("eve"));
  EXPECT_THAT(all("ada", "ada", "people", "user"), ElementsAre("ada"));
  EXPECT_THAT(all("optics", "ada", "projects", "project"), IsEmpty());
  EXPECT_THAT(all("opt", "lea", "projects", "project"), ElementsAre("optics"));
  EXPECT_THAT(all("opt", "root", "projects", "cluster_id"), ElementsAre("hpc-a", "hpc-b"));
  EXPECT_EQ(get("/api/v1/search?q=9001").status, 401);
}

TEST_F(Search, TakesTextAsItIs) {
  EXPECT_THAT(all("100%25_o'b", "ada"), ElementsAre("9000"));
  EXPECT_THAT(all("n%22", "ada"), ElementsAre("9000"));
  for (const char* hostile :
       {"%25%25", "_____", "'%20OR%201=1--", "*", "%5B", "%FF%FE", "_", "7100_"}) {
    EXPECT_THAT(all(hostile, "eve"), IsEmpty()) << hostile;
  }
  EXPECT_EQ(get("/api/v1/search", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/search?q=%20", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/search?q=" + std::string(101, 'a'), "ada").status, 400);
}

TEST_F(Search, ReadsOnlyTheNewest) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  for (int i = 0; i < 1100; ++i) {
    model::Unit unit = job(std::to_string(200'000 + i), "ada", "fluids");
    unit.name = i == 0 ? "needle" : i == 1099 ? "needle late" : "hay";
    unit.ended_at_ts = kNow - kHour / 4 + i;
    update.units.push_back(unit);
  }
  write(update);
  EXPECT_THAT(all("needle", "ada"), ElementsAre("201099"));
  EXPECT_THAT(all("200000", "ada"), ElementsAre("200000"));  // an id, however old
  EXPECT_EQ(all("hay", "ada").size(), 6U);
}

}  // namespace
}  // namespace ceems::api
