#include "exporter/unit/process_filter.h"

#include <linux/capability.h>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using std::string_literals::operator""s;

const std::vector<std::string> kProfile{"PROFILE"};

TEST(ProcessFilter, MatchesEntriesThatStartWithAPrefix) {
  EXPECT_TRUE(environment_matches("A=1\0PROFILE=1\0"s, kProfile));
  EXPECT_TRUE(environment_matches("PROFILER=1\0"s, kProfile));
  EXPECT_FALSE(environment_matches("MY_PROFILE=1\0"s, kProfile));
  EXPECT_FALSE(environment_matches("A=PROFILE\0"s, kProfile));
  EXPECT_FALSE(environment_matches("", kProfile));
}

TEST(ProcessFilter, MatchesANameWithEqualsSignExactly) {
  const std::vector<std::string> exact{"PROFILE="};
  EXPECT_TRUE(environment_matches("PROFILE=\0"s, exact));
  EXPECT_FALSE(environment_matches("PROFILER=1\0"s, exact));
}

TEST(ProcessFilter, DropsAnEntryWithoutTerminator) {
  EXPECT_FALSE(environment_matches("A=1\0PROFILE=1"s, kProfile));
}

TEST(ProcessFilter, JoinsArgumentsByBlanks) {
  EXPECT_EQ(command_line_text("a\0-b\0\0c\0\0"s), "a -b  c");
  EXPECT_EQ(command_line_text("\0\0"s), "");
  EXPECT_EQ(command_line_text(""), "");
}

TEST(ProcessFilter, RecognizesProcessesOfSlurmItself) {
  EXPECT_TRUE(is_manager_process("slurm", "slurmstepd: [77.batch]"));
  EXPECT_TRUE(is_manager_process("slurm", "sleep 100000000"));
  EXPECT_TRUE(is_manager_process("slurm", "sleep x sleep 1"));
  EXPECT_TRUE(is_manager_process("slurm", "/bin/bash /var/spool/slurmd/job00077/slurm_script"));
  EXPECT_FALSE(is_manager_process("slurm", "sleep infinity"));
  EXPECT_FALSE(is_manager_process("slurm", "/bin/bash run.sh"));
  EXPECT_FALSE(is_manager_process("slurm", "/x/slurm_script /bin/bash run.sh"));
  EXPECT_FALSE(is_manager_process("k8s", "sleep 1"));
}

TEST(ProcessFilter, KeepsProcessesInOrderAndDropsUnreadableOnes) {
  const testing::TempDir root;
  root.write("1/cmdline", "app\0"s);
  root.write("1/environ", "PROFILE=1\0"s);
  root.write("2/cmdline", "sleep\0"s + "30\0"s);
  root.write("2/environ", "PROFILE=1\0"s);
  root.write("3/cmdline", "");
  root.write("3/environ", "PROFILE=1\0"s);
  root.write("4/cmdline", "app\0"s);
  root.write("5/cmdline", "app\0"s);
  root.write("5/environ", "PROFILE=1\0"s);
  root.write("6/cmdline", "app\0"s);
  root.write("6/environ", "OTHER=1\0"s);
  const ProcessFilter filter(root.path(), "slurm", kProfile);
  EXPECT_EQ(filter.keep(std::vector{5, 2, 3, 4, 1, 6, 7}), (std::vector{5, 1}));
  EXPECT_EQ(filter.capabilities(),
            (std::vector<os::Capability>{CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH}));
}

TEST(ProcessFilter, KeepsEverythingWithoutVariables) {
  const ProcessFilter filter("/nowhere", "slurm", {});
  EXPECT_TRUE(filter.empty());
  EXPECT_EQ(filter.keep(std::vector{5, 2}), (std::vector{5, 2}));
  EXPECT_TRUE(filter.capabilities().empty());
}

}  // namespace
}  // namespace ceems::exporter
