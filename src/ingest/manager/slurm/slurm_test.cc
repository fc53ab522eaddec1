#include "ingest/manager/slurm/slurm.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "ingest/manager/all.h"
#include "ingest/manager/slurm/fake_slurm_source.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using ::testing::HasSubstr;

constexpr model::Window kSlurmWindow{.start_ms = 1'767'254'400'000,  // 08:00 UTC
                                     .end_ms = 1'767'258'000'000};
constexpr const char* kSlurmJob =
    "5001|debug|normal|proj1|users|100|alice|1001|2026-01-01T08:00:00+0000|2026-01-01T08:00:10+"
    "0000|"
    "Unknown|00:59:50|3590|0:0|RUNNING|cpu=8,mem=1G,node=1|n1|name|/home/alice";

/// Answers with the lines that the test set; records the commands.
class FakeRunner final : public os::CommandRunner {
 public:
  Result<os::CommandResult> run(const os::Command& command, std::stop_token /*stop*/) override {
    commands.push_back(command);
    return os::CommandResult{.exit_status = 1, .output = {}, .error_text = {}};
  }
  Result<os::CommandResult> run_lines(const os::Command& command,
                                      const std::function<Result<>(std::string_view)>& line,
                                      std::stop_token stop) override {
    const bool asks_for_fields = command.arguments.back() == "--helpformat";
    if (asks_for_fields) {
      ++questions;
    } else {
      commands.push_back(command);
    }
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    if (error) {
      return fail(*error);
    }
    if (asks_for_fields) {
      CEEMS_TRY(line(fields));
      return os::CommandResult{.exit_status = exit_status, .output = {}, .error_text = {}};
    }
    for (const auto& text : lines) {
      CEEMS_TRY(line(text));
    }
    return os::CommandResult{.exit_status = exit_status, .output = {}, .error_text = error_text};
  }

  std::vector<std::string> lines;
  std::string fields;  ///< of sacct --helpformat
  int questions = 0;
  int exit_status = 0;
  std::string error_text;
  std::optional<Error> error;
  std::vector<os::Command> commands;
};

struct SlurmFixture {
  Result<std::unique_ptr<ResourceManager>> create(bool may_become_root = true) {
    config.cluster = {.id = "c1", .manager = "slurm", .updaters = {}};
    if (config.cli_path.empty()) {
      config.cli_path = directory.path().string();
    }
    ManagerSpec spec = slurm_manager();
    spec.create = [may_become_root](const ClusterConfig& from, const ManagerContext& context) {
      return create_slurm(from, context, may_become_root);
    };
    return create_manager(
        spec, config,
        {.clock = &clock, .runner = &runner, .zone = TimeZone::find("Europe/Paris").value()});
  }
  testing::FakeClock clock;
  testing::TempDir directory;
  FakeRunner runner;
  ClusterConfig config;
};

TEST(Slurm, AsksSacctForTheWindowInUtc) {
  SlurmFixture f;
  f.config.cli_environment = {{"SLURM_CONF", "/etc/x.conf"}};
  auto manager = f.create();
  ASSERT_TRUE(manager) << manager.error().message;
  f.runner.lines = {kSlurmJob};
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ((*units)[0].uuid, "5001");
  EXPECT_EQ((*units)[0].started_at, "2026-01-01T09:00:10+0100");
  ASSERT_EQ(f.runner.commands.size(), 1U);
  const auto& command = f.runner.commands[0];
  EXPECT_EQ(command.path, f.directory.path() / "sacct");
  EXPECT_TRUE(command.as_root);
  EXPECT_TRUE(command.only_trusted);
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
      "REQUEUED,RESIZING,SUSPENDED,TIMEOUT";
  EXPECT_EQ(head,
            (std::vector<std::string>{"-D", "-X", "--noheader", "--allusers", "--parsable2",
                                      "--format", fields, "--state", states, "--starttime",
                                      "2026-01-01T08:00:00", "--endtime", "2026-01-01T09:00:00"}));
  EXPECT_THAT(command.arguments.back(), ::testing::MatchesRegex("--delimiter=\\|[0-9a-f]{16}\\|"));
}

TEST(Slurm, TakesJobsWithTheLongestCommands) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.fields = "JobIDRaw NodeList SubmitLine WorkDir";
  f.runner.lines.clear();
  for (const std::string id : {"5001", "5002", "5003"}) {
    std::string job = kSlurmJob;
    job.replace(0, 4, id);
    const std::string files(id == "5002" ? std::size_t{3} << 20U : 5, 'x');
    f.runner.lines.push_back(job.insert(job.find("|name|"), "|sbatch run.sh " + files));
  }
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 3U);
  EXPECT_EQ((*units)[1].uuid, "5002");
  EXPECT_LT((*units)[1].tags.size(), 2000U);
  EXPECT_GT(f.runner.commands[0].max_output_bytes, f.runner.lines[1].size());
}

TEST(Slurm, AsksForTheDetailsThatThisSacctHas) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.fields = "Account AllocTRES JobID JobIDRaw NodeList ReqMem TimelimitRaw WorkDir";
  std::string job = kSlurmJob;
  job.insert(job.find("|name|"), "|77_4|90|8G");
  f.runner.lines = {job};
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ((*units)[0].allocation,
            R"({"array_job":77,"array_task":4,"billing":0,"cpus":8,"gpus":0,"mem":1073741824,)"
            R"("nodes":1,"req_mem":8589934592,"time_limit":5400})");
  ASSERT_EQ(f.runner.commands.size(), 1U);
  EXPECT_THAT(f.runner.commands[0].arguments,
              ::testing::Contains(::testing::EndsWith(
                  ",alloctres,nodelist,jobid,timelimitraw,reqmem,jobname,workdir")));
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  EXPECT_EQ(f.runner.questions, 1) << "it is asked once";
  f.runner.exit_status = 1;  // a version without these fields was installed
  EXPECT_FALSE((*manager)->fetch_units(kSlurmWindow, {}));
  f.runner.exit_status = 0;
  f.runner.fields = "JobIDRaw NodeList WorkDir";
  f.runner.lines = {kSlurmJob};
  EXPECT_EQ((*manager)->fetch_units(kSlurmWindow, {})->size(), 1U);
  EXPECT_EQ(f.runner.questions, 2);
}

TEST(Slurm, UsesAnotherDelimiterEachTime) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {kSlurmJob};
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  EXPECT_NE(f.runner.commands[0].arguments.back(), f.runner.commands[1].arguments.back());
}

TEST(Slurm, TakesOutputOfACommandThatFailedForIncomplete) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {kSlurmJob};
  f.runner.exit_status = 1;
  f.runner.error_text = "sacct: error: Problem talking to the database\nmore\n";
  auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().message,
            "sacct: exit status 1: sacct: error: Problem talking to the database\\x0amore");
  f.runner.exit_status = 0;
  EXPECT_THAT((*manager)->fetch_units(kSlurmWindow, {}).error().message, HasSubstr("talking to"));
  f.runner.error_text = "sacct: error: _parse_next_key: unrecognized key: X\nsacct: hello\n";
  EXPECT_EQ((*manager)->fetch_units(kSlurmWindow, {})->size(), 1U);
}

TEST(Slurm, TakesNoJobsOfAClusterThatSlurmDoesNotKnowForNoAnswer) {
  SlurmFixture f;
  f.config.extra = config::parse_yaml("slurm_cluster: alpah", "c.yml").value();
  auto manager = f.create();
  ASSERT_TRUE(manager);
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_FALSE(units);
  EXPECT_THAT(units.error().message,
              HasSubstr("sacctmgr lists no association of the cluster 'alpah'"));
  EXPECT_EQ((*manager)->fetch_users_projects(kSlurmWindow, {}).error().code, ErrorCode::kNoData);
}

TEST(Slurm, PassesOnThatTheCommandHangsOrIsMissingOrStopped) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.error = Error{ErrorCode::kTimeout, "no end after 300 s"};
  auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(units.error().message, "sacct: no end after 300 s");
  f.runner.error = Error{ErrorCode::kNotFound, "exec: No such file or directory"};
  EXPECT_EQ((*manager)->fetch_users_projects(kSlurmWindow, {}).error().message,
            "sacctmgr: exec: No such file or directory");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ((*manager)->fetch_units(kSlurmWindow, stop.get_token()).error().code,
            ErrorCode::kUnavailable);
}

TEST(Slurm, FailsOnNothingButGarbage) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {std::string("\xFF\x00\x01garbage", 10), "more"};
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_FALSE(units);
  EXPECT_THAT(units.error().message, HasSubstr("output of sacct: expected 19 fields, got 1"));
}

TEST(Slurm, ReadsAssociations) {
  SlurmFixture f;
  auto manager = f.create();
  ASSERT_TRUE(manager);
  f.runner.lines = {"acc1|", "acc1|bob", "acc2|bob", "root|root"};
  const auto people = (*manager)->fetch_users_projects(kSlurmWindow, {});
  ASSERT_TRUE(people);
  EXPECT_EQ(f.runner.commands[0].path, f.directory.path() / "sacctmgr");
  EXPECT_EQ(f.runner.commands[0].arguments,
            (std::vector<std::string>{"--parsable2", "--noheader", "list", "associations",
                                      "format=Account,User"}));
  ASSERT_EQ(people->users.size(), 1U);
  EXPECT_EQ(people->users[0].name, "bob");
  EXPECT_EQ(people->users[0].projects, (std::vector<std::string>{"acc1", "acc2"}));
  ASSERT_EQ(people->projects.size(), 2U);
  EXPECT_EQ(people->projects[1].users, std::vector<std::string>{"bob"});
}

TEST(Slurm, CutsFractionsOffMemoryUnlessConfiguredOtherwise) {
  const auto memory_of = [](const char* extra) {
    SlurmFixture f;
    f.config.extra = config::parse_yaml(extra, "c.yml").value();
    auto manager = f.create().value();
    std::string job = kSlurmJob;
    job.replace(job.find("mem=1G"), 6, "mem=320.5G");
    f.runner.lines = {job};
    return manager->fetch_units(kSlurmWindow, {})->at(0).allocation;
  };
  EXPECT_THAT(memory_of(""), HasSubstr("\"mem\":343597383680"));
  EXPECT_THAT(memory_of("exact_memory: true"), HasSubstr("\"mem\":344134254592"));
}

TEST(Slurm, AsksForOneClusterOfManyWhenItIsNamed) {
  SlurmFixture f;
  f.config.extra = config::parse_yaml("slurm_cluster: alpha", "c.yml").value();
  auto manager = f.create().value();
  f.runner.lines = {kSlurmJob};
  ASSERT_TRUE(manager->fetch_units(kSlurmWindow, {}));
  ASSERT_TRUE(manager->fetch_users_projects(kSlurmWindow, {}));
  EXPECT_THAT(f.runner.commands[0].arguments, ::testing::Contains("--clusters=alpha"));
  EXPECT_EQ(f.runner.commands[1].arguments,
            (std::vector<std::string>{"--parsable2", "--noheader", "list", "associations",
                                      "format=Account,User", "cluster=alpha"}));
  for (const char* bad : {"a,b", "-a", "A", "a b", "\"\\n\""}) {
    f.config.extra = config::parse_yaml("slurm_cluster: " + std::string(bad), "c.yml").value();
    EXPECT_FALSE(f.create()) << bad;
  }
}

TEST(Slurm, CoordinatorsLeadWhereTheConfigurationSaysSo) {
  SlurmFixture f;
  f.runner.lines = {"proj1|zoe,,bob|", "proj2|", "|eve"};
  EXPECT_EQ(f.create().value()->fetch_leads({}).value(), ProjectLeads{});
  EXPECT_TRUE(f.runner.commands.empty());
  f.config.extra = config::parse_yaml("coordinators_lead: true", "c.yml").value();
  auto manager = f.create().value();
  const auto leads = manager->fetch_leads({});
  ASSERT_TRUE(leads) << leads.error().message;
  EXPECT_EQ(*leads, (ProjectLeads{{"proj1", {"zoe", "bob"}}}));
  ASSERT_EQ(f.runner.commands.size(), 1U);
  EXPECT_EQ(f.runner.commands[0].arguments,
            (std::vector<std::string>{"--parsable2", "--noheader", "list", "account", "withcoord",
                                      "format=Account,Coordinators"}));
  // Accounts without coordinators have no leads; an answer without accounts is rejected.
  f.runner.lines = {"proj1|", "proj2|"};
  EXPECT_EQ(manager->fetch_leads({}).value(), ProjectLeads{});
  f.runner.lines = {"|eve", ""};
  EXPECT_FALSE(manager->fetch_leads({}));
  f.runner.lines = {"proj1|zoe"};
  f.runner.exit_status = 1;
  EXPECT_FALSE(manager->fetch_leads({}));
}

SlurmJob job_from(const std::string& id, std::int64_t start, std::optional<std::int64_t> end) {
  SlurmJob job;
  job.id = id;
  job.start_ms = kSlurmWindow.start_ms + start;
  job.state = "RUNNING";
  if (end) {
    job.end_ms = kSlurmWindow.start_ms + *end;
    job.state = "COMPLETED";
  }
  return job;
}

TEST(Slurm, KeepsSummariesOfJobstatsOnlyIfConfigured) {
  for (const bool reads : {false, true}) {
    auto source = std::make_unique<FakeSlurmSource>();
    source->in_window = {job_from("7", 0, std::nullopt)};
    source->in_window[0].details.js1 = "JS1:H4sIAA==";
    auto manager = make_slurm("c1", std::move(source), TimeZone(), {.reads_js1 = reads});
    const auto units = manager->fetch_units(kSlurmWindow, {});
    ASSERT_TRUE(units);
    EXPECT_EQ(units->at(0).tags.contains("JS1:H4sIAA=="), reads);
  }
}

/// Returns a window that starts and ends so many hours after the start of kSlurmWindow.
model::Window slurm_hours(int from, int until) {
  return {.start_ms = kSlurmWindow.start_ms + from * kHourMs,
          .end_ms = kSlurmWindow.start_ms + until * kHourMs};
}

struct LateFixture {
  LateFixture() {
    auto owned = std::make_unique<FakeSlurmSource>();
    source = owned.get();
    manager = make_slurm("c1", std::move(owned), TimeZone());
    source->in_window = {job_from("1", kHourMs / 2, {}), job_from("2", kHourMs / 2, {})};
    EXPECT_EQ(manager->fetch_units(slurm_hours(0, 1), {})->size(), 2U);
    // Job 1 ended in the first hour, but SLURM recorded it later.
    source->in_window = {job_from("2", kHourMs / 2, {})};
    source->by_id = {job_from("1", kHourMs / 2, kHourMs - 60'000), job_from("1", 0, kHourMs / 4),
                     job_from("9", 0, {})};
  }
  FakeSlurmSource* source;
  std::unique_ptr<ResourceManager> manager;
};

TEST(SlurmLate, AJobWhoseEndWasRecordedLateIsClosed) {
  LateFixture f;
  EXPECT_TRUE(f.source->asked.empty());
  const auto units = f.manager->fetch_units(slurm_hours(1, 2), {});
  ASSERT_TRUE(units);
  ASSERT_EQ(units->size(), 2U);
  EXPECT_EQ((*units)[1].uuid, "1");
  EXPECT_EQ((*units)[1].state, "COMPLETED");
  EXPECT_EQ((*units)[1].ended_at_ts, kSlurmWindow.start_ms + kHourMs - 60'000);
  // All of its time: the store adds what it has not counted yet.
  EXPECT_EQ((*units)[1].total_time_seconds.at("walltime"), 1740);
  EXPECT_EQ(f.source->asked, (std::vector<std::vector<std::string>>{{"1"}}));
  // The next window starts after this one, so this one was stored: no more queries.
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(2, 3), {})->size(), 1U);
  EXPECT_EQ(f.source->asked.size(), 1U);
}

TEST(SlurmLate, ItIsReportedAgainWhenTheWindowComesAgain) {
  LateFixture f;
  ASSERT_EQ(f.manager->fetch_units(slurm_hours(1, 2), {})->size(), 2U);
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(1, 3), {})->size(), 2U);
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(3, 4), {})->size(), 1U);
}

TEST(SlurmLate, AFailedQuestionDoesNotFailTheWindow) {
  LateFixture f;
  f.source->ids_ok = false;
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(1, 2), {})->size(), 1U);
  f.source->ids_ok = true;
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(2, 3), {})->size(), 2U);
}

TEST(SlurmLate, AFailedWindowForgetsNothing) {
  LateFixture f;
  f.source->ok = false;
  EXPECT_FALSE(f.manager->fetch_units(slurm_hours(1, 2), {}));
  f.source->ok = true;
  EXPECT_EQ(f.manager->fetch_units(slurm_hours(1, 2), {})->size(), 2U);
}

TEST(SlurmLate, AnOwnerWithoutANameIsAskedForUntilThereIsOne) {
  LateFixture f;
  SlurmJob ended = job_from("3", kHourMs + 5, kHourMs + 10);
  ended.user = "1001";
  f.source->in_window = {ended};
  f.source->by_id = {};
  ASSERT_TRUE(f.manager->fetch_units(slurm_hours(1, 2), {}));
  f.source->in_window = {};
  ended.user = "ada";
  f.source->by_id = {ended};
  const auto units = f.manager->fetch_units(slurm_hours(2, 3), {});
  ASSERT_TRUE(units);
  ASSERT_EQ(units->size(), 1U);
  EXPECT_EQ(units->at(0).username, "ada");
  EXPECT_EQ(units->at(0).ended_at_ts, *ended.end_ms);
  f.source->asked.clear();
  ASSERT_TRUE(f.manager->fetch_units(slurm_hours(3, 4), {}));
  for (const auto& ids : f.source->asked) {
    EXPECT_EQ(std::ranges::find(ids, "3"), ids.end());
  }
}

TEST(SlurmLate, AJobThatSlurmForgotIsNotEndedByGuess) {
  LateFixture f;
  f.source->in_window = {};
  f.source->by_id = {};
  for (int hour = 1; hour < 6; ++hour) {
    EXPECT_TRUE(f.manager->fetch_units(slurm_hours(hour, hour + 1), {})->empty());
  }
  EXPECT_EQ(f.source->asked.size(), 3U);
}

TEST(SlurmLate, AStartThatWasRecordedLateCountsFromThere) {
  LateFixture f;  // jobs 1 and 2 ran in the first hour
  const auto seconds = [&f](model::Window window) {
    std::map<std::string, double> found;
    const auto units = f.manager->fetch_units(window, {});
    for (const auto& unit : *units) {
      found[unit.uuid] = unit.total_time_seconds.at("walltime");
    }
    return found;
  };
  f.source->in_window = {job_from("1", kHourMs / 2, {}), job_from("2", kHourMs / 2, kHourMs),
                         job_from("3", kHourMs - 5'000, {}),
                         job_from("4", kHourMs - 5'000, kHourMs + 1'000),
                         job_from("5", kHourMs - 9'000, kHourMs - 5'000)};
  const std::map<std::string, double> expected = {
      {"1", 3600}, {"2", 0}, {"3", 3605}, {"4", 6}, {"5", 4}};
  EXPECT_EQ(seconds(slurm_hours(1, 2)), expected);
  EXPECT_EQ(seconds(slurm_hours(1, 2)), expected) << "the same window again";
  EXPECT_EQ(seconds(slurm_hours(2, 3)).at("3"), 3600);
  // After a skipped window nothing is known about what ran before.
  f.source->in_window.push_back(job_from("6", 2 * kHourMs, {}));
  EXPECT_EQ(seconds(slurm_hours(4, 5)).at("6"), 3600);
}

TEST(SlurmLate, AStartThatWasRecordedLateIsOneBeforeTheWindow) {
  LateFixture f;
  f.source->in_window = {job_from("before", kHourMs - 1'000, {}), job_from("at", kHourMs, {}),
                         job_from("behind", kHourMs + 1'000, {})};
  std::map<std::string, double> seconds;
  const auto units = f.manager->fetch_units(slurm_hours(1, 2), {}).value();
  for (const auto& unit : units) {
    seconds[unit.uuid] = unit.total_time_seconds.at("walltime");
  }
  seconds.erase("1");  // its end was recorded late
  EXPECT_EQ(seconds,
            (std::map<std::string, double>{{"before", 3601}, {"at", 3600}, {"behind", 3599}}));
}

TEST(SlurmLate, AnEndAtTheEndOfTheWindowIsNotAskedForAgain) {
  auto owned = std::make_unique<FakeSlurmSource>();
  FakeSlurmSource& source = *owned;
  auto manager = make_slurm("c1", std::move(owned), TimeZone());
  source.in_window = {job_from("1", 0, kHourMs), job_from("2", 0, kHourMs + 1)};
  ASSERT_TRUE(manager->fetch_units(slurm_hours(0, 1), {}));
  source.in_window = {};
  ASSERT_TRUE(manager->fetch_units(slurm_hours(1, 2), {}));
  EXPECT_EQ(source.asked, (std::vector<std::vector<std::string>>{{"2"}}));
}

TEST(SlurmLate, AsksInLimitedNumbers) {
  auto owned = std::make_unique<FakeSlurmSource>();
  FakeSlurmSource& source = *owned;
  auto manager = make_slurm("c1", std::move(owned), TimeZone());
  for (int id = 1; id <= 12'000; ++id) {
    source.in_window.push_back(job_from(std::to_string(id), 0, {}));
  }
  ASSERT_TRUE(manager->fetch_units(slurm_hours(0, 1), {}));
  source.in_window = {};
  ASSERT_TRUE(manager->fetch_units(slurm_hours(1, 2), {}));
  ASSERT_EQ(source.asked.size(), 20U);
  EXPECT_EQ(source.asked[0].size(), 500U);
}

TEST(Slurm, AsksForJobsByIdWithoutATime) {
  SlurmFixture f;
  auto manager = f.create().value();
  f.runner.lines = {kSlurmJob};
  ASSERT_TRUE(manager->fetch_units(kSlurmWindow, {}));
  f.runner.lines = {"5002" + std::string(kSlurmJob).substr(4)};
  ASSERT_TRUE(manager->fetch_units(slurm_hours(1, 2), {}));
  ASSERT_EQ(f.runner.commands.size(), 3U);
  const auto& arguments = f.runner.commands[2].arguments;
  EXPECT_THAT(arguments, ::testing::Contains("--jobs"));
  EXPECT_THAT(arguments, ::testing::Contains("5001"));
  EXPECT_THAT(arguments, ::testing::Not(::testing::Contains("--starttime")));
  EXPECT_THAT(arguments, ::testing::Not(::testing::Contains("--state")));
}

TEST(Slurm, AsksSlurmrestdOnlyWhereConfigured) {
  SlurmFixture f;
  f.config.web_url = "http://127.0.0.1:1";
  f.runner.lines = {kSlurmJob};
  auto manager = f.create();
  ASSERT_TRUE(manager);
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  EXPECT_EQ(f.runner.commands.size(), 1U);
  f.config.cli_path = "/no/such/directory";  // not needed
  f.config.extra = config::parse_yaml("api: rest", "c.yml").value();
  manager = f.create();
  ASSERT_TRUE(manager) << manager.error().message;
  const auto units = (*manager)->fetch_units(kSlurmWindow, {});
  ASSERT_FALSE(units);
  EXPECT_THAT(units.error().message, HasSubstr("slurmrestd jobs: "));
  EXPECT_EQ(f.runner.commands.size(), 1U);
  f.config.web_url.clear();
  EXPECT_EQ(f.create().error().message, "cluster c1: api: rest needs web.url");
  for (const char* bad : {"api: web", "rest_version: 40", "rest_socket: run/x", "rest_page: 1s",
                          "rest_pages: 1h", "exact_memory: 5"}) {
    f.config.extra = config::parse_yaml(bad, "c.yml").value();
    EXPECT_FALSE(f.create()) << bad;
  }
}

TEST(Slurm, RunsAsTheCurrentUserWhereItMayNotBecomeRoot) {
  SlurmFixture f;
  f.config.cli_path = "/";
  f.runner.lines = {kSlurmJob};
  auto manager = f.create(false);
  ASSERT_TRUE(manager) << manager.error().message;
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  const auto& command = f.runner.commands.back();  // a probe of sudo may come first
  EXPECT_EQ(command.path, "/sacct");
  EXPECT_FALSE(command.as_root);
}

TEST(Slurm, RefusesAConfigurationThatCannotWork) {
  SlurmFixture f;
  f.runner.lines = {kSlurmJob};
  f.config.cli_path = "/no/such/directory";
  EXPECT_EQ(f.create().error().message,
            "cluster c1: stat /no/such/directory: No such file or directory");
  f.config.cli_path = "/";
  f.config.extra = config::parse_yaml("command_timeout: 0s\n", "c.yml").value();
  EXPECT_THAT(f.create().error().message, HasSubstr("c.yml:1: command_timeout: must be more"));
  f.config.extra = config::parse_yaml("{api: rest, read_scripts: true}", "c.yml").value();
  EXPECT_THAT(f.create().error().message, HasSubstr("slurmrestd has no scripts"));
  f.config.extra = config::parse_yaml("command_timeout: 10s\n", "c.yml").value();
  auto manager = f.create();
  ASSERT_TRUE(manager);
  ASSERT_TRUE((*manager)->fetch_units(kSlurmWindow, {}));
  EXPECT_EQ(f.runner.commands.back().timeout, std::chrono::seconds(10));
}

}  // namespace
}  // namespace ceems::ingest
