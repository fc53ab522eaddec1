#include "ingest/manager/slurm/scripts.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "config/section.h"
#include "ingest/manager/slurm/fake_slurm_source.h"
#include "ingest/manager/slurm/slurm.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Ids = std::vector<std::string>;

constexpr model::Window kScriptsWindow{.start_ms = 1'767'254'400'000,
                                       .end_ms = 1'767'254'400'000 + kHourMs};

/// What `sacct --batch-script` of SLURM 22.05 printed for jobs 1, 2, 3, 5, 8 (without a script) and
/// 6_1. The script of 3 holds the heading of 2.
std::vector<std::string> recorded_scripts() {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/data/sacct/scripts.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::map<std::string, ScriptOutput::Found> found(const Ids& ids,
                                                 const std::vector<std::string>& lines) {
  ScriptOutput output(ids);
  for (const std::string& line : lines) {
    output.add_line(line);
  }
  return output.finish();
}

TEST(ScriptOutput, IsOfManyJobs) {
  const auto scripts = found({"1", "2", "3", "5", "6_1", "8"}, recorded_scripts());
  ASSERT_EQ(scripts.size(), 6U);
  EXPECT_EQ(scripts.at("1").directives, "--mem-per-cpu=1G --ntasks=4");
  EXPECT_EQ(scripts.at("3").directives, "--mem=100M --ntasks=2");
  EXPECT_EQ(scripts.at("5").directives, "--");
  EXPECT_EQ(scripts.at("6_1").directives, "--mem=100");
  EXPECT_EQ(scripts.at("8").directives, std::nullopt);
  // Two scripts claim to be that of job 2.
  EXPECT_TRUE(scripts.at("2").doubtful);
  EXPECT_EQ(scripts.at("2").directives, std::nullopt);
  EXPECT_FALSE(scripts.at("1").doubtful);
}

TEST(ScriptOutput, OfOneJobIsAllItsScript) {
  const std::string dashes(80, '-');
  EXPECT_EQ(found({"2"}, {"Batch Script for 2", dashes, "#!/bin/sh", "#SBATCH -n2",
                          "Batch Script for 2", dashes, "#!/bin/sh", "#SBATCH -n9"})
                .at("2")
                .directives,
            "--ntasks=2");
  // A heading needs its line of dashes and an id that was asked for.
  EXPECT_EQ(found({"2", "3"}, {"Batch Script for 2", dashes, "#!/bin/sh", "Batch Script for 3",
                               dashes + "-", "#SBATCH -n9"})
                .size(),
            1U);
  EXPECT_EQ(found({"2", "3"}, {"Batch Script for 4", dashes, "#!/bin/sh"}).size(), 0U);
  EXPECT_EQ(found({"2"}, {"Batch Script for 2"}).size(), 0U);
  EXPECT_EQ(found({"2"}, {}).size(), 0U);
}

SlurmJob submitted_job(const std::string& id, const std::string& line = "sbatch run.sh") {
  SlurmJob job;
  job.id = id;
  job.start_ms = kScriptsWindow.start_ms;
  job.state = "RUNNING";
  job.details.submit_line = line;
  return job;
}

struct ScriptsFixture {
  ScriptsFixture() {
    auto owned = std::make_unique<FakeSlurmSource>();
    source = owned.get();
    manager =
        make_slurm("c1", std::move(owned), TimeZone(), {.reads_scripts = true}, source->clock);
  }
  /// The tags of the units of a window, by uuid.
  std::map<std::string, std::string> tags(model::Window window = kScriptsWindow) {
    std::map<std::string, std::string> found;
    for (const model::Unit& unit : manager->fetch_units(window, {}).value()) {
      found[unit.uuid] = unit.tags;
    }
    return found;
  }
  FakeSlurmSource* source = nullptr;
  std::unique_ptr<ResourceManager> manager;
};

TEST(SlurmScripts, GiveUnitsTheirDirectives) {
  ScriptsFixture f;
  f.source->in_window = {submitted_job("7"), submitted_job("8"),
                         submitted_job("9", "srun hostname")};
  f.source->script_of = {{"7", "#SBATCH --mem=2G\nsecret --token=x"}, {"8", "hostname"}};
  for (const int round : {0, 1}) {  // all windows have the tag; a script is asked for once
    const auto tags = f.tags({.start_ms = kScriptsWindow.start_ms + round * kHourMs,
                              .end_ms = kScriptsWindow.end_ms + round * kHourMs});
    EXPECT_THAT(tags.at("7"), HasSubstr(R"("script_options":"--mem=2G")"));
    EXPECT_THAT(tags.at("7"), Not(HasSubstr("secret")));
    EXPECT_THAT(tags.at("8"), HasSubstr(R"("script_options":"--")"));
    EXPECT_THAT(tags.at("9"), Not(HasSubstr("script_options")));
  }
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"7", "8"}));
}

TEST(SlurmScripts, AreNotReadUnlessConfigured) {
  auto owned = std::make_unique<FakeSlurmSource>();
  FakeSlurmSource& source = *owned;
  source.in_window = {submitted_job("7")};
  const auto manager = make_slurm("c1", std::move(owned), TimeZone());
  EXPECT_EQ(manager->fetch_units(kScriptsWindow, {}).value().size(), 1U);
  EXPECT_TRUE(source.asked_scripts.empty());
}

TEST(SlurmScripts, AreAskedForOnlyWhereTheCommandLeavesRoom) {
  ScriptsFixture f;
  SlurmJob part = submitted_job("2");
  part.details.het_job = 1;
  SlurmJob brief = submitted_job("3");
  brief.end_ms = kScriptsWindow.start_ms + 299'999;
  SlurmJob gpus = submitted_job("4", "sbatch -n4 -c1 --mem=2G run.sh");
  gpus.allocation.gpus = 1;
  f.source->in_window = {submitted_job("1", "sbatch -n4 -c1 --mem=2G run.sh"),
                         part,
                         brief,
                         gpus,
                         submitted_job("5", "sbatch --wrap=hostname"),
                         submitted_job("6", ""),
                         submitted_job("7", "sbatch a.sh : b.sh"),
                         submitted_job("8", "sbatch " + std::string(1100, 'x')),
                         submitted_job("9", "sbatch --mem=2G run.sh")};
  EXPECT_EQ(f.tags().size(), 9U);
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"4", "9"}));
}

TEST(SlurmScripts, OfAnArrayAreReadOnce) {
  ScriptsFixture f;
  for (int task = 1; task <= 3; ++task) {
    SlurmJob job = submitted_job(std::to_string(task == 3 ? 40 : 40 + task));
    job.details.array_job = 40;
    job.details.array_task = task;
    f.source->in_window.push_back(job);
  }
  f.source->script_of["40_1"] = "#SBATCH --mem-per-cpu=1G";
  const auto tags = f.tags();
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"40_1"}));
  for (const char* id : {"40", "41", "42"}) {
    EXPECT_THAT(tags.at(id), HasSubstr(R"("script_options":"--mem-per-cpu=1G")"));
  }
}

TEST(SlurmScripts, OneThatClaimsToBeAnotherHarmsNobody) {
  ScriptsFixture f;
  const std::string heading = "\nBatch Script for 8\n" + std::string(80, '-');
  f.source->in_window = {submitted_job("7"), submitted_job("8")};
  f.source->script_of = {{"7", "#SBATCH -n2" + heading + "\n#!/bin/sh\n#SBATCH -n9"},
                         {"8", "#SBATCH -n4"}};
  const auto tags = f.tags();
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"7", "8"}, Ids{"8"}));
  EXPECT_THAT(tags.at("7"), HasSubstr(R"("script_options":"--ntasks=2")"));
  EXPECT_THAT(tags.at("8"), HasSubstr(R"("script_options":"--ntasks=4")"));
}

TEST(SlurmScripts, ABadOneCostsOnlyItself) {
  ScriptsFixture f;
  for (const char* id : {"1", "2", "3", "4"}) {
    f.source->in_window.push_back(submitted_job(id));
  }
  f.source->broken_scripts = {"2"};
  const auto tags = f.tags();
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"1", "2", "3", "4"}, Ids{"1", "2"}, Ids{"1"},
                                                   Ids{"2"}, Ids{"3", "4"}));
  EXPECT_THAT(tags.at("1"), HasSubstr("script_options"));
  EXPECT_THAT(tags.at("2"), Not(HasSubstr("script_options")));
  EXPECT_THAT(tags.at("4"), HasSubstr("script_options"));
  f.source->asked_scripts.clear();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(f.tags().size(), 4U);
  }
  EXPECT_EQ(f.source->asked_scripts.size(), 2U);  // three times in all
}

TEST(SlurmScripts, TakeALimitedTime) {
  ScriptsFixture f;
  for (int id = 1; id <= 5000; ++id) {
    f.source->in_window.push_back(submitted_job(std::to_string(id)));
  }
  f.source->script_takes = std::chrono::milliseconds(4000);
  auto tags = f.tags();
  EXPECT_EQ(tags.size(), 5000U);
  ASSERT_EQ(f.source->asked_scripts.size(),
            3U);  // the last of them gets the rest of 10 s and fails
  EXPECT_EQ(f.source->asked_scripts[0].size(), ScriptReader::kJobsAtOnce);
  // A server that hangs is asked until the time is over; the units are there.
  ScriptsFixture hanging;
  hanging.source->in_window.assign(1000, submitted_job("0"));
  for (int id = 0; id < 1000; ++id) {
    hanging.source->in_window[static_cast<std::size_t>(id)].id = std::to_string(id);
  }
  hanging.source->script_takes = std::chrono::milliseconds(5001);
  EXPECT_EQ(hanging.tags().size(), 1000U);
  EXPECT_EQ(hanging.source->asked_scripts.size(), 2U);
  // One that fails at once is not asked often.
  ScriptsFixture failing;
  failing.source->in_window = hanging.source->in_window;
  failing.source->broken_scripts = {"all"};
  EXPECT_EQ(failing.tags().size(), 1000U);
  EXPECT_LE(failing.source->asked_scripts.size(), 10U);
  // One that answers fast, too, is asked for a limited number.
  ScriptsFixture fast;
  fast.source->in_window = f.source->in_window;
  EXPECT_EQ(fast.tags().size(), 5000U);
  EXPECT_EQ(fast.source->asked_scripts.size(), 20U);
  EXPECT_EQ(fast.tags().size(), 5000U);
  EXPECT_EQ(fast.source->asked_scripts.size(), 25U);
}

TEST(SlurmScripts, TakeALimitedTimeWhileManyWindowsAreCaughtUpWith) {
  ScriptsFixture f;
  for (int id = 1; id <= 600; ++id) {
    f.source->in_window.push_back(submitted_job(std::to_string(id)));
  }
  f.source->script_takes = std::chrono::milliseconds(9000);  // longer than a call may take
  const auto start = f.source->clock.steady_now();
  const auto catch_up = [&f](int windows) {
    for (int i = 0; i < windows; ++i) {
      EXPECT_EQ(f.tags({.start_ms = kScriptsWindow.start_ms + i * kHourMs,
                        .end_ms = kScriptsWindow.end_ms + i * kHourMs})
                    .size(),
                f.source->in_window.size());
    }
  };
  catch_up(10);
  EXPECT_EQ(f.source->clock.steady_now() - start, std::chrono::seconds(20));
  EXPECT_EQ(f.source->asked_scripts.size(), 4U);
  catch_up(10);
  EXPECT_EQ(f.source->asked_scripts.size(), 4U);
  // The rest comes later: here, sacct answers again.
  f.source->clock.advance(std::chrono::minutes(10));
  f.source->script_takes = std::chrono::milliseconds(1000);
  catch_up(3);
  EXPECT_EQ(f.source->asked_scripts.size(), 4U + 3U);
  EXPECT_THAT(f.tags().at("600"), HasSubstr("script_options"));
  EXPECT_EQ(f.source->asked_scripts.size(), 7U);
  // A period counts what was spent in it only.
  f.source->clock.advance(std::chrono::minutes(10));
  f.source->in_window.push_back(submitted_job("601"));
  catch_up(1);
  EXPECT_EQ(f.source->asked_scripts.size(), 8U);
}

TEST(SlurmScripts, ThatEndedComeFirst) {
  ScriptsFixture f;
  f.source->in_window = {submitted_job("1"), submitted_job("2")};
  f.source->in_window[1].end_ms = kScriptsWindow.end_ms;
  EXPECT_EQ(f.tags().size(), 2U);
  EXPECT_THAT(f.source->asked_scripts, ElementsAre(Ids{"2", "1"}));
}

TEST(SlurmScripts, ComeFromSacct) {
  testing::TempDir directory;
  testing::FakeRunner runner;
  testing::FakeClock clock;
  runner.answer("sacct", [](const os::Command& command) -> Result<os::CommandResult> {
    const bool script = command.arguments.front() == "--batch-script";
    const bool fields = command.arguments.back() == "--helpformat";
    const std::string delimiter =
        command.arguments.back().substr(command.arguments.back().find('=') + 1);
    std::string job = "7";
    for (const char* field : {"p", "q", "acct", "g", "1", "user", "2", "2026-01-01T08:00:00+0000",
                              "2026-01-01T08:00:00+0000", "Unknown", "01:00:00", "3600", "0:0",
                              "RUNNING", "cpu=1", "n1", "sbatch run.sh", "name", "/home"}) {
      job += delimiter + field;
    }
    return os::CommandResult{.exit_status = 0,
                             .output = script ? "Batch Script for 7\n" + std::string(80, '-') +
                                                    "\n#!/bin/sh\n#SBATCH --mem=2G\n"
                                       : fields ? "JobIDRaw NodeList WorkDir SubmitLine\n"
                                                : job + "\n"};
  });
  ClusterConfig config;
  config.cluster = {.id = "c1", .manager = "slurm", .updaters = {}};
  config.cli_path = directory.path().string();
  config.extra =
      config::parse_yaml("{read_scripts: true, slurm_cluster: alpha, command_timeout: 1m}", "c.yml")
          .value();
  auto manager =
      create_slurm(config, {.clock = &clock, .runner = &runner, .zone = TimeZone()}, true);
  ASSERT_TRUE(manager) << manager.error().message;
  const auto units = (*manager)->fetch_units(kScriptsWindow, {});
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_THAT(units->at(0).tags, HasSubstr(R"("script_options":"--mem=2G")"));
  const os::Command last = runner.calls().back();
  EXPECT_THAT(last.arguments,
              ElementsAre("--batch-script", "-X", "--allusers", "--jobs", "7", "--clusters=alpha"));
  EXPECT_EQ(last.timeout, ScriptReader::kCallTime);
  EXPECT_TRUE(last.as_root);
}

}  // namespace
}  // namespace ceems::ingest
