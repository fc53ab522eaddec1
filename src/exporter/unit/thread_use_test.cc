#include "exporter/unit/thread_use.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kMinute = 60;

class ThreadUseTest : public ::testing::Test {
 protected:
  /// A thread that has run and waited for this long, in seconds, since it began `started` seconds
  /// after the boot.
  void put(int pid,
           int tid,
           double ran,
           double waited,
           const std::string& cpus,
           double started = 10) const {
    const std::string folder = fmt::format("proc/{}/task/{}/", pid, tid);
    root_.write(folder + "schedstat", fmt::format("{:.0f} {:.0f} 9\n", ran * 1e9, waited * 1e9));
    put_stat(pid, tid, ran, started);
    root_.write(folder + "status", "Name:\ta\nCpus_allowed_list:\t" + cpus + "\n");
  }
  void put_stat(int pid, int tid, double ran, double started) const {
    root_.write(fmt::format("proc/{}/task/{}/stat", pid, tid),
                fmt::format("{} (a) b) R 1 1 1 0 -1 0 0 0 0 0 {:.0f} 0 0 0 20 0 1 0 {:.0f} 9 9\n",
                            tid, ran * 100, started * 100));
  }
  void remove(int pid, int tid) const {
    std::filesystem::remove_all(root_.path() / fmt::format("proc/{}/task/{}", pid, tid));
  }
  /// A look at these units, at this time since boot.
  Result<ThreadUse::Look> look(double uptime,
                               const std::vector<std::vector<int>>& units,
                               const std::vector<int>& online = {}) {
    root_.write("proc/uptime", fmt::format("{:.2f} 5.00\n", uptime));
    const std::vector<std::span<const int>> spans(units.begin(), units.end());
    return use_.look(spans, online);
  }

  testing::TempDir root_;
  ThreadUse use_{root_.path() / "proc", {.of_unit = 4, .all = 6}};
};

TEST_F(ThreadUseTest, CountsThreadsThatRunOrWaitForACpu) {
  put(10, 10, 500, 7, "0-1");
  put(10, 11, 500, 7, "0-1");
  put(10, 12, 500, 7, "0-1");
  put(20, 20, 500, 7, "8-9");
  auto seen = look(1000, {{10}, {20}});
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_FALSE(seen->units.at(0)) << "what they did before is not known";
  put(10, 10, 500 + 20, 7 + 11, "0-1");  // 31 of 60 s
  put(10, 11, 500 + 15, 7 + 15, "2");    // half of it
  put(10, 12, 500 + 0.6, 7, "5");        // 1 %
  put(20, 20, 500 + 0.5, 7, "8-9");
  seen = look(1000 + kMinute, {{10}, {20}});
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_TRUE(seen->units.at(0));
  EXPECT_EQ(seen->units[0]->busy, 1U);
  EXPECT_THAT(seen->units[0]->cpus, ElementsAre(0, 1, 2, 5));
  ASSERT_TRUE(seen->units.at(1));
  EXPECT_EQ(seen->units[1]->busy, 0U);
  EXPECT_THAT(seen->units[1]->cpus, IsEmpty()) << "no thread ran for 1 % of the time";
}

TEST_F(ThreadUseTest, FindsManyThreadsOnOneCpu) {
  for (int tid = 10; tid < 14; ++tid) {
    put(10, tid, 0, 0, "3");
  }
  look(1000, {{10}}).value();
  for (int tid = 10; tid < 14; ++tid) {
    put(10, tid, 15, 44, "3");  // a quarter of the CPU each
  }
  const auto seen = look(1000 + kMinute, {{10}}).value();
  ASSERT_TRUE(seen.units.at(0));
  EXPECT_EQ(seen.units[0]->busy, 4U);
  EXPECT_THAT(seen.units[0]->cpus, ElementsAre(3));
}

TEST_F(ThreadUseTest, CountsOnlyCpusThatAreOnline) {
  put(10, 10, 0, 0, "0-7");
  look(1000, {{10}}).value();
  put(10, 10, 60, 0, "0-7");
  const auto seen = look(1000 + kMinute, {{10}}, {0, 1, 9}).value();
  EXPECT_THAT(seen.units.at(0).value().cpus, ElementsAre(0, 1));
}

TEST_F(ThreadUseTest, KnowsThreadsThatBeganSinceTheLastLook) {
  put(10, 10, 500, 0, "0");
  look(1000, {{10}}).value();
  remove(10, 10);
  put(10, 11, 40, 0, "1", 1001);
  put(10, 12, 40, 0, "2", 999);   // it was left out before
  put(10, 10, 35, 0, "4", 1020);  // another thread with the number
  const auto seen = look(1000 + kMinute, {{10}}).value();
  ASSERT_TRUE(seen.units.at(0));
  EXPECT_EQ(seen.units[0]->busy, 2U);
  EXPECT_THAT(seen.units[0]->cpus, ElementsAre(1, 4));
}

TEST_F(ThreadUseTest, UsesTheTimeOfRunningWhereTheKernelCountsNoWaiting) {
  for (const double ran : {100.0, 131.0}) {
    put(10, 10, 0, 0, "0");
    root_.write("proc/10/task/10/schedstat", "0 0 0\n");
    put_stat(10, 10, ran, 10);
    put(10, 11, 0, 0, "1");
    std::filesystem::remove(root_.path() / "proc/10/task/11/schedstat");
    put_stat(10, 11, ran / 10, 10);
    const auto seen = look(1000 + (ran > 100 ? kMinute : 0), {{10}}).value();
    if (ran > 100) {
      EXPECT_EQ(seen.units.at(0).value().busy, 1U);
      EXPECT_THAT(seen.units.at(0).value().cpus, ElementsAre(0, 1));
    }
  }
}

TEST_F(ThreadUseTest, LeavesOutUnitsWithTooManyThreads) {
  for (int tid = 10; tid < 15; ++tid) {
    put(10, tid, 0, 0, "0");
  }
  put(20, 20, 0, 0, "0");
  look(1000, {{10}, {20}}).value();
  put(20, 20, 60, 0, "0");
  put(30, 30, 0, 0, "0");
  put(30, 31, 0, 0, "0");
  const auto seen = look(1000 + kMinute, {{10}, {20}, {30}}).value();
  ASSERT_THAT(seen.units, SizeIs(3));
  EXPECT_FALSE(seen.units[0]) << "five threads of at most four";
  EXPECT_EQ(seen.units[1].value().busy, 1U);
  EXPECT_FALSE(seen.units[2]) << "the seventh thread of at most six";
  EXPECT_EQ(seen.left_out, 2U);
}

TEST_F(ThreadUseTest, SurvivesProcessesThatVanishAndFilesWithNonsense) {
  put(10, 10, 0, 0, "0");
  put(10, 11, 0, 0, "0");
  put(10, 12, 0, 0, "0");
  root_.write("proc/10/task/x/stat", "1");
  look(1000, {{10, 99}}).value();
  put(10, 10, 60, 0, "0-99999999");
  put(10, 11, 60, 0, "3");
  root_.write("proc/10/task/11/status", std::string(20'000, '\xff'));
  root_.write("proc/10/task/12/schedstat", "1 x");
  root_.write("proc/10/task/12/stat", "12 (");
  root_.write("proc/10/task/13/schedstat", std::string(9000, '7'));
  root_.write("proc/10/task/13/stat", "");
  std::filesystem::remove(root_.path() / "proc/10/task/x/stat");
  const auto seen = look(1000 + kMinute, {{10, 99}}).value();
  ASSERT_TRUE(seen.units.at(0));
  EXPECT_EQ(seen.units[0]->busy, 2U);
  EXPECT_THAT(seen.units[0]->cpus, IsEmpty());
}

TEST_F(ThreadUseTest, SaysNothingWhereNoTimeHasPassed) {
  put(10, 10, 5, 0, "0");
  look(1000, {{10}}).value();
  put(10, 10, 6, 0, "0");
  EXPECT_FALSE(look(1000, {{10}}).value().units.at(0));
  EXPECT_FALSE(look(990, {{10}}).value().units.at(0));
}

TEST_F(ThreadUseTest, FailsWhereNoProcessCanBeRead) {
  const auto hidden = look(1000, {{10}, {20}});
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().code, ErrorCode::kPermissionDenied);
  EXPECT_THAT(hidden.error().message, HasSubstr("hidepid"));
  EXPECT_TRUE(look(1000, {})) << "without units there is nothing to read";
  root_.write("proc/uptime", "soon\n");
  const auto seen = use_.look({}, {});
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().message, (root_.path() / "proc/uptime").string() + ": expected a time");
}

}  // namespace
}  // namespace ceems::exporter
