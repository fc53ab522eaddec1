#include "ingest/manager/openpbs/openpbs.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "ingest/manager/all.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kStart = 1'775'001'600'000;  // 2026-04-01T00:00:00Z
constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;

struct Job {
  std::string id;
  std::string user = "ada";
  std::string project = "fluids";
  std::int64_t start = 0;  ///< ms after kStart
  std::int64_t end = 0;
};

/// Prints jobs as qstat would at a time, in the zone that TZ says.
class FakePbs {
 public:
  std::vector<Job> jobs;
  std::int64_t now = 0;                 ///< ms after kStart
  std::int64_t history = 1000 * kHour;  ///< job_history_duration

  void install(testing::FakeRunner& runner) {
    runner.answer("qstat", [this](const os::Command& command) { return qstat(command); });
  }

 private:
  static std::string time(const os::Command& command, std::int64_t ms) {
    const auto zone = TimeZone::find(command.environment.at("TZ")).value();
    const std::string text = zone.local(kStart + ms);
    return std::string("Wed ") + (text.substr(5, 2) == "03" ? "Mar " : "Apr ") +
           (text[8] == '0' ? " " + text.substr(9, 1) : text.substr(8, 2)) + " " + text.substr(11) +
           " " + text.substr(0, 4);
  }
  [[nodiscard]] os::CommandResult qstat(const os::Command& command) const {
    std::string text = "{\n    \"timestamp\":1,\n    \"pbs_server\":\"srv\",\n    \"Jobs\":{";
    bool first = true;
    for (const Job& job : jobs) {
      if (job.start > now || job.end + history < now) {
        continue;
      }
      text += fmt::format(
          "{}\n        \"{}\":{{\n            \"Job_Name\":\"j\",\n            "
          "\"Job_Owner\":\"{}@l\",\n            \"job_state\":\"{}\",\n            "
          "\"ctime\":\"{}\",\n            \"stime\":\"{}\",\n            "
          "\"exec_host\":\"n1/0*2\",\n "
          "           \"exec_vnode\":\"(n1:ncpus=2:mem=1gb)\",\n            \"project\":\"{}\"{}\n"
          "        }}",
          first ? "" : ",", job.id, job.user, job.end <= now ? "F" : "R",
          time(command, job.start - 1000), time(command, job.start), job.project,
          job.end <= now ? fmt::format(",\n            \"Exit_status\":0,\n            "
                                       "\"obittime\":\"{}\"",
                                       time(command, job.end))
                         : "");
      first = false;
    }
    return {.output = text + "\n    }\n}\n"};
  }
};

class Openpbs : public ::testing::Test {
 protected:
  Openpbs() { pbs_.install(runner_); }

  Result<std::unique_ptr<ResourceManager>> create(const std::string& extra = "") {
    config_.cluster = {.id = "c1", .manager = "openpbs", .updaters = {}};
    config_.cli_path = directory_.path().string();
    if (!extra.empty()) {
      config_.extra = config::parse_yaml(extra, "c.yml").value();
    }
    return create_manager(
        openpbs_manager(), config_,
        {.clock = &clock_, .runner = &runner_, .zone = TimeZone::find("Europe/Paris").value()});
  }
  Result<std::vector<model::Unit>> fetch(ResourceManager& manager,
                                         std::int64_t from,
                                         std::int64_t until) {
    pbs_.now = until + kMinute;
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kStart + pbs_.now)));
    return manager.fetch_units({.start_ms = kStart + from, .end_ms = kStart + until}, {});
  }

  testing::FakeClock clock_;
  testing::TempDir directory_;
  testing::FakeRunner runner_;
  FakePbs pbs_;
  ClusterConfig config_;
};

TEST_F(Openpbs, AsksForAllJobsWithTheirHistoryAndTheElementsOfArrays) {
  auto manager = create().value();
  pbs_.jobs = {{.id = "12[3].srv", .start = 0, .end = kHour / 2},
               {.id = "13.srv", .start = 0, .end = 2 * kHour},
               {.id = "9.srv", .start = -9 * kHour, .end = -8 * kHour}};
  const auto units = fetch(*manager, 0, kHour);
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_THAT(*units, SizeIs(2));  // that of long ago was reported then
  EXPECT_EQ((*units)[0].uuid, "12[3].srv");
  EXPECT_EQ((*units)[0].state, "FINISHED");
  EXPECT_EQ((*units)[0].started_at, "2026-04-01T02:00:00+0200");
  EXPECT_EQ((*units)[0].project, "fluids");
  EXPECT_EQ((*units)[0].total_time_seconds.at("alloc_cputime"), 3600);
  EXPECT_EQ((*units)[0].total_time_seconds.at("alloc_cpumemtime"), 1024 * 1800);
  EXPECT_EQ((*units)[1].state, "RUNNING");
  const auto calls = runner_.calls();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0].path, directory_.path() / "qstat");
  EXPECT_THAT(calls[0].arguments, ElementsAre("-f", "-F", "json", "-x", "-t"));
  EXPECT_EQ(calls[0].environment.at("TZ"), "UTC");
  const auto people = manager->fetch_users_projects({}, {}).value();
  ASSERT_THAT(people.projects, SizeIs(1));
  EXPECT_THAT(people.projects[0].users, ElementsAre("ada"));
}

TEST_F(Openpbs, LeavesOutWhatItCannotReadAndKeepsTheRest) {
  auto manager = create().value();
  runner_.reply("qstat",
                {.output = R"({"Jobs":{"x":{},"1.srv":{"job_state":"R"},"2.srv":{"job_state":"R",)"
                           R"("stime":"Wed Apr  1 00:00:00 2026"},"3.srv":5}})"});
  const auto units = fetch(*manager, 0, kHour);
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_THAT(*units, SizeIs(1));
  EXPECT_EQ(units->front().uuid, "2.srv");
}

TEST_F(Openpbs, TakesOutputOfACommandThatFailedForIncomplete) {
  auto manager = create().value();
  runner_.reply("qstat", {.exit_status = 35,
                          .error_text = "qstat: Server is not configured for job history\n"});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().message,
            "output of qstat: qstat: exit status 35: qstat: Server is not configured for job "
            "history");
  runner_.reply("qstat", {.output = R"({"Jobs":{"1.srv":{"a":"b)"});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().message,
            "output of qstat: the JSON document is incomplete, in or after 1.srv");
  runner_.reply("qstat", {.output = R"({"timestamp":1,"pbs_server":"srv"})"});
  EXPECT_THAT(fetch(*manager, 0, kHour).value(), IsEmpty());
}

TEST_F(Openpbs, RefusesAConfigurationThatCannotWork) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"project_from: [queue]",
       "c.yml:1: project_from: expected a list of project, account and group"},
      {"members: 5", "c.yml:1: members: expected jobs or none"},
      {"server: x", "c.yml:1: server: unknown key"}};
  for (const auto& [extra, message] : wrong) {
    const auto manager = create(extra);
    ASSERT_FALSE(manager) << extra;
    EXPECT_THAT(manager.error().message, HasSubstr(message));
  }
  EXPECT_TRUE(create("project_from: [account, group]"));
}

/// 10,000 jobs in a day of windows, each counted once and to the second. The server keeps the
/// history for an hour and a half only.
TEST_F(Openpbs, CountsADayOfTenThousandJobs) {
  auto manager = create().value();
  pbs_.history = kHour + kHour / 2;
  constexpr int kJobs = 10'000;
  for (int i = 0; i < kJobs; ++i) {
    const std::int64_t start = (i * 8639LL % 86'000) * 1000;
    const std::int64_t length = (1 + i * 37LL % 3000) * 1000;
    pbs_.jobs.push_back(
        {.id = i % 3 == 0 ? fmt::format("{}[{}].srv", i, i % 7) : fmt::format("{}.srv", i),
         .user = "user" + std::to_string(i % 50),
         .project = "p" + std::to_string(i % 11),
         .start = start,
         .end = start + length});
  }
  std::map<std::string, double> walltime;
  std::map<std::string, std::int64_t> ended;
  constexpr std::int64_t kWindow = kHour;
  for (std::int64_t from = 0; from < 26 * kHour; from += kWindow) {
    const auto units = fetch(*manager, from, from + kWindow);
    ASSERT_TRUE(units) << units.error().message;
    for (const auto& unit : *units) {
      walltime[unit.uuid] += unit.total_time_seconds.at("walltime");
      if (unit.ended_at_ts > 0) {
        EXPECT_TRUE(ended.emplace(unit.uuid, unit.ended_at_ts).second) << unit.uuid;
      }
    }
  }
  EXPECT_EQ(ended.size(), static_cast<std::size_t>(kJobs));
  for (const Job& job : pbs_.jobs) {
    ASSERT_EQ(ended[job.id], kStart + job.end) << job.id;
    ASSERT_EQ(walltime[job.id], static_cast<double>(job.end - job.start) / 1000) << job.id;
  }
}

}  // namespace
}  // namespace ceems::ingest
