#include "ingest/manager/slurm/sacct.h"

#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/time_text.h"

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
  CEEMS_TRY(reader.finish());
  return jobs;
}

/// Returns a record of 19 fields with this delimiter.
std::string sacct_record(const std::string& id,
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
  const auto unit = to_unit((*jobs)[0], window, paris());
  ASSERT_TRUE(unit);
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

TEST(Sacct, ReportsAJobAsItStoodAtTheEndOfTheWindow) {
  const auto jobs = read_all(data_lines("jobs.txt"));
  ASSERT_TRUE(jobs);
  const SlurmJob& job = (*jobs)[1];  // 08:20 to 08:40, FAILED
  const auto at = [&job](const char* start, const char* end) {
    return to_unit(job, {.start_ms = *parse_localz(start), .end_ms = *parse_localz(end)}, paris());
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

TEST(Sacct, NoJobNameCanForgeARecord) {
  const std::string d = "|5f00ba11|";
  const std::string forged = sacct_record("666", "x", "/y", "|");
  // The name of job 1 is "evil", a newline, a record forged with "|", a newline, "tail".
  const std::string whole = sacct_record("1", "evil", "", d);
  const auto jobs = read_all({whole.substr(0, whole.size() - d.size()), forged,
                              "tail" + d + "/home/a", sacct_record("2", "plain", "/home/b", d)},
                             d);
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].id, "1");
  EXPECT_EQ((*jobs)[0].name, "evil\n" + forged + "\ntail");
  EXPECT_EQ((*jobs)[0].work_dir, "/home/a");
  EXPECT_EQ((*jobs)[1].id, "2");
}

TEST(Sacct, TakesTimesWithoutOffsetForUtc) {
  auto text = sacct_record("1", "a", "/a", "|");
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
    const auto jobs =
        read_all({"sacct: some warning", sacct_record("1", "a", "/a", d)}, "|5f00ba11|");
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->size(), 1U) << d;
    EXPECT_EQ((*jobs)[0].partition, "p");
    EXPECT_EQ((*jobs)[0].work_dir, "/a");
  }
}

TEST(Sacct, ANameOfManyLinesIsReadInLinearTime) {
  const std::string d = "|5f00ba11|";
  std::vector<std::string> lines = {sacct_record("1", "", "", d)};
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
  const auto jobs = read_all({sacct_record("1", "a\xFF\x01\xC3\xA9|b", directory, d)}, d);
  ASSERT_TRUE(jobs);
  const auto unit = to_unit(jobs->at(0), {.start_ms = 0, .end_ms = 1000}, paris());
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->name, "a\uFFFD\x01\u00E9|b");
  EXPECT_THAT(unit->tags, HasSubstr("/tmp\uFFFD/\uFFFD\uFFFD\\n<\\\"\"}"));
}

TEST(Sacct, KeepsEveryStartOfARequeuedJob) {
  std::vector<std::string> lines;
  for (const char* start : {"2026-01-01T08:00:00", "2026-01-01T08:20:00"}) {
    lines.push_back(sacct_record("7", "again", "/a", "|"));
    lines.back().replace(lines.back().find("Unknown|Unknown") + 8, 7, start);
  }
  const auto jobs = read_all(lines);
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].id, (*jobs)[1].id);
  EXPECT_EQ(*(*jobs)[1].start_ms - *(*jobs)[0].start_ms, 1'200'000);
}

TEST(Sacct, KeepsRecordsApartAroundGarbage) {
  const std::string d = "|5f00ba11|";
  std::vector<SlurmJob> jobs;
  SacctReader reader(d, MemoryRule::kExact, [&jobs](const SlurmJob& job) { jobs.push_back(job); });
  for (const auto& line :
       {sacct_record("1", "a", "/a", d), std::string("slurm: warning"), "5" + d + "half",
        sacct_record("2", "b", "/b", d), sacct_record("x y", "c", "/c", d)}) {
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
  // Output with only steps is not an error.
  EXPECT_TRUE(read_all({sacct_record("1.batch", "a", "/a", "|")})->empty());
}

TEST(Sacct, FindsTheDetailsInTheListOfFields) {
  EXPECT_THAT(listed_details("Account             AdminComment        AllocCPUS\n"
                             "JobID               JobIDRaw            NodeList\n"
                             "SubmitLine          TimelimitRaw        WorkDir\n"),
              ElementsAre("jobid", "timelimitraw", "admincomment", "submitline"));
  EXPECT_THAT(listed_details("JobID TimelimitRaw"), ElementsAre()) << "this is not the list";
  EXPECT_THAT(listed_details("1|jobid|timelimitraw|name|/home"), ElementsAre());
  EXPECT_THAT(listed_details(""), ElementsAre());
  EXPECT_EQ(sacct_format({}), kSacctFields);
  const std::vector<std::string_view> some = {"jobid", "submitline"};
  EXPECT_TRUE(sacct_format(some).ends_with(",alloctres,nodelist,jobid,submitline,jobname,workdir"));
}

/// The details of a job with these texts.
SlurmDetails details_of(const std::vector<std::pair<std::string_view, std::string>>& texts) {
  const std::string d = "|5f00ba11|";
  std::string line = sacct_record("7", "", "", d);
  line.resize(line.size() - 2 * d.size());
  std::vector<std::string_view> names;
  for (const auto& [name, text] : texts) {
    names.push_back(name);
    line += d + text;
  }
  const auto job =
      parse_sacct_record(line + d + "name" + d + "/home", d, MemoryRule::kTruncated, names);
  EXPECT_TRUE(job && *job) << (job ? "" : job.error().message);
  EXPECT_EQ((*job)->name, "name");
  EXPECT_EQ((*job)->work_dir, "/home");
  return (*job)->details;
}

TEST(Sacct, ReadsWhatWasAskedFor) {
  EXPECT_EQ(details_of({{"jobid", "12_3"},
                        {"timelimitraw", "1440"},
                        {"reqmem", "1G"},
                        {"reqcpus", "16"},
                        {"reqtres", "billing=16,cpu=16,mem=62.50G,node=2"},
                        {"nnodes", "2"},
                        {"eligible", "2026-01-01T08:00:00"},
                        {"restarts", "2"},
                        {"consumedenergyraw", "123456"},
                        {"sluid", "s0123456789ABC"},
                        {"constraints", "a|b"},
                        {"submitline", "sbatch --wrap=\nhostname job.sh"}}),
            (SlurmDetails{.array_job = 12,
                          .array_task = 3,
                          .time_limit_seconds = 86400,
                          .requested_memory_bytes = 62LL * 1024 * 1024 * 1024 + (512LL << 20U),
                          .requested_cpus = 16,
                          .restarts = 2,
                          .eligible_ms = 1767254400000,
                          .consumed_joules = 123456,
                          .constraints = "a|b",
                          .submit_line = "sbatch --wrap=\nhostname job.sh",
                          .sluid = "s0123456789ABC"}));
}

TEST(Sacct, ReadsThePartsOfHeterogeneousJobs) {
  EXPECT_EQ(details_of({{"jobid", "8200+0"}}), (SlurmDetails{.het_job = 8200, .het_offset = 0}));
  EXPECT_EQ(details_of({{"jobid", "8200+1"}}), (SlurmDetails{.het_job = 8200, .het_offset = 1}));
}

TEST(Sacct, TellsHowMemoryAndGpusWereAskedFor) {
  EXPECT_EQ(details_of({{"reqmem", "2000Mc"}, {"reqcpus", "4"}}).memory_per, "cpu");
  EXPECT_EQ(details_of({{"reqmem", "16Gn"}}).memory_per, "node");
  EXPECT_EQ(details_of({{"reqmem", "16G"}}).memory_per, "");
  const auto type = [](const char* tres) { return details_of({{"reqtres", tres}}).gpu_type; };
  EXPECT_EQ(type("cpu=4,gres/gpu:a100=2,gres/gpu=2"), "a100");
  EXPECT_EQ(type("cpu=4,gres/gpu=2"), "");
  EXPECT_EQ(type("gres/gpu:a100=2,gres/gpu:v100=2"), "");
  EXPECT_EQ(type("gres/gpu:$(a)=2"), "");
}

TEST(Sacct, LeavesOutWhatIsNotLimitedOrNotKnown) {
  for (const char* limit : {"UNLIMITED", "Partition_Limit", "", "0", "-5", "99999999999999"}) {
    EXPECT_EQ(details_of({{"timelimitraw", limit}}), SlurmDetails{}) << limit;
  }
  for (const char* joules : {"", "0", "18446744073709551614", "18446744073709551615",
                             "9223372036854775808", "1.5", "-1"}) {
    EXPECT_EQ(details_of({{"consumedenergyraw", joules}}), SlurmDetails{}) << joules;
  }
  for (const char* id : {"12", "12_[1-5%2]", "_3", "", "0_1", "12+", "+1", "0+1"}) {
    EXPECT_EQ(details_of({{"jobid", id}}), SlurmDetails{}) << id;
  }
  EXPECT_EQ(details_of({{"eligible", "Unknown"}, {"reqmem", "0"}, {"reqcpus", "0"}}),
            SlurmDetails{});
}

TEST(Sacct, ReadsTheRequestedMemoryOfOlderVersions) {
  EXPECT_EQ(parse_requested_memory("16G", {}, 0), 16LL << 30U);
  EXPECT_EQ(parse_requested_memory("4000M", 8, 2), 4000LL << 20U);
  EXPECT_EQ(parse_requested_memory("4000Mc", 8, 2), 32000LL << 20U);
  EXPECT_EQ(parse_requested_memory("16Gn", 8, 2), 32LL << 30U);
  EXPECT_EQ(parse_requested_memory("16Gc", {}, 2), std::nullopt) << "the CPUs are not known";
  EXPECT_EQ(parse_requested_memory("?", 8, 2), std::nullopt);
}

TEST(Sacct, TakesOnlySummariesOfJobstatsFromComments) {
  EXPECT_EQ(details_of({{"admincomment", "JS1:H4sIAAAA+/="}}).js1, "JS1:H4sIAAAA+/=");
  const std::string longest = "JS1:H4s" + std::string(kMaxJs1Bytes - 7, 'A');
  EXPECT_EQ(details_of({{"admincomment", longest}}).js1, longest);
  for (const std::string& comment :
       {std::string("JS1:None"), std::string("JS1:Short"), std::string("moved by an operator"),
        std::string("JS1:H4s\"}"), std::string("JS1:H4s\nx"), longest + "A"}) {
    EXPECT_EQ(details_of({{"admincomment", comment}}).js1, "") << comment.substr(0, 40);
  }
  SlurmJob job;
  job.id = "7";
  job.start_ms = 0;
  job.details.js1 = longest;
  const auto unit = to_unit(job, {.start_ms = 0, .end_ms = 1000}, paris());
  ASSERT_TRUE(unit);
  EXPECT_THAT(unit->tags, HasSubstr("\"js1\":\"" + longest + "\""));
}

TEST(Sacct, KeepsDetailsShortAndPrintable) {
  SlurmJob job;
  job.id = "7";
  job.start_ms = 0;
  job.details.submit_line = std::string(1023, 'x') + "\xC3\xA9" + std::string(5000, 'y');
  job.details.constraints = "a\xFF\"";
  const auto unit = to_unit(job, {.start_ms = 0, .end_ms = 1000}, paris());
  ASSERT_TRUE(unit);
  EXPECT_THAT(unit->tags, HasSubstr("\"submit_line\":\"" + std::string(1023, 'x')));
  EXPECT_THAT(unit->tags, ::testing::Not(HasSubstr("y")));
  EXPECT_THAT(unit->tags, HasSubstr("{\"constraints\":\"a\uFFFD\\\"\","));
  EXPECT_LT(unit->tags.size(), 1400U);
}

TEST(Associations, AreOfUsersOtherThanRoot) {
  std::set<Membership> members;
  for (const char* line : {"root|", "root|root", "acc1|", "acc1|zoe", "acc1|bob", "acc2|bob",
                           "acc1|zoe", "acc3|root", "nonsense", ""}) {
    add_association_line(line, members);
  }
  EXPECT_THAT(members, ElementsAre(Membership{"acc1", "bob"}, Membership{"acc1", "zoe"},
                                   Membership{"acc2", "bob"}));
}

}  // namespace
}  // namespace ceems::ingest
