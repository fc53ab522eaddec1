#include "exporter/run/process_tree.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kSelf = 100;

/// A copy of /proc with processes of our choice. CPU times are in seconds.
class FakeProc {
 public:
  struct Times {
    double user = 0;
    double system = 0;
    double of_children = 0;  // user time of those that it has waited for
  };
  void put(int pid, int parent, Times times, int start = 0, std::string_view name = "a.out") {
    const auto tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
    const auto ticks = [&](double seconds) { return static_cast<long>(seconds * tick); };
    root_.write(fmt::format("{}/stat", pid),
                fmt::format("{} ({}) S {} 1 1 0 -1 4194304 1 1 0 0 {} {} {} 0 20 0 1 0 {} 4096 50 "
                            "18446744073709551615 1 1 0 0 0\n",
                            pid, name, parent, ticks(times.user), ticks(times.system),
                            ticks(times.of_children), start == 0 ? pid : start));
    root_.write(fmt::format("{}/statm", pid), "100 50 20 1 0 30 0\n");
  }
  void remove(int pid) { std::filesystem::remove_all(root_.path() / std::to_string(pid)); }
  [[nodiscard]] const std::filesystem::path& path() const { return root_.path(); }

 private:
  testing::TempDir root_;
};

TEST(ProcessTree, SumsDescendantsOnly) {
  FakeProc proc;
  proc.put(1, 0, {.user = 500});
  proc.put(kSelf, 1, {.user = 9});
  proc.put(101, kSelf, {.user = 2, .system = 1});
  proc.put(102, 101, {.user = 3});
  proc.put(50, 102, {.user = 4});  // its number is lower, because numbers wrap
  proc.put(103, 1, {.user = 70});
  ProcessTree tree(proc.path(), kSelf, {});
  const TreeUse use = tree.read().value();
  EXPECT_DOUBLE_EQ(use.user_seconds, 9);
  EXPECT_DOUBLE_EQ(use.system_seconds, 1);
  EXPECT_THAT(use.pids, ElementsAre(50, 101, 102));
  EXPECT_EQ(use.memory_held_bytes, 3U * 30U * static_cast<unsigned long>(::sysconf(_SC_PAGESIZE)));
}

TEST(ProcessTree, LosesNothingOfProcessesThatEnd) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 1});
  proc.put(102, 101, {.user = 5});
  ProcessTree tree(proc.path(), kSelf, {});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 6);
  // Its parent has waited for it, after it had used one second more.
  proc.remove(102);
  proc.put(101, kSelf, {.user = 1, .of_children = 6});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 7);
  // And we for the parent.
  proc.remove(101);
  tree.add_reaped(7.5, 0.25);
  const TreeUse use = tree.read().value();
  EXPECT_DOUBLE_EQ(use.user_seconds, 7.5);
  EXPECT_DOUBLE_EQ(use.system_seconds, 0.25);
  EXPECT_THAT(use.pids, IsEmpty());
}

TEST(ProcessTree, NeverDecreases) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 1});
  proc.put(102, 101, {.user = 5});
  ProcessTree tree(proc.path(), kSelf, {});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 6);
  proc.remove(102);  // a parent that ignores SIGCHLD does not get the time of its children
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 6);
  proc.put(101, kSelf, {.user = 2});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 6);
  proc.put(101, kSelf, {.user = 7});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 7);
}

TEST(ProcessTree, KeepsMembersWhoseParentEnds) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 1});
  proc.put(102, 101, {.user = 5});
  ProcessTree tree(proc.path(), kSelf, {});
  EXPECT_TRUE(tree.read());
  proc.remove(101);
  proc.put(102, kSelf, {.user = 6});  // orphans come to us
  tree.add_reaped(1, 0);
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 7);
  EXPECT_THAT(tree.read()->pids, ElementsAre(102));
}

TEST(ProcessTree, TakesAnotherProcessOfTheSameNumberForANewOne) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 5}, 1000);
  ProcessTree tree(proc.path(), kSelf, {});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 5);
  proc.put(101, 1, {.user = 50}, 2000);  // not ours
  tree.add_reaped(5, 0);
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 5);
  EXPECT_THAT(tree.read()->pids, IsEmpty());
}

TEST(ProcessTree, LeavesOutHelpers) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 1});
  proc.put(200, kSelf, {.user = 10});
  proc.put(201, 200, {.user = 20});
  ProcessTree tree(proc.path(), kSelf, {});
  tree.leave_out(200);
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 1);
  EXPECT_THAT(tree.read()->pids, ElementsAre(101));
}

TEST(ProcessTree, AddsOthersOfTheJobFromTheFirstReadOn) {
  FakeProc proc;
  proc.put(300, 1, {.user = 40});
  proc.put(301, 300, {.user = 2});
  ProcessTree tree(proc.path(), kSelf, [](int pid) { return pid == 300 || pid == 400; });
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 0);
  proc.put(300, 1, {.user = 43});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 3);
  EXPECT_THAT(tree.read()->pids, ElementsAre(300, 301));
  proc.put(400, 1, {.user = 1});  // began since, so all of it counts
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 4);
  proc.remove(300);  // its parent is not in the job
  proc.remove(301);
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 4);
  proc.put(400, 1, {.user = 2});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 5);
}

TEST(ProcessTree, SurvivesFilesThatAreNone) {
  FakeProc proc;
  proc.put(101, kSelf, {.user = 1});
  std::filesystem::create_directory(proc.path() / "102");
  std::filesystem::create_directory(proc.path() / "0");
  std::filesystem::create_directory(proc.path() / "99999999999999999999");
  ProcessTree tree(proc.path(), kSelf, {});
  EXPECT_DOUBLE_EQ(tree.read()->user_seconds, 1);
  ProcessTree nothing("/does/not/exist", kSelf, {});
  EXPECT_FALSE(nothing.read());
}

TEST(ProcessStat, IsReadWhateverTheName) {
  const std::string rest = " S 7 1 1 0 -1 4194304 1 1 0 0 11 12 13 14 20 0 1 0 555 4096 66 1\n";
  for (const char* name : {"a", "a b", ")) S 1 (", "\xff\n", ""}) {
    const auto stat = parse_process_stat(fmt::format("5 ({}){}", name, rest));
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->parent, 7);
    EXPECT_FALSE(stat->ended);
    EXPECT_EQ(stat->user_ticks, 24U);
    EXPECT_EQ(stat->system_ticks, 26U);
    EXPECT_EQ(stat->start_ticks, 555U);
    EXPECT_EQ(stat->resident_pages, 66U);
  }
  EXPECT_TRUE(parse_process_stat("5 (a) Z 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0")->ended);
  EXPECT_FALSE(parse_process_stat(""));
  EXPECT_FALSE(parse_process_stat("5 (a) S 7 1"));
  EXPECT_FALSE(parse_process_stat("5 a S 7 1"));
}

}  // namespace
}  // namespace ceems::exporter::run
