#include "host/lustre.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "host/read_file.h"
#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

/// "name:samples:unit:sum name:..."
std::string text_of(const std::vector<LustreCount>& counts) {
  std::string text;
  for (const LustreCount& count : counts) {
    text += fmt::format("{}{}:{}:{}:{}", text.empty() ? "" : " ", count.name, count.samples,
                        count.unit, count.sum ? std::to_string(*count.sum) : "-");
  }
  return text;
}

/// "ID counts\n" for each job.
std::string jobs_of(std::string_view text, Result<>* result = nullptr) {
  std::string jobs;
  const auto done = parse_lustre_job_stats(text, [&](const LustreJob& job) {
    jobs += fmt::format("{} {}\n", job.id, text_of(job.counts));
  });
  if (result != nullptr) {
    *result = done;
  }
  return jobs;
}

TEST(LustreStats, HaveCountsUnitsAndSums) {
  std::vector<LustreCount> counts;
  // As Lustre 2.12 writes it ("regs" is its spelling), and 2.15 with times and a sum of squares.
  EXPECT_TRUE(
      parse_lustre_stats("snapshot_time             1700000001.250 secs.usecs\n"
                         "read_bytes                12 samples [bytes] 4096 1048576 8388608\n"
                         "open                      7 samples [regs]\n",
                         counts));
  EXPECT_EQ(text_of(counts), "read_bytes:12:bytes:8388608 open:7:regs:-");
  EXPECT_TRUE(
      parse_lustre_stats("snapshot_time             1700000001.250000000 secs.nsecs\n"
                         "start_time                1700000000.000000000 secs.nsecs\n"
                         "elapsed_time              1.250000000 secs.nsecs\n"
                         "getattr                   3 samples [usecs] 2 90 100 8200\n"
                         "req_active                3 samples [reqs] 1 2 4 6\n",
                         counts));
  EXPECT_EQ(text_of(counts), "getattr:3:usecs:100 req_active:3:reqs:4");
  EXPECT_TRUE(is_lustre_time("usecs"));
  EXPECT_TRUE(is_lustre_time("usec"));
  EXPECT_FALSE(is_lustre_time("reqs"));
  EXPECT_TRUE(parse_lustre_stats("", counts));
  EXPECT_TRUE(counts.empty());
}

TEST(LustreStats, LoseOnlyMalformedLines) {
  std::vector<LustreCount> counts;
  for (const char* line :
       {"read_bytes", "read_bytes x samples [bytes]", "open 1 sample [reqs]", "open 1 samples reqs",
        "open 1 samples []", "open -1 samples [reqs]", "open 1 samples [usecs] 1",
        "open 1 samples [usecs] 1 2", "open 1 samples [usecs] 1 2 3x",
        "open 18446744073709551616 samples [reqs]"}) {
    const std::string text = std::string(line) + "\nclose 2 samples [reqs]\n";
    const auto done = parse_lustre_stats(text, counts);
    ASSERT_FALSE(done) << line;
    EXPECT_EQ(done.error().code, ErrorCode::kParse);
    EXPECT_TRUE(done.error().message.starts_with("line 1: ")) << done.error().message;
    EXPECT_EQ(text_of(counts), "close:2:reqs:-") << line;
  }
}

TEST(LustreStats, HaveNoSumThatOverflowed) {
  std::vector<LustreCount> counts;
  EXPECT_TRUE(
      parse_lustre_stats("read_bytes 5 samples [bytes] 1 2 -9223372036854775808 7\n"
                         "write_bytes 5 samples [bytes] 1 2 18446744073709551615 7\n",
                         counts));
  EXPECT_EQ(text_of(counts), "read_bytes:5:bytes:- write_bytes:5:bytes:18446744073709551615");
}

constexpr std::string_view kOldJobs =
    "job_stats:\n"
    "- job_id:          4711\n"
    "  snapshot_time:   1700000000\n"
    "  read_bytes:      { samples:           2, unit: bytes, min:    4096, max: 1048576, sum:"
    "         1052672 }\n"
    "  setattr:         { samples:           1, unit:  reqs }\n"
    "- job_id:          dd.0\n"
    "  snapshot_time:   1700000000\n"
    "  open:            { samples:           9, unit:  reqs }\n";

TEST(LustreJobStats, AreReadInTheOldForm) {
  EXPECT_EQ(jobs_of(kOldJobs),
            "4711 read_bytes:2:bytes:1052672 setattr:1:reqs:-\ndd.0 open:9:reqs:-\n");
}

TEST(LustreJobStats, AreReadWithHistogramsAndQuotationMarks) {
  EXPECT_EQ(
      jobs_of("job_stats:\n"
              "- job_id:          \"815:1000:n1\"\n"
              "  snapshot_time:   1700000000.000000001 secs.nsecs\n"
              "  start_time:      1600000000.000000001 secs.nsecs\n"
              "  elapsed_time:    100000000.000000000 secs.nsecs\n"
              "  read_bytes:      { samples:  0, unit: bytes, min: 0, max: 0, sum: 0, sumsq: "
              "0, hist: {  } }\n"
              "  write_bytes:     { samples: 35, unit: bytes, min: 1, max: 9, sum: 300, sumsq: "
              "9000, hist: { 4K: 5, 1M: 30 } }\n"
              "  write:           { samples: 35, unit: usecs, min: 1, max: 9, sum: 70, sumsq: "
              "400 }\n"
              "- job_id:          \"a \\x0A b\"\n"),
      "815:1000:n1 read_bytes:0:bytes:0 write_bytes:35:bytes:300 write:35:usecs:70\n"
      "a \\x0A b \n");
  EXPECT_EQ(jobs_of("job_stats:\n"), "");
  EXPECT_EQ(jobs_of(""), "");
}

TEST(LustreJobStats, LoseOnlyTheJobOfAMalformedLine) {
  for (const char* line :
       {"  read_bytes:", "  read_bytes: {}", "  read_bytes: { samples: x }",
        "  read_bytes: { unit: bytes }", "  read_bytes: { samples: 1, unit: bytes",
        "  read_bytes: { samples: 1, sum: many }", "garbage", "  : { samples: 1 }", "{", "}"}) {
    Result<> done;
    EXPECT_EQ(jobs_of(std::string("job_stats:\n- job_id: 1\n  open: { samples: 1, unit: reqs }\n") +
                          line + "\n- job_id: 2\n  open: { samples: 2, unit: reqs }\n",
                      &done),
              "2 open:2:reqs:-\n")
        << line;
    ASSERT_FALSE(done) << line;
    EXPECT_TRUE(done.error().message.starts_with("line 4: ")) << done.error().message;
  }
}

TEST(LustreJobStats, LoseTheLastJobIfTheTextIsCutAnywhere) {
  const std::string first = "4711 read_bytes:2:bytes:1052672 setattr:1:reqs:-\n";
  const std::size_t second = kOldJobs.find("- job_id:          dd.0");
  for (std::size_t size = second + 1; size < kOldJobs.size(); ++size) {
    if (kOldJobs[size - 1] == '\n') {
      continue;  // a whole line: what is missing cannot be seen
    }
    Result<> done;
    EXPECT_EQ(jobs_of(kOldJobs.substr(0, size), &done), first) << size;
    EXPECT_FALSE(done) << size;
  }
}

TEST(LustreJobStats, OfLinesBeforeTheFirstJobAreAnError) {
  Result<> done;
  EXPECT_EQ(jobs_of("  open: { samples: 1, unit: reqs }\n- job_id: 1\n", &done), "1 \n");
  EXPECT_FALSE(done);
}

TEST(LustreJobStats, OfManyJobsAreAllRead) {
  std::string text = "job_stats:\n";
  for (int i = 0; i < 10'000; ++i) {
    text += fmt::format("- job_id: {}\n  open: {{ samples: {}, unit: reqs }}\n", i, i * 2);
  }
  std::uint64_t jobs = 0;
  std::uint64_t opened = 0;
  EXPECT_TRUE(parse_lustre_job_stats(text, [&](const LustreJob& job) {
    ++jobs;
    opened += job.counts.at(0).samples;
  }));
  EXPECT_EQ(jobs, 10'000U);
  EXPECT_EQ(opened, 99'990'000U);
}

TEST(LustreJobId, IsShortAndHasNoControlCharacters) {
  for (const char* id : {"4711", "dd.0", "815:1000:n1", "kworker/0:1.0", "12.srv", "6[1]"}) {
    EXPECT_TRUE(is_lustre_job_id(id)) << id;
  }
  for (const char* id : {"", "a b", "a\nb", "a\x01", "a\"b", "a\\x0A", "{x}", "\xc3\xa4"}) {
    EXPECT_FALSE(is_lustre_job_id(id)) << id;
  }
  EXPECT_TRUE(is_lustre_job_id(std::string(64, 'a')));
  EXPECT_FALSE(is_lustre_job_id(std::string(65, 'a')));
}

TEST(LustreDirectories, NameFileSystemsAndTargets) {
  EXPECT_EQ(lustre_client_filesystem("scratch-ffff8b1c5a3e8000"), "scratch");
  EXPECT_EQ(lustre_client_filesystem("my-fs_1-ffff8b1c5a3e8000"), "my-fs_1");
  for (const char* name : {"scratch", "scratch-", "scratch-ffff", "-ffff8b1c5a3e8000",
                           "a b-ffff8b1c5a3e8000", "scratch-OST0000"}) {
    EXPECT_FALSE(lustre_client_filesystem(name)) << name;
  }
  const auto ost = lustre_client_target("my-fs-OST001f-osc-ffff8b1c5a3e8000");
  ASSERT_TRUE(ost);
  EXPECT_EQ(ost->filesystem, "my-fs");
  EXPECT_FALSE(ost->metadata);
  const auto mdt = lustre_client_target("home-MDT0000-mdc-ffff8b1c5a3e8000");
  ASSERT_TRUE(mdt);
  EXPECT_EQ(mdt->filesystem, "home");
  EXPECT_TRUE(mdt->metadata);
  for (const char* name : {"scratch-OST0000-osc-MDT0000", "scratch-OST0000-osc", "scratch-OST0000",
                           "scratch-osc-ffff8b1c5a3e8000", "num_refs"}) {
    EXPECT_FALSE(lustre_client_target(name)) << name;
  }
  EXPECT_EQ(lustre_target("scratch-OST001f").value_or(LustreTarget{}).filesystem, "scratch");
  EXPECT_TRUE(lustre_target("scratch-MDT0001").value_or(LustreTarget{}).metadata);
  for (const char* name :
       {"scratch", "scratch-OST", "scratch-OSTxyz", "scratch-FOO0001", "-OST0001", "-", ""}) {
    EXPECT_FALSE(lustre_target(name)) << name;
  }
}

TEST(LustreFile, IsReadUpToTheLimit) {
  const testing::TempDir dir;
  const std::string text(200'000, 'x');
  const auto path = dir.write("job_stats", text);
  auto fd = open_file(path.c_str());
  ASSERT_TRUE(fd);
  std::string buffer = "old";
  EXPECT_TRUE(read_lustre_file(*fd, buffer, 1'000'000));
  EXPECT_EQ(buffer, text);
  EXPECT_TRUE(read_lustre_file(*fd, buffer, 70'000));
  EXPECT_EQ(buffer.size(), 70'000U);
  fd = open_file(dir.path().c_str());
  ASSERT_TRUE(fd);
  EXPECT_FALSE(read_lustre_file(*fd, buffer, 10));
}

}  // namespace
}  // namespace ceems::host
