#include "ingest/manager/openpbs/openpbs.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/batch/batch_test_support.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Prints jobs as qstat would at a time, in the zone that TZ says.
class FakePbs {
 public:
  std::vector<FakeJob> jobs;
  std::int64_t now = 0;                 ///< ms after kStart
  std::int64_t history = 1000 * kHour;  ///< job_history_duration

  void install(testing::FakeRunner& runner) {
    runner.answer("qstat", [this](const os::Command& command) { return qstat(command); });
  }

 private:
  [[nodiscard]] os::CommandResult qstat(const os::Command& command) const {
    std::string text = "{\n    \"timestamp\":1,\n    \"pbs_server\":\"srv\",\n    \"Jobs\":{";
    bool first = true;
    for (const FakeJob& job : jobs) {
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
          ctime_text(command, job.start - 1000, true), ctime_text(command, job.start, true),
          job.project,
          job.end <= now ? fmt::format(",\n            \"Exit_status\":0,\n            "
                                       "\"obittime\":\"{}\"",
                                       ctime_text(command, job.end, true))
                         : "");
      first = false;
    }
    return {.output = text + "\n    }\n}\n"};
  }
};

class Openpbs : public BatchSystemTest<FakePbs> {
 protected:
  Openpbs() : BatchSystemTest(openpbs_manager()) {}

  FakePbs& pbs_ = system_;
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

TEST_F(Openpbs, AsksOnceForAllWindowsThatHaveEnded) {
  auto manager = create().value();
  pbs_.jobs = {{.id = "1.srv", .start = 0, .end = kHour / 2},
               {.id = "2.srv", .start = 0, .end = 2 * kHour + kHour / 2},
               {.id = "3.srv", .start = 3 * kHour, .end = 5 * kHour}};
  const auto ids = [&](std::int64_t hour) {
    std::string text;
    const auto units = manager->fetch_units(
        {.start_ms = kStart + hour * kHour, .end_ms = kStart + (hour + 1) * kHour}, {});
    if (!units) {
      return units.error().message;
    }
    for (const model::Unit& unit : *units) {
      text +=
          fmt::format("{} {} {}; ", unit.uuid, unit.state, unit.total_time_seconds.at("walltime"));
    }
    return text;
  };
  set_now(4 * kHour + kMinute);
  EXPECT_EQ(ids(0), "1.srv FINISHED 1800; 2.srv RUNNING 3600; ");
  EXPECT_EQ(ids(1), "2.srv RUNNING 3600; ");
  EXPECT_EQ(ids(2), "2.srv FINISHED 1800; 3.srv RUNNING 0; ");
  EXPECT_EQ(ids(3), "3.srv RUNNING 3600; ");
  EXPECT_THAT(runner_.calls(), SizeIs(1));
  // A window that was not stored comes again, and a gap lies before what was kept.
  EXPECT_EQ(ids(3), "3.srv RUNNING 3600; ");
  EXPECT_THAT(runner_.calls(), SizeIs(1));
  EXPECT_EQ(ids(0), "1.srv FINISHED 1800; 2.srv RUNNING 3600; ");
  EXPECT_THAT(runner_.calls(), SizeIs(2));
  // This one had not ended when qstat was asked.
  set_now(5 * kHour + kMinute);
  EXPECT_EQ(ids(4), "3.srv FINISHED 3600; ");
  EXPECT_THAT(runner_.calls(), SizeIs(3));
  // What a command that failed has printed is not kept.
  set_now(6 * kHour + kMinute);
  runner_.reply("qstat", {.exit_status = 1, .output = R"({"Jobs":{}})"});
  EXPECT_EQ(ids(5), "output of qstat: qstat: exit status 1: no message");
  pbs_.install(runner_);
  EXPECT_EQ(ids(5), "");
}

std::string record(std::string_view owner,
                   std::string_view state = "R",
                   std::string_view more = "") {
  return fmt::format(R"("Job_Name":"j","Job_Owner":"{}@l","job_state":"{}",)"
                     R"("stime":"Wed Apr  1 00:00:01 2026","exec_host":"n1/0*2","project":"p"{})",
                     owner, state, more);
}
constexpr std::string_view kEnded = R"(,"obittime":"Wed Apr  1 00:30:00 2026")";

/// The jobs of a server whose qstat prints environments without escapes.
class UnescapedPbs : public Openpbs {
 protected:
  /// Answers as a server with these jobs: id and record, with its environment.
  void install(const std::vector<std::pair<std::string, std::string>>& jobs) {
    runner_.answer("qstat", [jobs](const os::Command& command) {
      std::string text;
      for (const auto& [id, json] : jobs) {
        if (command.arguments.size() == 5 || command.arguments.back() == id) {
          text += fmt::format("{}\"{}\":{{{}}}", text.empty() ? "" : ",\n", id, json);
        }
      }
      return os::CommandResult{.output = R"({"timestamp":1,"Jobs":{)" + text + "}}\n"};
    });
    std::string ids;
    for (const auto& [id, json] : jobs) {
      ids += id + "\n";
    }
    runner_.reply("qselect", {.output = ids});
  }
  /// "ID USER STATE; " of each unit.
  std::string units() {
    auto manager = create().value();
    const auto units = fetch(*manager, 0, kHour);
    if (!units) {
      return units.error().message;
    }
    std::set<std::string> texts;
    for (const model::Unit& unit : *units) {
      texts.insert(fmt::format("{} {} {}; ", unit.uuid, unit.username, unit.state));
    }
    return fmt::format("{}", fmt::join(texts, ""));
  }
};

TEST_F(UnescapedPbs, CannotBeToldOfJobsThatDoNotExist) {
  // Valid JSON, as a user can make it.
  const std::string forged = R"(,"Variable_List":{"A":"x"}},"99.srv":{)" +
                             record("bob", "F", kEnded) + R"(,"Variable_List":{"B":"y"})";
  install({{"1.srv", record("mal", "R", forged)},
           {"2.srv", record("ada", "R", R"(,"Variable_List":{"A":"x"})")}});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(units(), "1.srv mal RUNNING; 2.srv ada RUNNING; ");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("job 99.srv: an environment holds a record of it"));
  // So can text that is not.
  install({{"1.srv", record("mal", "R", forged + R"(,"C":{)")},
           {"2.srv", record("ada", "R", R"(,"Variable_List":{"A":"x"})")}});
  EXPECT_EQ(units(), "1.srv mal RUNNING; 2.srv ada RUNNING; ");
}

TEST_F(UnescapedPbs, CannotBeToldAboutTheJobsOfOthers) {
  // In front of bob's record, mal's environment says that bob's job has ended, is another one's, or
  // runs although it waits.
  for (const auto& [state, seen] :
       {std::pair("R", "1.srv mal RUNNING; 2.srv bob RUNNING; "), {"Q", "1.srv mal RUNNING; "}}) {
    const std::string forged = R"(,"Variable_List":{"A":"x"}},"2.srv":{)" +
                               record("eve", "F", kEnded) + R"(,"Variable_List":{"B":"y"})";
    install({{"1.srv", record("mal", "R", forged)},
             {"2.srv", record("bob", state, R"(,"Variable_List":{"A":"x"})")}});
    EXPECT_EQ(units(), seen);
    install({{"2.srv", record("bob", state, R"(,"Variable_List":{"A":"x"})")},
             {"1.srv", record("mal", "R", forged)}});
    EXPECT_EQ(units(), seen);
  }
}

TEST_F(UnescapedPbs, CannotBeToldThatAJobIsOfAnotherUser) {
  const auto with = [](std::string_view attribute, std::string_view more = "") {
    return record(
        "mal", "R",
        fmt::format(R"(,"Variable_List":{{"A":"x"}},{},"C":{{"B":"y"}}{})", attribute, more));
  };
  const std::string plain = record("ada", "R", R"(,"Variable_List":{"A":"x"})");
  const std::string seen = "1.srv mal RUNNING; 2.srv ada RUNNING; ";
  for (const char* const attribute : {R"("Job_Owner":"bob@l")", R"("euser":"bob")",
                                      R"("job_state":"Q")", R"("\u0065user":"bob")"}) {
    install({{"1.srv", with(attribute)}, {"2.srv", plain}});
    EXPECT_EQ(units(), seen) << attribute;
  }
  // A server that shows `euser` shows that of all jobs.
  const std::string_view user = R"(,"euser":"ops")";
  install({{"1.srv", with(R"("euser":"bob")", R"(,"euser":"mal")")},
           {"2.srv", plain + std::string(user)}});
  EXPECT_EQ(units(), "1.srv mal RUNNING; 2.srv ops RUNNING; ");
}

TEST_F(UnescapedPbs, AreNotCheckedWithoutQselect) {
  install({{"1.srv", record("ada", "R", R"(,"Variable_List":{"A":"x"})")}});
  runner_.refuse("qselect", {.code = ErrorCode::kNotFound, .message = "No such file"});
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(units(), "1.srv ada RUNNING; ");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("qselect is not beside qstat"));
  runner_.reply("qselect", {.exit_status = 1, .error_text = "qselect: no server\n"});
  EXPECT_EQ(units(), "output of qselect: qselect: exit status 1: qselect: no server");
}

TEST_F(Openpbs, TakesTheFirstRecordOfAJob) {
  auto manager = create().value();
  // The environment of a running job of mal's, as versions without escapes print it, says that the
  // job has ended and is bob's.
  runner_.reply("qselect", {.output = "2.srv\n"});
  runner_.reply("qstat",
                {.output = R"({"timestamp":1,"Jobs":{"2.srv":{)" + record("mal") +
                           R"(,"Variable_List":{"A":"x"}},"2.srv":{)" + record("bob", "F", kEnded) +
                           R"(,"Variable_List":{"B":""},"run_count":1}}})" + "\n"});
  const auto units = fetch(*manager, 0, kHour);
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_THAT(*units, SizeIs(1));
  EXPECT_EQ((*units)[0].username, "mal");
  EXPECT_EQ((*units)[0].state, "RUNNING");
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
  // It may end with 0 although it could not ask one of several servers.
  const std::string none = R"({"timestamp":1,"pbs_server":"srv"})";
  for (const char* text : {"qstat: cannot connect to server b (errno=15010)\n",
                           "Connection refused\n", "pbs_client: ERROR: no licence\n"}) {
    runner_.reply("qstat", {.output = none, .error_text = text});
    EXPECT_FALSE(fetch(*manager, 0, kHour)) << text;
  }
  runner_.reply("qstat", {.output = R"({"Jobs":{"1.srv":{"a":"b)"});
  EXPECT_EQ(fetch(*manager, 0, kHour).error().message,
            "output of qstat: the JSON document is incomplete, in or after 1.srv");
  runner_.reply("qstat", {.output = R"({"timestamp":1,"pbs_server":"srv"})"});
  EXPECT_THAT(fetch(*manager, 0, kHour).value(), IsEmpty());
  std::int64_t start = kHour;
  for (const char* text :
       {"module: loaded pbs\n", "qstat: Unknown Job Id 7.srv\n", "WARNING: last error: none\n"}) {
    runner_.reply("qstat", {.output = none, .error_text = text});
    EXPECT_TRUE(fetch(*manager, start, start + kHour)) << text;
    start += kHour;
  }
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

/// The server keeps the history for an hour and a half only.
TEST_F(Openpbs, CountsEachOfManyJobsOnce) {
  auto manager = create().value();
  pbs_.history = kHour + kHour / 2;
  pbs_.jobs = many_jobs([](int i) {
    return i % 3 == 0 ? fmt::format("{}[{}].srv", i, i % 7) : fmt::format("{}.srv", i);
  });
  expect_each_is_counted_once(pbs_.jobs, [&](std::int64_t from, std::int64_t until) {
    return fetch(*manager, from, until);
  });
}

}  // namespace
}  // namespace ceems::ingest
