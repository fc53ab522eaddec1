#include "ingest/manager/openpbs/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::ingest::openpbs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr double kPbsGibi = 1024.0 * 1024 * 1024;

constexpr std::string_view kPbsJob = R"json({
  "Job_Name":"train", "Job_Owner":"ada@login1", "job_state":"F", "queue":"gpu", "server":"srv",
  "resources_used":{"cpupercent":98,"cput":"00:10:00","mem":"348kb","ncpus":6,"walltime":"00:05:00"},
  "ctime":"Wed Apr  1 10:00:00 2026", "mtime":"Wed Apr  1 10:20:00 2026",
  "qtime":"Wed Apr  1 10:00:01 2026", "stime":"Wed Apr  1 10:10:00 2026",
  "exec_host":"n1/0*4+n2/1*2",
  "exec_vnode":"(n1:ncpus=4:mem=4gb:ngpus=1)+(n2[0]:ncpus=1+n2[1]:ncpus=1:mem=1048576kb:ngpus=1)",
  "Resource_List":{"mem":"9gb","ncpus":9,"ngpus":9,"nodect":9,"select":"1:ncpus=4+1:ncpus=2"},
  "Variable_List":{"PBS_O_WORKDIR":"\/home\/ada","ODD":"}{\"\u0000"},
  "euser":"ada", "egroup":"physics", "Account_Name":"acct", "project":"_pbs_project_default",
  "Exit_status":271, "obittime":"Wed Apr  1 10:15:01 2026", "history_timestamp":1775038502,
  "run_count":1})json";

Result<std::optional<BatchJob>> parse(std::string_view json,
                                      std::string_view id = "12[3].srv",
                                      JobRules rules = {}) {
  rules.now_ms = 1'775'100'000'000;
  return parse_job(id, json, rules);
}
BatchJob pbs_job(std::string_view json, std::string_view id = "12[3].srv", JobRules rules = {}) {
  auto found = parse(json, id, std::move(rules));
  EXPECT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->has_value());
  return std::move(**found);
}
/// kPbsJob with this text instead of another.
std::string with(std::string_view old, std::string_view text) {
  std::string result(kPbsJob);
  const std::size_t at = result.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return result.replace(at, old.size(), text);
}

TEST(OpenpbsJob, HasAllFields) {
  const BatchJob found = pbs_job(kPbsJob);
  EXPECT_EQ(found.id, "12[3].srv");
  EXPECT_EQ(found.name, "train");
  EXPECT_EQ(found.user, "ada");
  EXPECT_EQ(found.group, "physics");
  EXPECT_EQ(found.project, "acct");
  EXPECT_EQ(found.state, "FAILED");
  EXPECT_EQ(TimeZone().local(found.submit_ms), "2026-04-01T10:00:00");
  EXPECT_EQ(TimeZone().local(found.start_ms), "2026-04-01T10:10:00");
  EXPECT_EQ(TimeZone().local(found.end_ms), "2026-04-01T10:15:01");
  EXPECT_EQ(found.nodes, 2);
  EXPECT_EQ(found.cpus, 6);
  EXPECT_EQ(found.gpus, 2);
  EXPECT_EQ(found.memory_bytes, 5 * kPbsGibi);
  EXPECT_THAT(found.hosts, ElementsAre("n1", "n2"));
  EXPECT_THAT(found.tags, UnorderedElementsAre(
                              Pair("exit_status", "271"), Pair("queue", "gpu"),
                              Pair("select", "1:ncpus=4+1:ncpus=2"), Pair("used_cput", "00:10:00"),
                              Pair("used_mem", "348kb"), Pair("used_walltime", "00:05:00"),
                              Pair("workdir", "/home/ada")));
}

TEST(OpenpbsJob, MayHaveALoneSurrogateInItsEnvironment) {
  const BatchJob found = pbs_job(with(R"("PBS_O_WORKDIR":)", R"("PS1":"\ud800","PBS_O_WORKDIR":)"));
  EXPECT_EQ(found.cpus, 6);
  EXPECT_THAT(found.tags, ::testing::Contains(Pair("workdir", "/home/ada")));
}

TEST(OpenpbsJob, HasWhatWasAskedFor) {
  EXPECT_EQ(pbs_job(kPbsJob).time_limit_seconds, 0);
  EXPECT_EQ(pbs_job(kPbsJob).requested_cpus, 9);
  EXPECT_EQ(pbs_job(kPbsJob).requested_memory_bytes, 9 * kPbsGibi);
  const auto limit = [](const std::string& text) {
    return pbs_job(with(R"("nodect":9)", R"("nodect":9,"walltime":")" + text + '"'))
        .time_limit_seconds;
  };
  EXPECT_EQ(limit("12:30:05"), 45'005);
  EXPECT_EQ(limit("120:00:00"), 432'000);
  EXPECT_EQ(limit("900"), 900);
  for (const char* bad : {"", "x", "1:x", "-5", "1:2:3:4", "99999999999999"}) {
    EXPECT_EQ(limit(bad), 0) << bad;
  }
}

TEST(OpenpbsJob, EndsWhenTheServerWasToldOrElseWhenItBecameHistory) {
  const std::string obit = R"("obittime":"Wed Apr  1 10:15:01 2026", )";
  std::string text = with(obit, "");
  EXPECT_EQ(pbs_job(text).end_ms, 1'775'038'502'000);
  text.replace(text.find("1775038502"), 10, "0");
  EXPECT_EQ(TimeZone().local(pbs_job(text).end_ms), "2026-04-01T10:20:00");  // mtime
}

TEST(OpenpbsJob, IsInTheZoneThatTheCommandsPrint) {
  JobRules rules;
  rules.zone = TimeZone::find("Europe/Paris").value();
  EXPECT_EQ(TimeZone().local(pbs_job(kPbsJob, "1.srv", rules).start_ms), "2026-04-01T08:10:00");
}

TEST(OpenpbsJob, TakesItsProjectFromWhereItIsTold) {
  const std::string text = with("_pbs_project_default", "proj");
  EXPECT_EQ(pbs_job(text).project, "proj");
  JobRules rules;
  rules.projects = {ProjectSource::kGroup};
  EXPECT_EQ(pbs_job(text, "1.srv", rules).project, "physics");
  rules.projects = {ProjectSource::kProject};
  EXPECT_EQ(pbs_job(kPbsJob, "1.srv", rules).project, "");
}

TEST(OpenpbsJob, HasAStateInWords) {
  const auto state = [](std::string_view letter) {
    return pbs_job(with(R"("job_state":"F")", R"("job_state":")" + std::string(letter) + '"'))
        .state;
  };
  EXPECT_EQ(state("R"), "RUNNING");
  EXPECT_EQ(state("S"), "SUSPENDED");
  EXPECT_EQ(state("U"), "SUSPENDED");
  EXPECT_EQ(state("E"), "EXITING");
  EXPECT_EQ(state("X"), "FAILED");
  EXPECT_EQ(pbs_job(with("271", "0")).state, "FINISHED");
  EXPECT_EQ(pbs_job(with(R"("job_state":"F")", R"("job_state":"R")")).end_ms, 0);
}

TEST(OpenpbsJob, UsesTheRequestWhereTheAllocationIsNotKnown) {
  std::string text = with(R"("exec_host":"n1/0*4+n2/1*2")", R"("a":"")");
  text.replace(text.find("exec_vnode"), 10, "exec_other");
  const BatchJob found = pbs_job(text);
  EXPECT_EQ(found.nodes, 9);
  EXPECT_EQ(found.cpus, 9);
  EXPECT_EQ(found.gpus, 9);
  EXPECT_EQ(found.memory_bytes, 9 * kPbsGibi);
  EXPECT_EQ(pbs_job(with(R"("euser":"ada", )", "")).user, "ada");  // Job_Owner
}

TEST(OpenpbsJob, IsLeftOutIfItHoldsNothing) {
  EXPECT_FALSE(parse(kPbsJob, "12[].srv")->has_value());  // the whole array
  EXPECT_FALSE(parse(with("stime", "xtime"))->has_value());
  for (const char* const letter : {"Q", "H", "W", "T"}) {
    EXPECT_FALSE(parse(with(R"("job_state":"F")", R"("job_state":")" + std::string(letter) + '"'))
                     ->has_value())
        << letter;
  }
}

TEST(OpenpbsJob, IsRefusedWithOneClearLine) {
  const auto error = [](std::string_view json, std::string_view id = "1.srv") {
    const auto found = parse(json, id);
    return found ? std::string() : found.error().message;
  };
  EXPECT_EQ(error(kPbsJob, "1|2.srv"), "invalid job id '1|2.srv'");
  EXPECT_EQ(error(kPbsJob, ""), "invalid job id ''");
  EXPECT_EQ(error("5"), "job 1.srv: expected an object");
  EXPECT_THAT(error(R"({"job_state":"R",})"), HasSubstr("job 1.srv: "));
  EXPECT_EQ(error("{}"), "job 1.srv: invalid job_state ''");
  EXPECT_EQ(error(R"({"job_state":"R","stime":"soon"})"), "job 1.srv: invalid stime 'soon'");
  EXPECT_EQ(error(R"({"job_state":"F","stime":1775000000})"),
            "job 1.srv: it is finished, but has no time of its end");
}

TEST(PbsEnvironment, IsLeftOutOfAJobThatItMakesInvalid) {
  const std::string head = R"({"Job_Owner":"ada@l","job_state":"F")";
  const std::string tail = R"("Resource_List":{"ncpus":4},"Exit_status":0})";
  for (const std::string env :
       {R"("foo":005)", R"("A":"x\,y")", R"("A":"\[\e[0m\]")", R"("V":1.2.3)", R"("A":-)",
        R"("F":"() { echo "hi" }")", R"("A":"}","B":"{")", R"("A":"C:\")",
        R"("A":"x"},"B":{"C":"y"z")"}) {
    EXPECT_EQ(without_environment(head + R"(,"Variable_List":{)" + env + "}," + tail),
              head + "," + tail)
        << env;
  }
  // A job cannot write attributes for itself.
  for (const std::string forged :
       {R"("job_state":"Q")", R"("euser":"eve")", R"("Exit_status":1)", R"("Job_Owner":"eve")"}) {
    const std::string text = without_environment(head + R"(,"Variable_List":{"D":005,"A":"x"},)" +
                                                 forged + R"(,"B":{"C":"y"},)" + tail);
    EXPECT_EQ(text.find(forged), std::string::npos) << forged;
    EXPECT_TRUE(text.ends_with("," + tail)) << text;
  }
  EXPECT_EQ(without_environment(R"({"job_state":"R"})"), "");
  EXPECT_EQ(without_environment(R"({"a":01,"Variable_List":{}})"), "");
}

}  // namespace
}  // namespace ceems::ingest::openpbs
