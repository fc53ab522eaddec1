#include "jobscript/amounts.h"

#include <optional>

#include <gtest/gtest.h>

namespace ceems::jobscript {
namespace {

TEST(Size, HasManyForms) {
  constexpr double kMebi = 1 << 20;
  EXPECT_EQ(parse_size("9 Mbytes", 1), 9 * kMebi);
  EXPECT_EQ(parse_size("3.5G", 1), 3.5 * 1024 * kMebi);
  EXPECT_EQ(parse_size("8388608kb", 1), 8192 * kMebi);
  EXPECT_EQ(parse_size("8gb", 1), 8192 * kMebi);
  EXPECT_EQ(parse_size("348kb", 1), 348 * 1024);
  EXPECT_EQ(parse_size("0b", 1), 0);
  EXPECT_EQ(parse_size("4kw", 1), 4 * 8 * 1024);
  EXPECT_EQ(parse_size("512", kMebi), 512 * kMebi);
  EXPECT_EQ(parse_size("128.00", kMebi), 128 * kMebi);
  for (const char* const text :
       {"", "-", "-1M", "M", "1.2.3G", "5 apples", "nan", "9e30", "99999E"}) {
    EXPECT_EQ(parse_size(text, 1), std::nullopt) << text;
  }
}

TEST(LsfMemory, IsReservedPerHostTaskOrJob) {
  constexpr double kMebi = 1024 * 1024;
  constexpr double kGibi = 1024 * kMebi;
  EXPECT_EQ(reserved_memory("rusage[mem=128.00]", 2, 8), 256 * kMebi);
  EXPECT_EQ(reserved_memory("rusage[ngpus_physical=2.00/host,mem=1G/task]", 2, 8), 8 * kGibi);
  EXPECT_EQ(reserved_memory("rusage[mem=4.00GB/job:duration=8h]", 2, 8), 4 * kGibi);
  EXPECT_EQ(reserved_memory("select[mem>4] order[mem]", 2, 8), 0);
  EXPECT_EQ(reserved_memory("rusage[mem=x] rusage[", 2, 8), 0);
}

TEST(SlurmSeconds, HaveSixForms) {
  EXPECT_EQ(slurm_seconds("90"), 5400);
  EXPECT_EQ(slurm_seconds("5:30"), 330);
  EXPECT_EQ(slurm_seconds("12:00:00"), 43200);
  EXPECT_EQ(slurm_seconds("2-12"), 216000);
  EXPECT_EQ(slurm_seconds("2-12:30"), 217800);
  EXPECT_EQ(slurm_seconds("1-00:00:30"), 86430);
  for (const char* const text : {"", "0", "UNLIMITED", "-1", "1:2:3:4", "x", "1-", "1-2-3", "-",
                                 "99999999999999999999", "100000-0"}) {
    EXPECT_EQ(slurm_seconds(text), std::nullopt) << text;
  }
}

TEST(ClockSeconds, AreOfPbs) {
  EXPECT_EQ(clock_seconds("12:00:00"), 43200);
  EXPECT_EQ(clock_seconds("600"), 600);
  EXPECT_EQ(clock_seconds("1:2:3:4"), 0);
  EXPECT_EQ(clock_seconds("soon"), 0);
}

TEST(ArrayTasks, AreCounted) {
  EXPECT_EQ(array_tasks("0-15"), 16);
  EXPECT_EQ(array_tasks("1,4,9-11%2"), 5);
  EXPECT_EQ(array_tasks("1-10:3"), 4);
  EXPECT_EQ(array_tasks("7"), 1);
  for (const char* const text : {"", "x", "5-1", "1-", "1-9:0", "-3", "0-9999999", "1,,2"}) {
    EXPECT_EQ(array_tasks(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace ceems::jobscript
