#include "ingest/manager/lsf/lsf.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/batch/batch_test_support.h"
#include "ingest/manager/lsf/job.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Prints jobs as LSF would at a time, in the zone that TZ says.
class FakeLsf {
 public:
  std::vector<FakeJob> jobs;
  std::int64_t now = 0;    ///< ms after kStart
  bool remembers = false;  ///< bjobs -a lists jobs that ended

  void install(testing::FakeRunner& runner) {
    runner.answer("bjobs", [this](const os::Command& command) { return bjobs(command); });
    runner.answer("bacct", [this](const os::Command& command) { return bacct(command); });
  }

 private:
  [[nodiscard]] os::CommandResult bjobs(const os::Command& command) const {
    const bool all =
        remembers && std::ranges::find(command.arguments, "-a") != command.arguments.end();
    std::string records;
    for (const FakeJob& job : jobs) {
      const bool runs = job.start <= now && job.end > now;
      if (!runs && !(all && job.end <= now)) {
        continue;
      }
      const std::string number = job.id.substr(0, job.id.find('['));
      const std::string index =
          number == job.id ? "0"
                           : job.id.substr(number.size() + 1, job.id.size() - number.size() - 2);
      records += (records.empty() ? "" : ",\n") +
                 fmt::format(R"({{"JOBID":"{}","JOBINDEX":"{}","USER":"{}","USER_GROUP":"physics",)"
                             R"("QUEUE":"q","JOB_NAME":"{}","PROJ_NAME":"{}","STAT":"{}",)"
                             R"("ALLOC_SLOT":"n1:n1","NALLOC_SLOT":"2","SUBMIT_TIME":"{}",)"
                             R"("START_TIME":"{}","GPU_NUM":"","GPU_ALLOC":"","MEM":"1 Gbytes",)"
                             R"("MEMLIMIT":"2 G","MEM_EFFICIENCY":"","EFFECTIVE_RESREQ":"",)"
                             R"("RUNTIMELIMIT":"120.0","EXEC_CWD":"/x"}})",
                             number, index, job.user, job.name, job.project, runs ? "RUN" : "DONE",
                             ctime_text(command, job.start - 1000, false),
                             ctime_text(command, job.start, false));
    }
    if (records.empty()) {
      return {.exit_status = 255, .error_text = "No unfinished job found\n"};
    }
    return {.output = "{\n\"COMMAND\":\"bjobs\",\"JOBS\":1,\n\"RECORDS\":[" + records + "]\n}\n"};
  }

  [[nodiscard]] os::CommandResult bacct(const os::Command& command) const {
    std::int64_t from = -kHour * 1000;
    std::int64_t to = kHour * 1000;
    std::vector<std::string> ids(command.arguments.begin() + 5, command.arguments.end());
    if (ids.at(0) == "-C") {
      const auto zone = TimeZone::find(command.environment.at("TZ")).value();
      const auto moment = [&zone](std::string text) {  // 2026/04/01/00:00
        text.replace(4, 1, "-").replace(7, 1, "-").replace(10, 1, "T");
        return zone.parse_local(text + ":00").value() - kStart;
      };
      from = moment(ids.at(1).substr(0, 16));
      to = moment(ids.at(1).substr(17));
      ids.clear();
    }
    const std::string rule(78, '-');
    std::string text =
        "\nAccounting information about jobs that are: \n  - submitted by all users.\n" + rule +
        "\n\n";
    int listed = 0;
    for (const FakeJob& job : jobs) {
      const bool wanted = ids.empty() || std::ranges::find(ids, job.id) != ids.end();
      if (!wanted || job.end > now || job.end < from || job.end >= to) {
        continue;
      }
      ++listed;
      text += fmt::format(
          "Job <{}>, {}User <{}>, Project <{}>, Status <DONE>, Queue <q>, Command <x>, Share group "
          "charged </{}>\n{}: Submitted from host <l>, CWD <$HOME>;\n{}: Dispatched 2 Task(s) on "
          "Host(s) <n1> <n1>, Allocated 2 Slot(s) on Host(s) <n1> <n1>, Effective RES_REQ "
          "<x>;\n{}: "
          "Completed <done>.\n\nAccounting information about this job:\n{}\n\n",
          job.id, job.name.empty() ? "" : "Job Name <" + job.name + ">, ", job.user, job.project,
          job.user, ctime_text(command, job.start - 1000, true),
          ctime_text(command, job.start, true), ctime_text(command, job.end, true), rule);
    }
    return {.output = text + fmt::format("SUMMARY:      ( time unit: second ) \n"
                                         " Total number of done jobs: {:7}      "
                                         "Total number of exited jobs:     0\n",
                                         listed)};
  }
};

class Lsf : public BatchSystemTest<FakeLsf> {
 protected:
  Lsf() : BatchSystemTest(lsf_manager()) {}

  FakeLsf& lsf_ = system_;
};

TEST_F(Lsf, AsksForRunningJobsAndThenForThoseThatEnded) {
  config_.cli_environment = {{"LSF_ENVDIR", "/opt/lsf/conf"}, {"TZ", "Europe/Paris"}};
  auto manager = create();
  ASSERT_TRUE(manager) << manager.error().message;
  lsf_.jobs = {{.id = "6[1]", .start = -kHour, .end = kHour}};
  const auto units = fetch(**manager, 0, kHour / 2);
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_THAT(*units, SizeIs(1));
  const model::Unit& unit = units->front();
  EXPECT_EQ(unit.uuid, "6[1]");
  EXPECT_EQ(unit.groupname, "physics");
  EXPECT_EQ(unit.started_at, "2026-04-01T01:00:00+0200");  // 23:00 UTC
  EXPECT_EQ(unit.state, "RUN");
  EXPECT_EQ(unit.allocation,
            R"({"cpus":2,"gpus":0,"mem":2147483648,"nodes":1,"req_mem":2147483648,)"
            R"("time_limit":7200})");
  const auto calls = runner_.calls();
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0].path, directory_.path() / "bjobs");
  EXPECT_THAT(calls[0].arguments,
              ElementsAre("-u", "all", "-json", "-o", std::string(lsf::kBjobsFields)));
  EXPECT_THAT(calls[1].arguments, ElementsAre("-u", "all", "-l", "-gpu", "-UF", "-C",
                                              "2026/03/31/23:29,2026/04/01/00:33"));
  EXPECT_EQ(calls[0].environment.at("TZ"), "UTC");
  EXPECT_EQ(calls[0].environment.at("LSB_DISPLAY_YEAR"), "Y");
  EXPECT_EQ(calls[0].environment.at("LSF_ENVDIR"), "/opt/lsf/conf");
  EXPECT_FALSE(calls[0].as_root);
}

TEST_F(Lsf, ReportsAJobThatEndsWhileItAsks) {
  auto manager = create().value();
  lsf_.jobs = {{.id = "6", .start = 0, .end = kHour / 2 + kMinute / 2}};
  auto units = fetch(*manager, 0, kHour / 2).value();  // it ended half a minute ago
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].state, "RUN");
  EXPECT_EQ(units[0].ended_at_ts, 0);
  units = fetch(*manager, kHour / 2, kHour).value();
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].state, "DONE");
  EXPECT_EQ(units[0].total_time_seconds.at("walltime"), 30);
}

TEST_F(Lsf, RemembersWhatOnlyBjobsPrints) {
  auto manager = create().value();
  lsf_.jobs = {{.id = "6", .name = "x", .start = 0, .end = kHour}};
  fetch(*manager, 0, kHour / 2).value();
  const auto units = fetch(*manager, kHour / 2, 2 * kHour).value();
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].ended_at_ts, kStart + kHour);
  EXPECT_EQ(units[0].groupname, "physics");
  EXPECT_THAT(units[0].allocation, HasSubstr(R"("mem":2147483648)"));  // the limit
  EXPECT_THAT(units[0].allocation, HasSubstr(R"("req_mem":2147483648,"time_limit":7200)"));
}

TEST_F(Lsf, NeverBelievesANameThatLooksLikeFields) {
  auto manager = create().value();
  const std::string name = "x>, User <root>, Project <secret";
  lsf_.jobs = {{.id = "6", .name = name, .start = 0, .end = kMinute}};
  auto units = fetch(*manager, 0, kHour).value();
  ASSERT_THAT(units, SizeIs(1));  // it is counted, but has no owner
  EXPECT_EQ(units[0].username, "");
  EXPECT_EQ(units[0].project, "");
  EXPECT_THAT(manager->fetch_users_projects({}, {})->users, IsEmpty());
  lsf_.remembers = true;  // bjobs -a says whose it is
  lsf_.jobs = {{.id = "7", .name = name, .start = kHour, .end = kHour + kMinute}};
  units = fetch(*manager, kHour, 2 * kHour).value();
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].username, "ada");
  EXPECT_EQ(units[0].project, "fluids");
  EXPECT_EQ(units[0].name, name);
}

TEST_F(Lsf, BooksNothingOnOthersForANameThatHoldsWholeRecords) {
  auto manager = create().value();
  const std::string forged =
      "y\nJob <99>, User <victim>, Project <secret>, Status <DONE>, Queue <q>, Command <x>\n"
      "Wed Apr  1 00:00:01 2026: Submitted from host <l>, CWD </>;\n"
      "Wed Apr  1 00:00:02 2026: Dispatched 1 Task(s) on Host(s) <n1>;\n"
      "Wed Apr  1 00:00:30 2026: Completed <done>.\nJob <98>, Job Name <z";
  lsf_.jobs = {{.id = "6", .name = forged, .start = 0, .end = kMinute},
               {.id = "7", .user = "bob", .start = 0, .end = kMinute}};
  EXPECT_THAT(fetch(*manager, 0, kHour).value(), IsEmpty());  // bjobs knows none of them
  lsf_.remembers = true;
  const auto units = fetch(*manager, 0, kHour).value();
  ASSERT_THAT(units, SizeIs(1));  // the record of job 6 is lost
  EXPECT_EQ(units[0].uuid, "7");
  EXPECT_EQ(units[0].username, "bob");
}

TEST_F(Lsf, AsksByIdForAJobThatIsMissing) {
  auto manager = create().value();
  lsf_.jobs = {{.id = "6[1]", .start = 0, .end = 9 * kHour}};
  fetch(*manager, 0, kHour).value();
  lsf_.jobs = {};  // mbatchd has not logged it yet
  EXPECT_THAT(fetch(*manager, kHour, 2 * kHour).value(), IsEmpty());
  lsf_.jobs = {{.id = "6[1]", .start = 0, .end = kHour}};
  const auto units = fetch(*manager, 2 * kHour, 3 * kHour).value();
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].ended_at_ts, kStart + kHour);
  EXPECT_THAT(runner_.calls().back().arguments,
              ElementsAre("-u", "all", "-l", "-gpu", "-UF", "6[1]"));
}

TEST_F(Lsf, TakesOutputOfACommandThatFailedForIncomplete) {
  auto manager = create().value();
  runner_.reply("bjobs", {.exit_status = 255, .error_text = "LSF is down. Please wait ...\n"});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().message,
            "output of bjobs: bjobs: exit status 255: LSF is down. Please wait ...");
  const std::string none = R"({"COMMAND":"bjobs","JOBS":0,"RECORDS":[]})";
  runner_.reply("bjobs", {.output = none,
                          .error_text = "Failed in an LSF library call: Communication time out\n"});
  EXPECT_FALSE(fetch(*manager, 0, kHour));
  runner_.reply("bjobs", {.output = "{\"RECORDS\":[{\"JOBID\":\"1\""});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().message,
            "output of bjobs: the JSON document is incomplete");
  lsf_.install(runner_);
  runner_.refuse("bacct", Error{ErrorCode::kTimeout, "no end after 300 s"});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().code, ErrorCode::kTimeout);
  lsf_.install(runner_);
  EXPECT_TRUE(fetch(*manager, 0, kHour));
}

TEST_F(Lsf, ReadsTimesOfAnotherZoneWhenTheCommandsPrintThem) {
  config_.cli_environment = {{"TZ", "Europe/Paris"}};
  auto manager = create("time_zone: Europe/Paris").value();
  lsf_.jobs = {{.id = "6", .start = 0, .end = kMinute}};
  const auto units = fetch(*manager, 0, kHour).value();
  ASSERT_THAT(units, SizeIs(1));
  EXPECT_EQ(units[0].started_at_ts, kStart);
  EXPECT_EQ(units[0].ended_at_ts, kStart + kMinute);
  EXPECT_THAT(runner_.calls().back().arguments.back(), HasSubstr("2026/04/01/01:29,"));
}

TEST_F(Lsf, RefusesAConfigurationThatCannotWork) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"command_timeout: 0s", "c.yml:1: command_timeout: must be more than 0s"},
      {"members: everybody", "c.yml:1: members: expected jobs or none"},
      {"time_zone: Mars", "c.yml:1: time_zone: unknown time zone Mars"},
      {"timeout: 1s", "c.yml:1: timeout: unknown key"}};
  for (const auto& [extra, message] : wrong) {
    const auto manager = create(extra);
    ASSERT_FALSE(manager) << extra;
    EXPECT_THAT(manager.error().message, HasSubstr(message));
  }
  config_.extra = {};
  config_.cli_path = "/nowhere";
  const auto manager =
      create_manager(lsf_manager(), config_, {.clock = &clock_, .runner = &runner_});
  ASSERT_FALSE(manager);
  EXPECT_THAT(manager.error().message, HasSubstr("/nowhere"));
}

TEST_F(Lsf, CountsEachOfManyJobsOnce) {
  auto manager = create().value();
  lsf_.jobs = many_jobs(
      [](int i) { return i % 3 == 0 ? fmt::format("{}[{}]", i, i % 7 + 1) : std::to_string(i); });
  expect_each_is_counted_once(lsf_.jobs, [&](std::int64_t from, std::int64_t until) {
    return fetch(*manager, from, until);
  });
}

}  // namespace
}  // namespace ceems::ingest
