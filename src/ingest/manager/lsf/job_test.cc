#include "ingest/manager/lsf/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::ingest::lsf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr double kGibi = 1024.0 * 1024 * 1024;
const Times kTimes{.zone = {}, .now_ms = 1'775'000'000'000};  // 2026-03-31T23:33:20Z

constexpr std::string_view kRunning = R"json({
  "JOBID":"321", "JOBINDEX":"2", "USER":"ada", "USER_GROUP":"physics", "QUEUE":"normal",
  "JOB_NAME":"sweep[1-9]", "PROJ_NAME":"fluids", "STAT":"RUN", "ALLOC_SLOT":"n1.x:n1.x:2*n2.x",
  "NALLOC_SLOT":"4", "SUBMIT_TIME":"Mar 30 18:10:00 2026", "START_TIME":"Mar 30 18:10:55 2026",
  "FINISH_TIME":"Mar 31 22:27:01 2026 L", "RUN_TIME":"34 second(s)",
  "EFFECTIVE_RESREQ":"select[type == local] order[r15s:pg] rusage[mem=2048.00] ", "GPU_NUM":"",
  "GPU_ALLOC":"n1.x:0,1,0,1;n2.x:0", "MEM":"9 Mbytes", "MEMLIMIT":"", "MEM_EFFICIENCY":"0.00%",
  "RUNTIMELIMIT":"1680.0", "EXEC_CWD":"\/home\/ada"})json";

BatchJob running(std::string_view json, bool holds = true) {
  const auto found = parse_running(json, kTimes);
  EXPECT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)->holds, holds);
  return (*found)->job;
}

/// kRunning with another value of this field.
std::string lsf_with(std::string_view field, std::string_view value) {
  std::string text(kRunning);
  const std::string key = '"' + std::string(field) + "\":\"";
  const std::size_t at = text.find(key) + key.size();
  return text.replace(at, text.find('"', at) - at, value);
}

TEST(LsfRunning, HasAllFields) {
  const BatchJob job = running(kRunning);
  EXPECT_EQ(job.id, "321[2]");
  EXPECT_EQ(job.user, "ada");
  EXPECT_EQ(job.group, "physics");
  EXPECT_EQ(job.project, "fluids");
  EXPECT_EQ(job.name, "sweep[1-9]");
  EXPECT_EQ(job.state, "RUN");
  EXPECT_EQ(TimeZone().local(job.submit_ms), "2026-03-30T18:10:00");
  EXPECT_EQ(TimeZone().local(job.start_ms), "2026-03-30T18:10:55");
  EXPECT_EQ(job.end_ms, 0);
  EXPECT_EQ(job.cpus, 4);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.gpus, 3);  // each once
  EXPECT_EQ(job.memory_bytes, 2 * 2 * kGibi);
  EXPECT_EQ(job.requested_memory_bytes, 2 * 2 * kGibi);
  EXPECT_EQ(job.time_limit_seconds, 28 * 3600);
  EXPECT_THAT(job.hosts, ElementsAre("n1.x", "n2.x"));
  EXPECT_THAT(job.tags,
              UnorderedElementsAre(
                  Pair("exit_status", ""), Pair("queue", "normal"), Pair("workdir", "/home/ada"),
                  Pair("res_req", "select[type == local] order[r15s:pg] rusage[mem=2048.00]")));
}

TEST(LsfRunning, HoldsResourcesOnceItHasStarted) {
  for (const char* const state : {"RUN", "USUSP", "SSUSP", "UNKWN", "ZOMBI"}) {
    running(lsf_with("STAT", state));
  }
  for (const char* const state : {"PEND", "PSUSP", "DONE", "EXIT", "WAIT", ""}) {
    running(lsf_with("STAT", state), false);
  }
}

TEST(LsfRunning, HasTheMemoryThatWasAskedForOrElseWhatItUses) {
  EXPECT_EQ(running(lsf_with("MEMLIMIT", "4 G")).memory_bytes, 2 * 4 * kGibi);
  EXPECT_EQ(running(lsf_with("MEMLIMIT", "1048576")).memory_bytes, 2 * kGibi);  // KB
  EXPECT_EQ(running(lsf_with("MEMLIMIT", "4 G")).requested_memory_bytes, 2 * 4 * kGibi);
  std::string text = lsf_with("EFFECTIVE_RESREQ", "select[type == local]");
  EXPECT_EQ(running(text).memory_bytes, 9.0 * 1024 * 1024);  // an efficiency of 0 says nothing
  EXPECT_EQ(running(text).requested_memory_bytes, 0);
  text.replace(text.find("0.00%"), 5, "25.0%");
  EXPECT_EQ(running(text).memory_bytes, 36.0 * 1024 * 1024);
}

TEST(LsfRunning, HasItsTimeLimit) {
  for (const auto& [text, seconds] :
       std::vector<std::pair<const char*, std::int64_t>>{{"60.0", 3600},
                                                         {"3.0/hostA", 180},
                                                         {"90", 5400},
                                                         {"00:10:00", 600},
                                                         {"48:30:05", 174605},
                                                         {"", 0},
                                                         {"-", 0},
                                                         {"-1", 0},
                                                         {"0.0", 0},
                                                         {"x:1:2", 0},
                                                         {"1:2", 0},
                                                         {"1:2:3:4", 0},
                                                         {"-1:00:00", 0},
                                                         {"nan", 0},
                                                         {"1e300", 0},
                                                         {"9223372036854775807:00:00", 0}}) {
    EXPECT_EQ(running(lsf_with("RUNTIMELIMIT", text)).time_limit_seconds, seconds) << text;
  }
}

TEST(LsfRunning, RefusesWhatIsNoJob) {
  EXPECT_FALSE(
      parse_running(R"({"JOBID":"3","ERROR":"Job <3> is not found"})", kTimes)->has_value());
  EXPECT_EQ(parse_running(lsf_with("START_TIME", "yesterday"), kTimes).error().message,
            "job 321[2]: invalid START_TIME 'yesterday'");
  for (const char* const text : {"", "5", "{", "{}", R"({"JOBID":"1|2"})", R"({"JOBID":"-1"})"}) {
    EXPECT_FALSE(parse_running(text, kTimes)) << text;
  }
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

const std::string kHeader =
    "Job <6[1]>, Job Name <sweep[1-9]>, User <ada>, Project <fluids>, User Group <physics>, Status "
    "<EXIT>, Queue <normal>, Command <#!/bin/sh;#BSUB -J \"sweep[1-9]\";echo a, b>, Share group "
    "charged </ada>\n";
const std::string kSubmitted =
    "Mon Mar 30 12:00:00 2026: Submitted from host <login1>, CWD <$HOME/run>, Output File <o>;\n";
const std::string kDispatched =
    "Mon Mar 30 12:00:05 2026: [1] dispatched 3 Task(s) on Host(s) <n1> <n1> <n2>, Allocated 4 "
    "Slot(s) on Host(s) <n1> <n1> <n2> <n2>, Effective RES_REQ <select[(type == any ) && "
    "(ngpus>0)] order[r15s:pg] rusage[mem=1024.00] >;\n";
const std::string kCompleted =
    "Mon Mar 30 13:00:05 2026: Completed <exit>; TERM_OWNER: job killed by owner.\n";
const std::string kGpus =
    "\n GPU_ALLOCATION:\n"
    " HOST             TASK GPU_ID  GI_PLACEMENT/SIZE    CI_PLACEMENT/SIZE    MODEL        MTOTAL\n"
    " n1               0    0       -                    -                    A100         40G\n"
    "                  1    0       -                    -                    A100         40G\n"
    "                  2    1       4/4                  0/4                  A100         40G\n"
    " n2               3    0       -                    -                    A100         40G\n";
const std::string kAccounting =
    "\nAccounting information about this job:\n     Share group charged </ada>\n"
    "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n"
    "      0.22        5           3605     exit         0.0060    512M      0M\n";

FinishedJob finished(const std::string& text) {
  auto found = parse_finished(lines(text), kTimes);
  EXPECT_TRUE(found) << found.error().message;
  return found && found->has_value() ? std::move(**found) : FinishedJob{};
}

TEST(LsfFinished, HasAllFields) {
  const FinishedJob found =
      finished(kHeader + kSubmitted + kDispatched + kCompleted + kGpus + kAccounting);
  const BatchJob& job = found.job;
  EXPECT_TRUE(found.clear);
  EXPECT_EQ(job.id, "6[1]");
  EXPECT_EQ(job.name, "sweep[1-9]");
  EXPECT_EQ(job.user, "ada");
  EXPECT_EQ(job.project, "fluids");
  EXPECT_EQ(job.group, "physics");
  EXPECT_EQ(job.state, "EXIT");
  EXPECT_EQ(TimeZone().local(job.submit_ms), "2026-03-30T12:00:00");
  EXPECT_EQ(TimeZone().local(job.start_ms), "2026-03-30T12:00:05");
  EXPECT_EQ(TimeZone().local(job.end_ms), "2026-03-30T13:00:05");
  EXPECT_EQ(job.cpus, 4);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.gpus, 3);
  EXPECT_EQ(job.memory_bytes, 2 * kGibi);
  EXPECT_EQ(job.requested_memory_bytes, 2 * kGibi);
  EXPECT_EQ(job.time_limit_seconds, 0);  // bacct does not print it
  EXPECT_THAT(job.hosts, ElementsAre("n1", "n2"));
  EXPECT_THAT(job.tags,
              UnorderedElementsAre(Pair("queue", "normal"), Pair("exit_status", "exit"),
                                   Pair("exit_reason", "TERM_OWNER"), Pair("workdir", "$HOME/run"),
                                   Pair("res_req",
                                        "select[(type == any ) && (ngpus>0)] order[r15s:pg] "
                                        "rusage[mem=1024.00]")));
}

TEST(LsfFinished, IsAlsoReadInOlderForms) {
  const FinishedJob found = finished(
      "Job <7>, User <bob>, Project <default>, Mail <b@x>, Status <DONE>, Queue <q>, Command "
      "<sleep 60>\n"
      "Mon Mar 30 12:00:00: Submitted from host <l>, CWD <$HOME>;\n"
      "Mon Mar 30 12:00:10: Dispatched to <n1>;\n"
      "Mon Mar 30 12:10:00: Completed <done>.\n\nAccounting information about this job:\n"
      "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n"
      "      0.08       50            117     done         0.0007     5M    222M\n"
      "     CPU_PEAK   MEM_EFFICIENCY\n      1.00       50.00%\n");
  EXPECT_EQ(found.job.user, "bob");
  EXPECT_EQ(found.job.name, "sleep 60");
  EXPECT_EQ(found.job.state, "DONE");
  EXPECT_EQ(found.job.cpus, 1);
  EXPECT_EQ(found.job.end_ms - found.job.start_ms, 590'000);
  EXPECT_EQ(TimeZone().local(found.job.start_ms), "2026-03-30T12:00:10");
  EXPECT_EQ(found.job.memory_bytes, 10.0 * 1024 * 1024);  // used, divided by the efficiency
  EXPECT_EQ(found.job.requested_memory_bytes, 0);
}

TEST(LsfFinished, IsLeftOutIfItNeverRan) {
  const auto found = parse_finished(lines(kHeader + kSubmitted + kCompleted), kTimes);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->has_value());
}

TEST(LsfFinished, IsNotOwnedByWhomItsNameClaims) {
  std::string header = kHeader;
  const std::string name = "sweep[1-9]";
  header.replace(header.find(name), name.size(), "x>, User <root>, Project <secret");
  FinishedJob found = finished(header + kSubmitted + kDispatched + kCompleted);
  EXPECT_FALSE(found.clear);
  EXPECT_EQ(found.job.user, "");
  EXPECT_EQ(found.job.project, "");
  // A line end in the name, which hides the rest of the header.
  header = kHeader;
  header.replace(header.find(name), name.size(),
                 "x>, User <root>, Project <secret>, Status <DONE>, Queue <q>, Command <c>\n");
  found = finished(header + kSubmitted + kDispatched + kCompleted);
  EXPECT_FALSE(found.clear);
  // The same text in the command of a job without a name does no harm.
  found = finished(
      "Job <7>, User <bob>, Project <p>, Status <DONE>, Queue <q>, Command <echo >, User <root>, "
      "Project <secret>>\n" +
      kSubmitted + kDispatched + kCompleted);
  EXPECT_TRUE(found.clear);
  EXPECT_EQ(found.job.user, "bob");
  EXPECT_EQ(found.job.project, "p");
}

TEST(LsfFinished, IsRefusedWithOneClearLine) {
  const auto error = [](const std::string& text) {
    const auto found = parse_finished(lines(text), kTimes);
    return found ? std::string() : found.error().message;
  };
  EXPECT_EQ(error("Job <x>, User <a>\n"), "expected 'Job <ID>, ...', got 'Job <x>, User <a>'");
  EXPECT_THAT(error("Job <6>, Owner <a>\n"), HasSubstr("job 6: expected ', User <'"));
  EXPECT_EQ(error(kHeader + kSubmitted + kDispatched),
            "job 6[1]: its record has no line 'TIME: Completed <...>'");
  EXPECT_NE(error(""), "");
}

TEST(BacctReader, SplitsAtLinesOfDashes) {
  std::vector<std::string> ids;
  BacctReader reader(kTimes, [&ids](const FinishedJob& job) { ids.push_back(job.job.id); });
  const std::string rule(78, '-');
  const std::string other =
      "Job <8>, User <b>, Project <p>, Status <DONE>, Queue <q>, Command "
      "<echo ------------------------------------>\n";
  const std::string text =
      "\nAccounting information about jobs that are: \n  - submitted by all users.\n" + rule +
      "\n\n" + kHeader + kSubmitted + kDispatched + kCompleted + kGpus + kAccounting + rule +
      "\n\n" + other + kSubmitted + kDispatched + kCompleted + kAccounting + rule +
      "\n\nJob <9>, what\n" + rule +
      "\n\nSUMMARY:      ( time unit: second ) \n Total number of done jobs:       1\n";
  for (const std::string& line : lines(text)) {
    reader.add_line(line);
  }
  reader.finish();
  EXPECT_THAT(ids, ElementsAre("6[1]", "8"));
  EXPECT_EQ(reader.malformed(), 1U);
  EXPECT_THAT(reader.first_problem(), HasSubstr("job 9"));
}

}  // namespace
}  // namespace ceems::ingest::lsf
