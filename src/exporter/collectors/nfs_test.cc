#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NfsTest : public ::testing::Test {
 protected:
  NfsTest() : host_(dir_.path()) {}

  void write(std::string_view text) { dir_.write("proc/self/mountstats", text); }
  std::string samples(const std::vector<std::string>& flags = {}) {
    collector_ = *create_collector(nfs_collector(), host_.context, flags);
    return samples_of(*collector_, &result_);
  }

  testing::TempDir dir_;
  TestContext host_;
  std::unique_ptr<Collector> collector_;
  Result<> result_;
};

TEST_F(NfsTest, ExportsBytesAndOperationsOfAMount) {
  write(
      "device /dev/sda1 mounted on / with fstype ext4\n"
      "device srv:/home mounted on /home with fstype nfs4 statvers=1.1\n"
      "\tbytes:\t100 200 30 40 500 600 7 8\n"
      "\tper-op statistics\n"
      "\t        READ: 10 12 1 1000 90000 5000 60 7000 2\n"
      "\t        OPEN: 3 3 0 30 40 0 0 0 0\n"
      "\t OPEN_NOATTR: 4 4 0 30 40 0 0 0 0\n"
      "\t    SEQUENCE: 9 8 0 0 0 0 0 0 0\n");
  const std::string mount = "export=\"srv:/home\",hostname=\"n1\",";
  const std::string point = "mountpoint=\"/home\"";
  const auto operation = [&](const char* stem, const char* name, const char* value) {
    return fmt::format("ceems_nfs_{}_total{{{}{},operation=\"{}\"}} {}\n", stem, mount, point, name,
                       value);
  };
  const auto bytes = [&](const char* stem, const char* mode, const char* value) {
    return fmt::format("ceems_nfs_{}_total{{{}mode=\"{}\",{}}} {}\n", stem, mount, mode, point,
                       value);
  };
  EXPECT_EQ(samples(),
            "ceems_nfs_mounts_left_out{hostname=\"n1\"} 0\n" +
                operation("operation_errors", "read", "2") +
                operation("operation_queue_seconds", "read", "5") +
                operation("operation_received_bytes", "open", "80") +
                operation("operation_received_bytes", "read", "90000") +
                operation("operation_response_seconds", "read", "0.06") +
                operation("operation_retransmissions", "read", "2") +
                operation("operation_seconds", "read", "7") +
                operation("operation_sent_bytes", "open", "60") +
                operation("operation_sent_bytes", "read", "1000") +
                operation("operation_timeouts", "read", "1") +
                operation("operations", "open", "7") + operation("operations", "other", "9") +
                operation("operations", "read", "10") + bytes("read_bytes", "direct", "30") +
                bytes("read_bytes", "normal", "100") + "ceems_nfs_server_read_bytes_total{" +
                mount + point + "} 500\nceems_nfs_server_write_bytes_total{" + mount + point +
                "} 600\n" + bytes("write_bytes", "direct", "40") +
                bytes("write_bytes", "normal", "200"));
  EXPECT_TRUE(result_);
}

TEST_F(NfsTest, FoldsEveryOperation) {
  std::string text = "device s:/ mounted on /m with fstype nfs statvers=1.0\n\tper-op statistics\n";
  for (const char* name :
       {"READ",   "READ_PLUS", "WRITE",       "COMMIT",      "GETATTR", "SETATTR",
        "LOOKUP", "LOOKUPP",   "ACCESS",      "OPEN",        "CLOSE",   "CREATE",
        "MKDIR",  "MKNOD",     "SYMLINK",     "LINK",        "REMOVE",  "RMDIR",
        "RENAME", "READDIR",   "READDIRPLUS", "OPEN_NOATTR", "FSSTAT",  "RENEW"}) {
    text += fmt::format("\t{}: 1 1 0 0 0 0 0 0\n", name);
  }
  write(text);
  const std::string page = samples();
  for (const char* expected :
       {"access\"} 1", "close\"} 1", "commit\"} 1", "create\"} 5", "getattr\"} 1", "lookup\"} 2",
        "open\"} 2", "other\"} 2", "read\"} 2", "readdir\"} 2", "remove\"} 2", "rename\"} 1",
        "setattr\"} 1", "write\"} 1"}) {
    EXPECT_THAT(page, HasSubstr(fmt::format("operation=\"{}\n", expected)));
  }
  EXPECT_EQ(std::ranges::count(page, '\n'), 14 + 1);
}

TEST_F(NfsTest, BoundsTheNumberOfMounts) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += fmt::format(
        "device s:/{0} mounted on /m/{0} with fstype nfs statvers=1.1\n\tbytes:\t1 1 1 1 1 1 0 0\n",
        i);
  }
  write(text);
  std::string page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(std::ranges::count(page, '\n'), 100 * 6 + 1);
  EXPECT_THAT(page, HasSubstr("ceems_nfs_mounts_left_out{hostname=\"n1\"} 200\n"));
  page = samples({"--collector.nfs.max-mounts=1"});
  EXPECT_EQ(std::ranges::count(page, '\n'), 6 + 1);
  for (const char* value : {"0", "10001"}) {
    const auto created = create_collector(nfs_collector(), host_.context,
                                          {std::string("--collector.nfs.max-mounts=") + value});
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().message,
              std::string("--collector.nfs.max-mounts: expected 1 to 10000, got ") + value);
  }
}

TEST_F(NfsTest, ExportsWhatIsValidBesideMalformedLines) {
  write(
      "device s:/ mounted on /m with fstype nfs statvers=1.1\n"
      "\tbytes:\tmany\n"
      "\tper-op statistics\n"
      "\tREAD: 5 5 0 0 0 0 0 0\n"
      "\tWRITE: 5 5 0 0 0");
  const std::string page = samples();
  EXPECT_THAT(page, HasSubstr("operation=\"read\"} 5\n"));
  EXPECT_THAT(page, Not(HasSubstr("bytes")));
  EXPECT_THAT(page, Not(HasSubstr("\"write\"")));
  ASSERT_FALSE(result_);
  EXPECT_THAT(result_.error().message, HasSubstr("proc/self/mountstats: line 2: "));
}

TEST_F(NfsTest, HasNoRetransmissionsIfLessWasSentThanDone) {
  write(
      "device s:/ mounted on /m with fstype nfs statvers=1.1\n\tper-op statistics\n"
      "\tREAD: 18446744073709551615 1 0 0 0 0 0 0\n");
  const std::string page = samples();
  EXPECT_THAT(page, Not(HasSubstr("retransmissions")));
  EXPECT_THAT(page, HasSubstr("operation=\"read\"} 1.8446744073709552e+19\n"));
}

TEST_F(NfsTest, ReturnsNoDataWithoutNfsAndAnErrorWithoutTheFile) {
  write("device /dev/sda1 mounted on / with fstype ext4\n");
  EXPECT_EQ(samples(), "");
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kNoData);
  std::filesystem::remove(dir_.path() / "proc/self/mountstats");
  EXPECT_EQ(samples(), "");
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::exporter
