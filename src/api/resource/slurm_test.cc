#include "api/resource/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

constexpr model::Window kWindow{.start_ms = 1'767'254'400'000,  // 08:00 UTC
                                .end_ms = 1'767'258'000'000};
constexpr const char* kJob =
    "5001|debug|normal|proj1|users|100|alice|1001|2026-01-01T08:00:00+0000|2026-01-01T08:00:10+"
    "0000|"
    "Unknown|00:59:50|3590|0:0|RUNNING|cpu=8,mem=1G,node=1|n1|name|/home/alice";

/// Answers with set lines; keeps what was run.
class FakeRunner final : public os::CommandRunner {
 public:
  Result<os::CommandResult> run(const os::Command& command, std::stop_token /*stop*/) override {
    commands.push_back(command);
    return os::CommandResult{.exit_status = 1, .output = {}, .error_text = {}};
  }
  Result<os::CommandResult> run_lines(const os::Command& command,
                                      const std::function<Result<>(std::string_view)>& line,
                                      std::stop_token stop) override {
    commands.push_back(command);
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    if (error) {
      return fail(*error);
    }
    for (const auto& text : lines) {
      if (auto done = line(text); !done) {
        return fail(std::move(done).error());
      }
    }
    return os::CommandResult{.exit_status = exit_status, .output = {}, .error_text = error_text};
  }

  std::vector<std::string> lines;
  int exit_status = 0;
  std::string error_text;
  std::optional<Error> error;
  std::vector<os::Command> commands;
};

struct Fixture {
  Result<std::unique_ptr<ResourceManager>> create(bool may_become_root = true) {
    config.cluster = {.id = "c1", .manager = "slurm", .updaters = {}};
    if (config.cli_path.empty()) {
      config.cli_path = directory.path().string();
    }
    return create_slurm(config, {.clock = &clock, .runner = &runner, .time_zone = "Europe/Paris"},
                        may_become_root);
  }
  testing::FakeClock clock;
  testing::TempDir directory;
  FakeRunner runner;
  ClusterConfig config;
};

TEST(Slurm, AsksSacctForTheWindowInUtc) {
  Fixture f;
  f.config.cli_environment = {{"SLURM_CONF", "/etc/x.conf"}};
  auto manager = f.create();
  ASSERT_TRUE(manager) << manager.error().message;
  f.runner.lines = {kJob};
  const auto units = (*manager)->fetch_units(kWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ((*units)[0].uuid, "5001");
  EXPECT_EQ((*units)[0].started_at, "2026-01-01T09:00:10+0100");
  ASSERT_EQ(f.runner.commands.size(), 1U);
  const auto& command = f.runner.commands[0];
  EXPECT_EQ(command.path, f.directory.path() / "sacct");
  EXPECT_TRUE(command.as_root);
  EXPECT_EQ(command.timeout, std::chrono::minutes(5));
  EXPECT_EQ(command.environment.at("TZ"), "UTC");
  EXPECT_EQ(command.environment.at("SLURM_TIME_FORMAT"), "%Y-%m-%dT%H:%M:%S%z");
  EXPECT_EQ(command.environment.at("SLURM_CONF"), "/etc/x.conf");
  EXPECT_TRUE(command.environment.contains("PATH"));
  const std::vector<std::string> head(command.arguments.begin(), command.arguments.end() - 1);
  const std::string fields =
      "jobidraw,partition,qos,account,group,gid,user,uid,submit,start,end,elapsed,elapsedraw,"
      "exitcode,state,alloctres,nodelist,jobname,workdir";
  const std::string states =
      "BOOT_FAIL,CANCELLED,COMPLETED,DEADLINE,FAILED,NODE_FAIL,OUT_OF_MEMORY,PREEMPTED,RUNNING,"
      "REQUEUED,SUSPENDED,TIMEOUT";
  EXPECT_EQ(head,
            (std::vector<std::string>{"-D", "-X", "--noheader", "--allusers", "--parsable2",
                                      "--format", fields, "--state", states, "--starttime",
                                      "2026-01-01T08:00:00", "--endtime", "2026-01-01T09:00:00"}));
  EXPECT_THAT(command.arguments.back(), ::testing::MatchesRegex("--delimiter=\\|[0-9a-f]{16}\\|"));
}

TEST(Slurm, UsesAnotherDelimiterEachTime) {
  Fixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  ASSERT_TRUE((*manager)->fetch_units(kWindow, {}));
  ASSERT_TRUE((*manager)->fetch_units(kWindow, {}));
  EXPECT_NE(f.runner.commands[0].arguments.back(), f.runner.commands[1].arguments.back());
}

TEST(Slurm, TakesOutputOfACommandThatFailedForIncomplete) {
  Fixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {kJob};
  f.runner.exit_status = 1;
  f.runner.error_text = "sacct: error: Problem talking to the database\nmore\n";
  auto units = (*manager)->fetch_units(kWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().message,
            "sacct: exit status 1: sacct: error: Problem talking to the database\\x0amore");
  f.runner.exit_status = 0;
  EXPECT_EQ((*manager)->fetch_units(kWindow, {})->size(), 1U);
}

TEST(Slurm, PassesOnThatTheCommandHangsOrIsMissingOrStopped) {
  Fixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.error = Error{ErrorCode::kTimeout, "no end after 300 s"};
  auto units = (*manager)->fetch_units(kWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(units.error().message, "sacct: no end after 300 s");
  f.runner.error = Error{ErrorCode::kNotFound, "exec: No such file or directory"};
  EXPECT_EQ((*manager)->fetch_users_projects(kWindow, {}).error().message,
            "sacctmgr: exec: No such file or directory");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ((*manager)->fetch_units(kWindow, stop.get_token()).error().code,
            ErrorCode::kUnavailable);
}

TEST(Slurm, FailsOnNothingButGarbage) {
  Fixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {std::string("\xFF\x00\x01garbage", 10), "more"};
  const auto units = (*manager)->fetch_units(kWindow, {});
  ASSERT_FALSE(units);
  EXPECT_THAT(units.error().message, HasSubstr("output of sacct: expected 19 fields, got 1"));
}

TEST(Slurm, ReadsAssociations) {
  Fixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {"acc1|", "acc1|bob", "acc2|bob", "root|root"};
  const auto people = (*manager)->fetch_users_projects(kWindow, {});
  ASSERT_TRUE(people);
  EXPECT_EQ(f.runner.commands[0].path, f.directory.path() / "sacctmgr");
  EXPECT_EQ(f.runner.commands[0].arguments,
            (std::vector<std::string>{"--parsable2", "--noheader", "list", "associations",
                                      "format=Account,User"}));
  ASSERT_EQ(people->users.size(), 1U);
  EXPECT_EQ(people->users[0].name, "bob");
  EXPECT_EQ(people->users[0].cluster_id, "c1");
  EXPECT_EQ(people->users[0].projects, (std::vector<std::string>{"acc1", "acc2"}));
  ASSERT_EQ(people->projects.size(), 2U);
  EXPECT_EQ(people->projects[1].users, std::vector<std::string>{"bob"});
}

TEST(Slurm, RunsAsTheCurrentUserWhereItMayNotBecomeRoot) {
  Fixture f;
  f.config.cli_path = "/";
  auto manager = f.create(false);
  ASSERT_TRUE(manager) << manager.error().message;
  ASSERT_TRUE((*manager)->fetch_units(kWindow, {}));
  const auto& command = f.runner.commands.back();  // a probe of sudo may come first
  EXPECT_EQ(command.path, "/sacct");
  EXPECT_FALSE(command.as_root);
}

TEST(Slurm, RefusesAConfigurationThatCannotWork) {
  Fixture f;
  f.config.cli_path = "/no/such/directory";
  EXPECT_EQ(f.create().error().message,
            "cluster c1: stat /no/such/directory: No such file or directory");
  f.config.cli_path = "/";
  f.config.extra = config::parse_yaml("command_timeout: 0s\n", "c.yml").value();
  EXPECT_THAT(f.create().error().message, HasSubstr("c.yml:1: command_timeout: must be more"));
  f.config.extra = config::parse_yaml("command_timeout: 10s\n", "c.yml").value();
  auto manager = f.create();
  ASSERT_TRUE(manager);
  ASSERT_TRUE((*manager)->fetch_units(kWindow, {}));
  EXPECT_EQ(f.runner.commands.back().timeout, std::chrono::seconds(10));
}

}  // namespace
}  // namespace ceems::api
