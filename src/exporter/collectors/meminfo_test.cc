#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

std::unique_ptr<Collector> meminfo(const CollectorContext& context,
                                   const std::vector<std::string>& arguments = {}) {
  return create_collector(meminfo_collector(), context, arguments).value();
}

TEST(Meminfo, ExportsThreeFieldsOfTheFixture) {
  // MemTotal: 15666184 kB, MemFree: 440324 kB
  TestContext host(fixture("intel-2s"));
  EXPECT_EQ(samples_of(*meminfo(host.context)),
            "ceems_meminfo_MemAvailable_bytes{hostname=\"n1\"} 7.15671552e+08\n"
            "ceems_meminfo_MemFree_bytes{hostname=\"n1\"} 4.50891776e+08\n"
            "ceems_meminfo_MemTotal_bytes{hostname=\"n1\"} 1.6042172416e+10\n");
}

TEST(Meminfo, ExportsFieldsThatTheKernelLacksAsZero) {
  const testing::TempDir root;
  root.write("proc/meminfo", "MemTotal: 2 kB\n");
  TestContext host(root.path());
  EXPECT_EQ(samples_of(*meminfo(host.context)),
            "ceems_meminfo_MemAvailable_bytes{hostname=\"n1\"} 0\n"
            "ceems_meminfo_MemFree_bytes{hostname=\"n1\"} 0\n"
            "ceems_meminfo_MemTotal_bytes{hostname=\"n1\"} 2048\n");
}

TEST(Meminfo, ExportsEveryFieldOnRequest) {
  const testing::TempDir root;
  root.write("proc/meminfo",
             "MemTotal: 2 kB\nActive(anon): 1 kB\nHugePages_Total: 3\na{b}+: 1 kB\n");
  TestContext host(root.path());
  for (const char* flag : {"--collector.meminfo.all-stats", "--collector.meminfo.all.stats"}) {
    EXPECT_EQ(samples_of(*meminfo(host.context, {flag})),
              "ceems_meminfo_Active_anon_bytes{hostname=\"n1\"} 1024\n"
              "ceems_meminfo_HugePages_Total{hostname=\"n1\"} 3\n"
              "ceems_meminfo_MemTotal_bytes{hostname=\"n1\"} 2048\n"
              "ceems_meminfo_a_b__bytes{hostname=\"n1\"} 1024\n");
  }
}

TEST(Meminfo, FailsWhileTheFileIsInvalidAndRecovers) {
  const testing::TempDir root;
  TestContext host(root.path());
  const auto collector = meminfo(host.context);
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  root.write("proc/meminfo", "MemTotal: 2 kB\n\xFF\xFE\n");
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, (root.path() / "proc/meminfo").string() +
                                        ": line 2: expected 'key: number [kB]', got '\\xff\\xfe'");
  root.write("proc/meminfo", "MemTotal: 2 kB\n");
  EXPECT_NE(samples_of(*collector, &result), "");
  EXPECT_TRUE(result);
}

TEST(Meminfo, FailsOnAnEmptyFile) {
  const testing::TempDir root;
  for (const char* text : {"", "\n\n"}) {
    root.write("proc/meminfo", text);
    for (const char* flag : {"--no-collector.meminfo.all-stats", "--collector.meminfo.all-stats"}) {
      TestContext host(root.path());
      Result<> result;
      EXPECT_EQ(samples_of(*meminfo(host.context, {flag}), &result), "");
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, ErrorCode::kNoData);
      EXPECT_EQ(result.error().message,
                (root.path() / "proc/meminfo").string() + ": the file is empty");
    }
  }
}

TEST(Meminfo, FailsOnWhatIsNotARegularFile) {
  const testing::TempDir root;
  const auto path = root.path() / "proc/meminfo";
  root.write("proc/other", "");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  // Somebody writes a plausible table to the pipe.
  const int writer = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_EQ(::write(writer, "MemTotal: 2 kB\n", 15), 15);
  TestContext host(root.path());
  Result<> result;
  EXPECT_EQ(samples_of(*meminfo(host.context), &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, path.string() + ": expected a regular file");
  ::close(writer);
}

}  // namespace
}  // namespace ceems::exporter
