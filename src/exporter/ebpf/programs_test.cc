#include "exporter/ebpf/programs.h"

#include <vector>

#include <gtest/gtest.h>

// Only some of the counters are set.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace ceems::exporter::ebpf {
namespace {

constexpr ebpf_file_key kScratch{.cgroup = 100, .mount = 1, .root = 10};
constexpr ebpf_file_key kHome{.cgroup = 100, .mount = 2, .root = 20};

ebpf_file_run run(const ebpf_file_key& key, std::uint64_t calls, std::uint64_t bytes) {
  return {.ends = 5, .key = key, .calls = calls, .bytes = bytes, .begins = 5};
}

TEST(FileRuns, AreAddedToTheRowsOfTheirKeys) {
  FileRuns runs;
  runs.note(EBPF_READ, std::vector{run(kHome, 7, 700)});
  runs.note(EBPF_WRITE, std::vector{run(kScratch, 2, 20), run(kScratch, 3, 30), ebpf_file_run{}});
  Rows<ebpf_file_key, ebpf_file_value> files{
      {kScratch, {.read_bytes = 1, .write_bytes = 1000, .writes = 10, .write_errors = 4}}};
  runs.add_to(files);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].second.writes, 15U);
  EXPECT_EQ(files[0].second.write_bytes, 1050U);
  EXPECT_EQ(files[0].second.write_errors, 4U);
  EXPECT_EQ(files[0].second.read_bytes, 1U);
  EXPECT_EQ(files[0].second.reads, 0U);
  EXPECT_EQ(files[1].first.mount, 2U);
  EXPECT_EQ(files[1].second.reads, 7U);
  EXPECT_EQ(files[1].second.read_bytes, 700U);
  EXPECT_EQ(files[1].second.writes, 0U);
}

TEST(FileRuns, OfBothOperationsMayBeOfOneNewRow) {
  FileRuns runs;
  runs.note(EBPF_READ, std::vector{run(kHome, 1, 10)});
  runs.note(EBPF_WRITE, std::vector{run(kHome, 2, 20)});
  Rows<ebpf_file_key, ebpf_file_value> files;
  runs.add_to(files);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].second.reads, 1U);
  EXPECT_EQ(files[0].second.writes, 2U);
}

TEST(FileRuns, ThatAreReplacedWhileTheyAreReadDoNotCount) {
  FileRuns runs;
  ebpf_file_run torn = run(kScratch, 9, 90);
  torn.begins = 6;
  runs.note(EBPF_WRITE, std::vector{torn, run(kHome, 1, 10)});
  Rows<ebpf_file_key, ebpf_file_value> files{{kScratch, {.writes = 1}}, {kHome, {.writes = 1}}};
  runs.add_to(files);
  EXPECT_EQ(files[0].second.writes, 1U);
  EXPECT_EQ(files[1].second.writes, 2U);
}

TEST(FileRuns, KnowWhichRowsAreInUse) {
  FileRuns runs;
  EXPECT_FALSE(runs.has(kScratch));
  runs.note(EBPF_WRITE, std::vector{run(kScratch, 0, 0)});
  EXPECT_TRUE(runs.has(kScratch)) << "the CPU goes on there without a new row";
  EXPECT_FALSE(runs.has(kHome));
  runs.note(EBPF_WRITE, std::vector{run(kHome, 1, 1)});
  EXPECT_FALSE(runs.has(kScratch));
  ebpf_file_run torn = run(kHome, 1, 1);
  torn.begins = 6;
  runs.note(EBPF_READ, std::vector{torn});
  EXPECT_TRUE(runs.has(kScratch)) << "its key is not known";
}

}  // namespace
}  // namespace ceems::exporter::ebpf
