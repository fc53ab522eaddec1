#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/exec/lines.h"
#include "ingest/manager/unit_fields.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr model::Window kExecWindow{.start_ms = 900'000, .end_ms = 1'800'000};
constexpr std::string_view kUnit =
    R"({"unit":"12[3].srv","name":"cfd","user":"ada","group":"staff","project":"fluids",)"
    R"("created":800,"start":960,"end":"1970-01-01T00:30:00Z","state":"COMPLETED","cpus":4,)"
    R"("memory_mib":2048,"gpus":1,"tags":{"queue":"batch","b":[1]}})";

Result<std::unique_ptr<ResourceManager>> create(const std::string& extra,
                                                os::CommandRunner* runner = nullptr) {
  ClusterConfig config;
  config.cluster.id = "pbs-0";
  config.cli_environment = {{"PBS_SERVER", "srv"}};
  config.extra = config::parse_yaml(extra, "c.yml").value();
  return create_manager(exec_manager(), config, {.runner = runner});
}

std::string refusal(std::string_view line) {
  ExecLines lines;
  const auto read = read_line(line, lines);
  return read ? "accepted" : read.error().message;
}

TEST(ExecLines, DescribeUnits) {
  ExecLines lines;
  ASSERT_TRUE(read_line(kUnit, lines));
  ASSERT_THAT(lines.units, SizeIs(1));
  const auto unit = unit_of(lines.units[0], kExecWindow, {});
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->uuid, "12[3].srv");
  EXPECT_EQ(unit->name, "cfd");
  EXPECT_EQ(unit->username, "ada");
  EXPECT_EQ(unit->groupname, "staff");
  EXPECT_EQ(unit->project, "fluids");
  EXPECT_EQ(unit->created_at_ts, 800'000);
  EXPECT_EQ(unit->started_at, "1970-01-01T00:16:00+0000");
  EXPECT_EQ(unit->ended_at_ts, 1'800'000);
  EXPECT_EQ(unit->state, "COMPLETED");
  EXPECT_EQ(unit->elapsed, "00:14:00");
  EXPECT_EQ(unit->allocation, R"({"cpus":4,"gpus":1,"mem":2147483648})");
  EXPECT_EQ(unit->tags, R"({"b":[1],"queue":"batch"})");
  EXPECT_EQ(unit->total_time_seconds, allocation_times(840, 4, 2048, 1));
}

TEST(ExecLines, GiveUnitsAsTheyStoodAtTheEndOfTheWindow) {
  const auto at = [](std::string_view times) {
    ExecLines lines;
    EXPECT_TRUE(read_line(fmt::format(R"({{"unit":1,"user":"a","project":"p"{}}})", times), lines));
    return unit_of(lines.units.at(0), kExecWindow, {});
  };
  EXPECT_EQ(at(""), std::nullopt);                  // it waits
  EXPECT_EQ(at(R"(,"start":1801)"), std::nullopt);  // it starts later
  const auto running = at(R"(,"start":60,"end":1801,"state":"FAILED")");
  ASSERT_TRUE(running);
  EXPECT_EQ(running->uuid, "1");
  EXPECT_EQ(running->state, "RUNNING");
  EXPECT_EQ(running->ended_at_ts, 0);
  EXPECT_EQ(running->ended_at, "Unknown");
  EXPECT_EQ(running->total_time_seconds.at("walltime"), 900);
  const auto late = at(R"(,"start":60,"end":900)");
  EXPECT_EQ(late->total_time_seconds.at("walltime"), 840);
  EXPECT_EQ(late->state, "ENDED");
  EXPECT_EQ(at(R"(,"start":60.5,"end":null)")->started_at_ts, 60'500);
}

TEST(ExecLines, DescribeUsersAndProjects) {
  ExecLines lines;
  for (const char* line :
       {"", "  ", "# a comment", R"({"user":"bob","projects":["waves","fluids"]})",
        R"({"project":"fluids","users":["ada","eve"],"leads":["ada"]})",
        R"({"project":"empty"})"}) {
    ASSERT_TRUE(read_line(line, lines)) << line;
  }
  const auto people = users_and_projects(lines.members);
  ASSERT_THAT(people.users, SizeIs(3));
  EXPECT_EQ(people.users[1].name, "bob");
  EXPECT_THAT(people.users[1].projects, ElementsAre("fluids", "waves"));
  EXPECT_THAT(people.projects[0].users, ElementsAre("ada", "bob", "eve"));
  EXPECT_THAT(lines.leads.at("fluids"), ElementsAre("ada"));
  EXPECT_THAT(lines.units, IsEmpty());
}

TEST(ExecLines, SayWhatIsWrong) {
  EXPECT_EQ(refusal("x"), "expected a JSON object, got 'x'");
  EXPECT_EQ(refusal("[1]"), "expected a JSON object, got '[1]'");
  EXPECT_EQ(refusal("{}"), "expected a member unit, project or user, got '{}'");
  EXPECT_EQ(refusal(R"({"unit":"1","user":"a","project":"p","memory_mb":1})"),
            "memory_mb: unknown member, did you mean 'memory_mib'?");
  EXPECT_EQ(refusal(R"({"unit":"1","project":"p"})"), "user: expected the name of the owner");
  EXPECT_EQ(refusal(R"({"unit":"1","user":"a"})"), "project: expected the name of a project");
  EXPECT_EQ(refusal(R"({"unit":"","user":"a","project":"p"})"), "unit: expected an ID");
  EXPECT_EQ(refusal(R"({"unit":{},"user":"a","project":"p"})"), "unit: expected a text");
  EXPECT_EQ(refusal(R"({"unit":"1","user":"a","project":"p","end":5})"),
            "start: expected the time of the start");
  EXPECT_EQ(refusal(R"({"unit":"1","user":"a","project":"p","start":6,"end":5})"),
            "end: expected a time after the start");
  for (const char* time : {"\"soon\"", "-1", "1e99", "true", "\"2026-02-30T00:00:00Z\""}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"unit":"1","user":"a","project":"p","start":{}}})", time)),
                HasSubstr("start: expected epoch seconds"))
        << time;
  }
  EXPECT_THAT(refusal(R"({"unit":"1","user":"a","project":"p","cpus":-1})"),
              HasSubstr("cpus: expected a number that is not negative"));
  EXPECT_THAT(refusal(R"({"unit":"1","user":"a","project":"p","tags":[]})"),
              HasSubstr("tags: expected an object"));
  EXPECT_THAT(refusal(R"({"user":"a","projects":"p"})"), HasSubstr("projects: expected a list"));
  EXPECT_THAT(refusal(R"({"project":"a","users":[1]})"), HasSubstr("users: expected a list"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("expected a JSON object"));
}

TEST(Exec, RunsTheCommandOnceForEachWindow) {
  testing::FakeRunner runner;
  runner.reply("units",
               {.output = std::string(kUnit) + "\n{\"project\":\"fluids\",\"leads\":[\"eve\"]}\n"});
  auto manager = create("{command: [/opt/site/units, --all], timeout: 20s}", &runner);
  ASSERT_TRUE(manager) << manager.error().message;
  const auto units = (*manager)->fetch_units(kExecWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_THAT(*units, SizeIs(1));
  const auto people = (*manager)->fetch_users_projects(kExecWindow, {});
  ASSERT_TRUE(people);
  EXPECT_EQ(people->users.at(0).name, "ada");
  EXPECT_THAT((*manager)->fetch_leads({})->at("fluids"), ElementsAre("eve"));
  ASSERT_THAT(runner.calls(), SizeIs(1));
  const os::Command command = runner.calls()[0];
  EXPECT_EQ(command.path, "/opt/site/units");
  EXPECT_THAT(command.arguments, ElementsAre("--all"));
  EXPECT_EQ(command.environment.at("CEEMS_START"), "900");
  EXPECT_EQ(command.environment.at("CEEMS_END"), "1800");
  EXPECT_EQ(command.environment.at("CEEMS_CLUSTER"), "pbs-0");
  EXPECT_EQ(command.environment.at("PBS_SERVER"), "srv");
  EXPECT_EQ(command.timeout, std::chrono::seconds(20));
  EXPECT_TRUE((*manager)->fetch_users_projects({.start_ms = 1, .end_ms = 2}, {}));
  EXPECT_THAT(runner.calls(), SizeIs(2));
}

TEST(Exec, FailsAsAWhole) {
  testing::FakeRunner runner;
  auto manager = create("{command: [/opt/site/units]}", &runner);
  ASSERT_TRUE(manager);
  runner.reply("units", {.output = "# none is good\n{\"unit\":\n"});
  EXPECT_THAT((*manager)->fetch_units(kExecWindow, {}).error().message,
              HasSubstr("/opt/site/units: line 2: expected a JSON object"));
  runner.reply("units",
               {.exit_status = 3, .output = std::string(kUnit), .error_text = "no license\n"});
  EXPECT_EQ((*manager)->fetch_units(kExecWindow, {}).error().message,
            "/opt/site/units: exit status 3: no license");
  // A script that goes on after an error may end with 0.
  for (const char* text : {"units: error: no answer of the database\n",
                           "Traceback (most recent call last):\n  ...\n", "ERROR: 500\n"}) {
    runner.reply("units", {.output = std::string(kUnit), .error_text = text});
    EXPECT_FALSE((*manager)->fetch_units(kExecWindow, {})) << text;
  }
  for (const char* text :
       {"units: warning: error: retried\n", "INFO: 3 errors: ignored\n", "hello\n"}) {
    runner.reply("units", {.output = std::string(kUnit), .error_text = text});
    EXPECT_TRUE((*manager)->fetch_units(kExecWindow, {})) << text;
  }
  runner.reply("units", {.exit_status = 3});
  EXPECT_FALSE((*manager)->fetch_units(kExecWindow, {}));
  // What a failed run said must not be used for people either.
  EXPECT_FALSE((*manager)->fetch_users_projects(kExecWindow, {}));
}

TEST(Exec, ReadsAFile) {
  const testing::TempDir dir;
  const std::string file = dir.write("units.jsonl", std::string(kUnit) + "\n\n# end\n");
  auto manager = create("{file: " + file + "}");
  ASSERT_TRUE(manager) << manager.error().message;
  EXPECT_THAT(*(*manager)->fetch_units(kExecWindow, {}), SizeIs(1));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ((*manager)->fetch_units(kExecWindow, stopped.get_token()).error().message, "stopped");
  dir.write("units.jsonl", std::string(2U << 20U, ' '));
  EXPECT_THAT((*manager)->fetch_units(kExecWindow, {}).error().message,
              HasSubstr("line 1: more than"));
  std::filesystem::remove(file);
  EXPECT_THAT((*manager)->fetch_units(kExecWindow, {}).error().message, HasSubstr("No such file"));
}

TEST(Exec, LosesALineThatIsTooLongAndNothingElse) {
  const testing::TempDir dir;
  const std::string unit = std::string(kUnit) + "\n";
  const std::string text =
      std::string(70U << 20U, 'x') + "\n" + unit + "\n" + unit + std::string(1U << 20U, ' ') + "x";
  const std::string file = dir.write("units.jsonl", text);
  testing::FakeRunner runner;
  runner.reply("units", {.output = text});
  for (const std::string& source :
       {std::string("{command: [/opt/site/units]}"), "{file: " + file + "}"}) {
    auto manager = create(source, &runner);
    ASSERT_TRUE(manager) << manager.error().message;
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
      const auto units = (*manager)->fetch_units(kExecWindow, {});
      ASSERT_TRUE(units) << units.error().message;
      EXPECT_THAT(*units, SizeIs(2));
    }
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("line 1: more than 1048576 bytes"));
    EXPECT_THAT(log, HasSubstr("lines=2"));
    EXPECT_EQ(log.find("lines left out"), log.rfind("lines left out"));
  }
  // What is not too long is taken, with or without a line end.
  const std::string longest = std::string(kUnit) + std::string((1U << 20U) - kUnit.size(), ' ');
  for (const char* const end : {"", "\n"}) {
    dir.write("units.jsonl", longest + "\n" + longest + end);
    EXPECT_THAT(*create("{file: " + file + "}").value()->fetch_units(kExecWindow, {}), SizeIs(2));
  }
}

TEST(Exec, RefusesConfigurationsThatNameNoSource) {
  const auto message = [](const std::string& extra) {
    const auto manager = create(extra);
    return manager ? "accepted" : manager.error().message;
  };
  EXPECT_THAT(message("{}"), HasSubstr("expected either command"));
  EXPECT_THAT(message("{command: [/a], file: /b}"), HasSubstr("expected either command"));
  EXPECT_THAT(message("{command: [units]}"), HasSubstr("expected the absolute path of a program"));
  EXPECT_THAT(message("{file: units}"), HasSubstr("expected an absolute path"));
  EXPECT_THAT(message("{file: /a, timeout: 0s}"), HasSubstr("must be more than 0s"));
  EXPECT_THAT(message("{fil: /a}"), HasSubstr("did you mean 'file'"));
}

}  // namespace
}  // namespace ceems::ingest
