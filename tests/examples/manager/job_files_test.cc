#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/manager.h"
#include "ingest/manager/unit_fields.h"
#include "ingest/registration_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {

ManagerSpec job_files_manager();  // of a manager of the API server: its line in manager/all.h

namespace {

using ::testing::ElementsAre;

constexpr model::Window kWindow{.start_ms = 900'000, .end_ms = 1'800'000};

/// The manager of a cluster as the configuration makes it.
Result<std::unique_ptr<ResourceManager>> create(const std::string& extra_config) {
  ClusterConfig config;
  config.cluster.id = "c1";
  config.extra = config::parse_yaml(extra_config, "c.yml").value();
  return create_manager(job_files_manager(), config, {});
}

/// A directory of job files and its manager.
struct Fixture {
  Fixture() : manager(create("directory: " + directory.path().string()).value()) {}

  void write(const std::string& name, const std::string& times) const {
    directory.write(name,
                    R"({"user":"ada","project":"fluids","cpus":2,"memory_mib":100,)" + times + "}");
  }
  [[nodiscard]] std::map<std::string, model::Unit> units() const {
    std::map<std::string, model::Unit> found;
    const auto units = manager->fetch_units(kWindow, {}).value();
    for (const auto& unit : units) {
      found[unit.uuid] = unit;
    }
    return found;
  }

  testing::TempDir directory;
  std::unique_ptr<ResourceManager> manager;
};

TEST(JobFiles, AreUnitsAsTheyStoodAtTheEndOfTheWindow) {
  const Fixture f;
  f.write("ended.json", R"("start":960,"end":1800)");
  f.write("running.json", R"("start":60,"end":1801)");
  f.write("later.json", R"("start":1801)");
  f.directory.write("notes.txt", "not a job");
  const auto units = f.units();
  ASSERT_EQ(units.size(), 2U);
  const model::Unit& ended = units.at("ended");
  EXPECT_EQ(ended.username, "ada");
  EXPECT_EQ(ended.project, "fluids");
  EXPECT_EQ(ended.started_at, "1970-01-01T00:16:00+0000");
  EXPECT_EQ(ended.ended_at_ts, 1'800'000);
  EXPECT_EQ(ended.state, "ENDED");
  EXPECT_EQ(ended.elapsed, "00:14:00");
  EXPECT_EQ(ended.total_time_seconds, allocation_times(840, 2, 100, 0));
  const model::Unit& running = units.at("running");
  EXPECT_EQ(running.ended_at_ts, 0);
  EXPECT_EQ(running.ended_at, "Unknown");
  EXPECT_EQ(running.state, "RUNNING");
  EXPECT_EQ(running.elapsed, "00:29:00");
  EXPECT_EQ(running.total_time_seconds.at("walltime"), 900);
}

TEST(JobFiles, AJobThatEndedBeforeTheWindowCountsInFull) {
  const Fixture f;
  f.write("late.json", R"("start":60,"end":900)");
  EXPECT_EQ(f.units().at("late").total_time_seconds.at("walltime"), 840);
}

TEST(JobFiles, NameUsersAndProjects) {
  const Fixture f;
  f.write("1.json", R"("start":0)");
  f.write("2.json", R"("start":0)");
  const auto people = f.manager->fetch_users_projects(kWindow, {}).value();
  ASSERT_EQ(people.users.size(), 1U);
  EXPECT_EQ(people.users[0].name, "ada");
  EXPECT_THAT(people.users[0].projects, ElementsAre("fluids"));
  ASSERT_EQ(people.projects.size(), 1U);
  EXPECT_THAT(people.projects[0].users, ElementsAre("ada"));
}

TEST(JobFiles, ABadFileFailsTheWindowUntilItIsMended) {
  const Fixture f;
  const auto error = [&f] { return f.manager->fetch_units(kWindow, {}).error().message; };
  const std::string path = (f.directory.path() / "7.json").string();
  f.directory.write("7.json", R"({"user":"ada","pro)");
  EXPECT_EQ(error(), path + ": expected a JSON object");
  f.write("7.json", R"("start":"today")");
  EXPECT_EQ(error(), path + ": start: expected a number from 0 to 1000000000000");
  f.write("7.json", R"("start":60,"end":59)");
  EXPECT_EQ(error(), path + ": end: expected a time after the start");
  f.write("7.json", R"("start":60,"end":61)");
  EXPECT_EQ(f.units().size(), 1U);
}

TEST(JobFiles, NeedADirectory) {
  EXPECT_EQ(create("").error().message, "cluster c1: extra_config.directory is missing");
  EXPECT_EQ(create("directroy: /x").error().message,
            "c.yml:1: directroy: unknown key, did you mean 'directory'?");
  const auto units = create("directory: /no/such").value()->fetch_units(kWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().message, "reading /no/such: No such file or directory");
}

// The API server's managers are checked by src/ingest/manager/all_test.cc.
TEST(JobFiles, HaveARowAndASectionInTheDocumentation) {
  expect_documented({.type = "ManagerSpec",
                     .suffix = "manager",
                     .folder = "tests/examples/manager",
                     .page = "tests/examples/manager/resource-managers.md"},
                    job_files_manager());
}

}  // namespace
}  // namespace ceems::ingest
