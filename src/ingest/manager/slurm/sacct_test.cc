#include "ingest/manager/slurm/sacct.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/time_text.h"
#include "ingest/manager/slurm/node_list.h"

namespace ceems::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TimeZone paris() {
  return TimeZone::find("Europe/Paris").value();
}

std::vector<std::string> data_lines(const std::string& name) {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/data/sacct/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

Result<std::vector<SlurmJob>> read_all(const std::vector<std::string>& lines,
                                       const std::string& delimiter = "|x|") {
  std::vector<SlurmJob> jobs;
  SacctReader reader(delimiter, MemoryRule::kExact,
                     [&jobs](const SlurmJob& job) { jobs.push_back(job); });
  for (const auto& line : lines) {
    reader.add_line(line);
  }
  if (auto done = reader.finish(); !done) {
    return fail(std::move(done).error());
  }
  return jobs;
}

Allocation tres(std::string_view text, MemoryRule rule = MemoryRule::kExact) {
  return parse_alloc_tres(text, rule);
}

/// A record of 19 fields with this delimiter.
std::string record(const std::string& id,
                   const std::string& name,
                   const std::string& dir,
                   const std::string& delimiter) {
  std::string text = id;
  for (const char* field : {"p", "q", "acct", "g", "1", "user", "2", "Unknown", "Unknown",
                            "Unknown", "00:00:01", "1", "0:0", "RUNNING", "cpu=1", "n1"}) {
    text += delimiter + field;
  }
  return text + delimiter + name + delimiter + dir;
}

SlurmJob job_of(std::optional<std::int64_t> start_ms, std::optional<std::int64_t> end_ms) {
  SlurmJob job;
  job.id = "1";
  job.start_ms = start_ms;
  job.end_ms = end_ms;
  return job;
}

TEST(TimeText, ReadsAndPrintsTimes) {
  EXPECT_EQ(parse_localz("1970-01-01T00:00:00+0000"), 0);
  EXPECT_EQ(parse_localz("2023-02-21T15:00:00+0100"), 1676988000000);
  EXPECT_EQ(parse_localz("2023-02-21T09:00:00-0500"), 1676988000000);
  for (const char* bad : {"", "Unknown", "None", "2023-02-30T00:00:00+0000", "2023-02-21T15:00:00",
                          "2023-02-21T15:00:00+01:00", "2023-02-21+0100", "2023-02-21T15:00+0100",
                          "2023-13-01T00:00:00+0000", "2023-02-21T24:00:00+0000"}) {
    EXPECT_EQ(parse_localz(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(complete_local("2023-02-21"), "2023-02-21T00:00:00");
  EXPECT_EQ(complete_local("2023-02-21T15:04"), "2023-02-21T15:04:00");
  EXPECT_EQ(complete_local("2023-02-21T15:04:05"), "2023-02-21T15:04:05");
  EXPECT_EQ(complete_local("yesterday"), std::nullopt);
  EXPECT_EQ(elapsed_text(3599), "00:59:59");
  EXPECT_EQ(elapsed_text(86400), "1-00:00:00");
  EXPECT_EQ(elapsed_text(90061), "1-01:01:01");
  EXPECT_EQ(elapsed_text(-5), "00:00:00");
}

TEST(AllocTres, ReadsMemoryWithFractionsAndUnits) {
  EXPECT_EQ(tres("mem=320.5G").memory_bytes, 344134254592);
  EXPECT_EQ(tres("mem=1.5T").memory_bytes, 1649267441664);
  EXPECT_EQ(tres("mem=1P").memory_bytes, 1125899906842624);
  EXPECT_EQ(tres("mem=4000K").memory_bytes, 4096000);
  EXPECT_EQ(tres("mem=200").memory_bytes, 209715200);  // MiB
  EXPECT_EQ(tres("mem=200.5").memory_bytes, 210239488);
  for (const char* none : {"mem=", "mem=G", "mem=0", "mem", "mem=-1G", "mem=1e30G", "mem=nanG"}) {
    EXPECT_EQ(tres(none).memory_bytes, 0) << none;
  }
}

// Q-L2: the figures of CEEMS 0.10.2, but for what it took for 0.
TEST(AllocTres, CutsFractionsOffMemoryUnlessAskedNotTo) {
  const auto bytes = [](std::string_view text) {
    return tres(text, MemoryRule::kTruncated).memory_bytes;
  };
  EXPECT_EQ(bytes("mem=320.5G"), 343597383680);
  EXPECT_EQ(bytes("mem=1.5T"), 1099511627776);
  EXPECT_EQ(bytes("mem=0.9G"), 0);
  EXPECT_EQ(bytes("mem=200"), 209715200);
  EXPECT_EQ(bytes("mem=200.9"), 209715200);
  EXPECT_EQ(bytes("mem=1P"), 1125899906842624);
  EXPECT_EQ(bytes("mem=nanG"), 0);
}

TEST(AllocTres, CountsGpusByTheTotalOrElseByTypes) {
  EXPECT_EQ(tres("gres/gpu:a=3,gres/gpu=7").gpus, 7);
  EXPECT_EQ(tres("gres/gpu=7,gres/gpu:a=3").gpus, 7);
  EXPECT_EQ(tres("gres/gpu:mig1=3,gres/gpu:mig2=1").gpus, 4);
  EXPECT_EQ(tres("gres/gpumem=80G,gres/gpuutil=100").gpus, 0);
  EXPECT_EQ(tres("gres/gpu:a100_1g.5gb=2,gres/gpu:a100_3g.20gb=1,gres/shard=8").gpus, 3);
  EXPECT_EQ(tres("cpu=-5,gres/gpu=-1,gres/gpu:a=x").gpus, 0);
  EXPECT_EQ(tres("cpu=-5").cpus, 0);
  EXPECT_EQ(tres("cpu=9223372036854775807").cpus, 1'000'000'000);
  const auto all = tres("billing=80,cpu=8,energy=14,node=2,,=,node");
  EXPECT_EQ(all.billing, 80);
  EXPECT_EQ(all.cpus, 8);
  EXPECT_EQ(all.nodes, 2);
}

TEST(NodeList, Expands) {
  const auto expand = [](std::string_view text) { return expand_node_list(text).value(); };
  EXPECT_THAT(expand("compute-[0-2]"), ElementsAre("compute-0", "compute-1", "compute-2"));
  EXPECT_THAT(expand("n[08-11]-x.y"), ElementsAre("n08-x.y", "n09-x.y", "n10-x.y", "n11-x.y"));
  EXPECT_THAT(expand("a-[0-1]-b-[3-4],c"),
              ElementsAre("a-0-b-3", "a-0-b-4", "a-1-b-3", "a-1-b-4", "c"));
  EXPECT_THAT(expand("c[01-02,5]"), ElementsAre("c01", "c02", "c5"));
  EXPECT_THAT(expand(""), ElementsAre());
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* bad : {"a[0-1,3", "a]", "a[3-1]", "a[x-y]", "a[]", "a[1-2", ",", "a,", "a,,b",
                          "[", "a[0-999999999]", "a[0-999][0-999]", "a[99999999999999999999]"}) {
    EXPECT_FALSE(expand_node_list(bad)) << bad;
  }
}

TEST(Sacct, ReadsJobsAndLeavesOutStepsAndJobsWithoutNodes) {
  const auto jobs = read_all(data_lines("jobs.txt"));
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].id, "5001");
  EXPECT_EQ((*jobs)[0].user, "alice");
  EXPECT_EQ((*jobs)[0].allocation.gpus, 2);
  EXPECT_EQ((*jobs)[0].start_ms, 1767254410000);
  EXPECT_FALSE((*jobs)[0].end_ms);
  EXPECT_EQ((*jobs)[1].name, "a|b|c");
  EXPECT_EQ((*jobs)[1].work_dir, "/scratch/bob");
  EXPECT_EQ((*jobs)[1].allocation.gpus, 4);
}

TEST(Sacct, MakesUnitsWithTheTimesOfTheWindow) {
  const auto jobs = read_all(data_lines("jobs.txt"));
  ASSERT_TRUE(jobs);
  const model::Window window{.start_ms = *parse_localz("2026-01-01T08:15:00+0000"),
                             .end_ms = *parse_localz("2026-01-01T08:30:00+0000")};
  const auto unit = to_unit((*jobs)[0], window, paris(), "c1");
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->cluster_id, "c1");
  EXPECT_EQ(unit->project, "proj1");
  EXPECT_EQ(unit->groupname, "users");
  EXPECT_EQ(unit->created_at, "2026-01-01T09:00:00+0100");
  EXPECT_EQ(unit->started_at, "2026-01-01T09:00:10+0100");
  EXPECT_EQ(unit->ended_at, "Unknown");
  EXPECT_EQ(unit->elapsed, "00:59:50");
  EXPECT_EQ(unit->allocation, R"({"billing":8,"cpus":8,"gpus":2,"mem":344134254592,"nodes":2})");
  EXPECT_EQ(unit->tags,
            R"({"exit_code":"0:0","gid":100,"nodelist":"n[08-09]","nodelistexp":"n08|n09",)"
            R"("partition":"debug","qos":"normal","uid":1001,"workdir":"/home/alice"})");
  EXPECT_EQ(unit->total_time_seconds, (model::MetricMap{{"walltime", 900},
                                                        {"alloc_cputime", 7200},
                                                        {"alloc_cpumemtime", 900 * 328192.0},
                                                        {"alloc_gputime", 1800},
                                                        {"alloc_gpumemtime", 900}}));
}

TEST(Sacct, TellsAJobAsItStoodAtTheEndOfTheWindow) {
  const auto jobs = read_all(data_lines("jobs.txt"));
  ASSERT_TRUE(jobs);
  const SlurmJob& job = (*jobs)[1];  // 08:20 to 08:40, FAILED
  const auto at = [&job](const char* start, const char* end) {
    return to_unit(job, {.start_ms = *parse_localz(start), .end_ms = *parse_localz(end)}, paris(),
                   "c");
  };
  const auto running = at("2026-01-01T08:15:00+0000", "2026-01-01T08:30:00+0000");
  EXPECT_EQ(running->state, "RUNNING");
  EXPECT_EQ(running->ended_at_ts, 0);
  EXPECT_EQ(running->ended_at, "Unknown");
  EXPECT_EQ(running->elapsed, "00:10:00");
  EXPECT_EQ(running->total_time_seconds.at("walltime"), 600);
  const auto ended = at("2026-01-01T08:30:00+0000", "2026-01-01T08:45:00+0000");
  EXPECT_EQ(ended->state, "FAILED");
  EXPECT_EQ(ended->ended_at, "2026-01-01T09:40:00+0100");
  EXPECT_EQ(ended->elapsed, "00:20:00");
  EXPECT_EQ(ended->total_time_seconds.at("walltime"), 600);
  EXPECT_FALSE(at("2026-01-01T08:00:00+0000", "2026-01-01T08:15:00+0000"));
}

TEST(Sacct, CountsTheTimeInTheWindow) {
  const model::Window window{.start_ms = 900'000, .end_ms = 1'800'000};
  EXPECT_EQ(active_ms(job_of(0, std::nullopt), window), 900'000);
  EXPECT_EQ(active_ms(job_of(0, 1'500'000), window), 600'000);
  EXPECT_EQ(active_ms(job_of(1'500'000, std::nullopt), window), 300'000);
  EXPECT_EQ(active_ms(job_of(1'500'000, 1'620'000), window), 120'000);
  EXPECT_EQ(active_ms(job_of(100'000, 800'000), window), 700'000);  // not seen in time
  EXPECT_EQ(active_ms(job_of(100'000, 900'000), window), 0);        // told by the window before
  EXPECT_EQ(active_ms(job_of(std::nullopt, std::nullopt), window), 0);
  EXPECT_EQ(active_ms(job_of(1'900'000, 2'000'000), window), 0);
  EXPECT_EQ(active_ms(job_of(800'000, 100'000), window), 0);  // a clock that went back
}

TEST(Sacct, NoJobNameCanForgeARecord) {
  const std::string d = "|5f00ba11|";
  const std::string forged = record("666", "x", "/y", "|");
  // The name of job 1 is "evil", a line end, a record as with "|", a line end, "tail".
  const std::string whole = record("1", "evil", "", d);
  const auto jobs = read_all({whole.substr(0, whole.size() - d.size()), forged,
                              "tail" + d + "/home/a", record("2", "plain", "/home/b", d)},
                             d);
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].id, "1");
  EXPECT_EQ((*jobs)[0].name, "evil\n" + forged + "\ntail");
  EXPECT_EQ((*jobs)[0].work_dir, "/home/a");
  EXPECT_EQ((*jobs)[1].id, "2");
}

TEST(Sacct, TakesTimesWithoutOffsetForUtc) {
  auto text = record("1", "a", "/a", "|");
  for (const char* time : {"2026-01-01T08:00:00", "2026-01-01T09:00:00+0100"}) {
    std::string line = text;
    line.replace(line.find("Unknown"), 7, time);
    const auto job = parse_sacct_record(line, "|", MemoryRule::kExact);
    ASSERT_TRUE(job && *job);
    EXPECT_EQ((*job)->submit_ms, 1767254400000) << time;
    EXPECT_FALSE((*job)->start_ms);
  }
}

TEST(Sacct, FindsOutAboutTheDelimiterBehindGarbage) {
  for (const std::string d : {"|5f00ba11|", "|"}) {
    const auto jobs = read_all({"sacct: some warning", record("1", "a", "/a", d)}, "|5f00ba11|");
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), 1U) << d;
    EXPECT_EQ((*jobs)[0].partition, "p");
    EXPECT_EQ((*jobs)[0].work_dir, "/a");
  }
}

TEST(Sacct, ANameOfManyLinesIsReadInLinearTime) {
  const std::string d = "|5f00ba11|";
  std::vector<std::string> lines = {record("1", "", "", d)};
  lines[0].resize(lines[0].size() - d.size());
  lines.insert(lines.end(), 400'000, "x");
  lines.push_back(d + "/a");
  const auto jobs = read_all(lines, d);
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->at(0).name.size(), 800'001U);
}

TEST(Sacct, KeepsBytesThatAreNoTextOutOfTheDataBase) {
  const std::string d = "|5f00ba11|";
  const std::string directory("/tmp\0/\xF0\x9F\n<\"", 11);
  const auto jobs = read_all({record("1", "a\xFF\x01\xC3\xA9|b", directory, d)}, d);
  ASSERT_TRUE(jobs);
  const auto unit = to_unit(jobs->at(0), {.start_ms = 0, .end_ms = 1000}, paris(), "c");
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->name, "a\uFFFD\x01\u00E9|b");
  EXPECT_THAT(unit->tags, HasSubstr("/tmp\uFFFD/\uFFFD\uFFFD\\n<\\\"\"}"));
}

TEST(Sacct, KeepsEveryStartOfARequeuedJob) {
  std::vector<std::string> lines;
  for (const char* start : {"2026-01-01T08:00:00", "2026-01-01T08:20:00"}) {
    lines.push_back(record("7", "again", "/a", "|"));
    lines.back().replace(lines.back().find("Unknown|Unknown") + 8, 7, start);
  }
  const auto jobs = read_all(lines);
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].id, (*jobs)[1].id);
  EXPECT_EQ(*(*jobs)[1].start_ms - *(*jobs)[0].start_ms, 1'200'000);
}

TEST(Sacct, AJobThatWasCancelledWhileWaitingRunsAtNoTime) {
  SlurmJob job = job_of(std::nullopt, 1'500'000);
  job.state = "CANCELLED by 1";
  EXPECT_FALSE(to_unit(job, {.start_ms = 0, .end_ms = 900'000}, paris(), "c"));
  const auto unit = to_unit(job, {.start_ms = 900'000, .end_ms = 1'800'000}, paris(), "c");
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->state, "CANCELLED by 1");
  EXPECT_EQ(unit->total_time_seconds.at("walltime"), 0);
}

TEST(Sacct, KeepsRecordsApartAroundGarbage) {
  const std::string d = "|5f00ba11|";
  std::vector<SlurmJob> jobs;
  SacctReader reader(d, MemoryRule::kExact, [&jobs](const SlurmJob& job) { jobs.push_back(job); });
  for (const auto& line :
       {record("1", "a", "/a", d), std::string("slurm: warning"), "5" + d + "half",
        record("2", "b", "/b", d), record("x y", "c", "/c", d)}) {
    reader.add_line(line);
  }
  ASSERT_TRUE(reader.finish());
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, "1");
  EXPECT_EQ(jobs[1].id, "2");
  EXPECT_EQ(reader.malformed(), 2U);
  EXPECT_THAT(reader.first_problem(), HasSubstr("expected 19 fields, got 2"));
}

TEST(Sacct, TakesNothingButGarbageForAFailure) {
  const auto jobs = read_all({"sacct: error: slurmdbd is down", "try later"});
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().message,
            "output of sacct: expected 19 fields, got 1: 'sacct: error: slurmdbd is down'");
  EXPECT_TRUE(read_all({})->empty());
  EXPECT_TRUE(read_all({"", ""})->empty());
  // Steps only are no failure.
  EXPECT_TRUE(read_all({record("1.batch", "a", "/a", "|")})->empty());
}

TEST(Associations, BuildBothDirections) {
  Associations associations;
  for (const char* line : {"root|", "root|root", "acc1|", "acc1|zoe", "acc1|bob", "acc2|bob",
                           "acc1|zoe", "acc3|root", "nonsense", ""}) {
    associations.add_line(line);
  }
  EXPECT_EQ(associations.accounts_of_users(), (std::map<std::string, std::vector<std::string>>{
                                                  {"bob", {"acc1", "acc2"}}, {"zoe", {"acc1"}}}));
  EXPECT_EQ(associations.users_of_accounts(), (std::map<std::string, std::vector<std::string>>{
                                                  {"acc1", {"bob", "zoe"}}, {"acc2", {"bob"}}}));
}

}  // namespace
}  // namespace ceems::ingest
