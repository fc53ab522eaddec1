#include "exporter/collectors/lustre_jobs.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

const host::LustreTarget kScratch{.filesystem = "scratch", .metadata = false};

std::string job(std::string_view id, std::uint64_t read_bytes) {
  return fmt::format("- job_id: {}\n  read_bytes: {{ samples: 1, unit: bytes, sum: {} }}\n", id,
                     read_bytes);
}

class LustreJobsTest : public ::testing::Test {
 protected:
  /// One round with the lists of these targets.
  void read(const std::vector<std::pair<std::string, std::string>>& lists) {
    jobs_.begin();
    for (const auto& [target, list] : lists) {
      EXPECT_TRUE(jobs_.add(target, kScratch, "job_stats:\n" + list));
    }
    jobs_.end();
  }
  /// "unit or text: bytes read", sorted.
  std::string shown() {
    std::vector<std::string> lines;
    jobs_.each([&](const LustreJobSums& sums) {
      lines.push_back(fmt::format("{}{}:{} ", sums.unit,
                                  sums.text.empty() ? "" : "'" + sums.text + "'",
                                  sums.values.read_bytes));
    });
    std::ranges::sort(lines);
    std::string text;
    for (const std::string& line : lines) {
      text += line;
    }
    return text;
  }
  std::uint64_t other() {
    std::uint64_t bytes = 0;
    jobs_.each_other([&](const LustreJobSums& sums) {
      EXPECT_EQ(sums.text, "other");
      bytes += sums.values.read_bytes;
    });
    return bytes;
  }

  LustreJobs jobs_{3, std::make_unique<const RE2>(R"((\d+)(?::.*)?)")};
};

TEST_F(LustreJobsTest, SumsTargetsAndNodesOfAJob) {
  read({{"OST0", job("7", 100) + job("7:1000:n1", 20)}, {"OST1", job("7:1000:n2", 3)}});
  EXPECT_EQ(shown(), "7:123 ");
  EXPECT_EQ(other(), 0U);
}

TEST_F(LustreJobsTest, NeverFallsWhenATargetForgetsTheJob) {
  read({{"OST0", job("7", 100)}, {"OST1", job("7", 50)}});
  read({{"OST0", job("7", 100)}, {"OST1", ""}});
  EXPECT_EQ(shown(), "7:150 ");
  read({{"OST0", job("7", 110)}, {"OST1", job("7", 5)}});
  EXPECT_EQ(shown(), "7:165 ");
  read({{"OST0", job("7", 110)}, {"OST1", job("7", 2)}});  // forgotten and back within one round
  EXPECT_EQ(shown(), "7:167 ");
  read({{"OST0", job("7", 110)}});  // the target has moved to another server
  EXPECT_EQ(shown(), "7:167 ");
  read({{"OST0", ""}});
  EXPECT_EQ(shown(), "");
  EXPECT_EQ(jobs_.left_out(), 0U);
}

TEST_F(LustreJobsTest, KeepsWhatItKnewOfAListWithAnError) {
  read({{"OST0", job("7", 100) + job("8", 10)}});
  jobs_.begin();
  EXPECT_FALSE(jobs_.add("OST0", kScratch, job("7", 101) + "- job_id: 8\n  read_bytes: {\n"));
  jobs_.end();
  EXPECT_EQ(shown(), "7:101 8:10 ");
  jobs_.begin();
  jobs_.keep("OST0");
  jobs_.keep("unknown");
  jobs_.end();
  read({{"OST0", job("7", 102) + job("8", 12)}});
  EXPECT_EQ(shown(), "7:102 8:12 ");
}

TEST_F(LustreJobsTest, SumsWhatHasNoPlaceAndGivesFreePlacesToTheNext) {
  read({{"OST0", job("1", 1) + job("2", 2) + job("3", 3) + job("4", 4) + job("5", 5)}});
  EXPECT_EQ(shown(), "1:1 2:2 3:3 ");
  EXPECT_EQ(other(), 9U);
  EXPECT_EQ(jobs_.left_out(), 2U);
  EXPECT_EQ(jobs_.shown(), 3U);
  read({{"OST0", job("2", 2) + job("3", 3) + job("4", 4) + job("5", 5)}});
  // The place of job 1 became free in that round, so job 4 has it in the next one.
  read({{"OST0", job("2", 2) + job("3", 3) + job("4", 14) + job("5", 25)}});
  EXPECT_EQ(shown(), "2:2 3:3 4:10 ");
  EXPECT_EQ(other(), 29U);
  EXPECT_EQ(jobs_.left_out(), 1U);
}

TEST_F(LustreJobsTest, LeavesHalfOfThePlacesToUnits) {
  read({{"OST0", job("dd.0", 1) + job("cp.1000", 2) + job("7.1000", 4) + job("8", 8)}});
  EXPECT_EQ(shown(), "'cp.1000':2 'dd.0':1 8:8 ");
  EXPECT_EQ(other(), 4U);
}

TEST_F(LustreJobsTest, RefusesTextThatIsNoJobId) {
  read({{"OST0", job("\"a b\"", 1) + job("other", 2) + job("\"\\x01\"", 4) +
                     job(std::string(65, '1'), 8) + job("", 16)}});
  EXPECT_EQ(shown(), "");
  EXPECT_EQ(other(), 31U);
  EXPECT_EQ(jobs_.left_out(), 5U);
  read({{"OST0", ""}});
  EXPECT_EQ(jobs_.left_out(), 0U);
  EXPECT_EQ(other(), 31U);
}

TEST_F(LustreJobsTest, CountsOperationsOnce) {
  read({{"OST0",
         "- job_id: 7\n"
         "  read_bytes: { samples: 2, unit: bytes, sum: 10 }\n"
         "  read: { samples: 2, unit: usecs, sum: 300 }\n"
         "  mkdir: { samples: 3, unit: usecs, sum: 40 }\n"
         "  create: { samples: 4, unit: reqs }\n"
         "  rename: { samples: 5, unit: reqs }\n"
         "  samedir_rename: { samples: 5, unit: reqs }\n"
         "  parallel_rename_file: { samples: 5, unit: reqs }\n"
         "  punch: { samples: 6, unit: reqs }\n"}});
  LustreJobValues values;
  jobs_.each([&](const LustreJobSums& sums) { values = sums.values; });
  EXPECT_EQ(values.microseconds, 340U);
  EXPECT_EQ(values.operations, (std::array<std::uint64_t, 11>{2, 0, 0, 0, 0, 0, 7, 0, 5, 0, 6}));
}

TEST_F(LustreJobsTest, StopsAtTheLargestNumber) {
  read({{"OST0", job("7", 18446744073709551615ULL)}, {"OST1", job("7", 9)}});
  EXPECT_EQ(shown(), "7:18446744073709551615 ");
}

TEST_F(LustreJobsTest, SeparatesFileSystemsAndKindsOfTargets) {
  jobs_.begin();
  const auto list = job("7", 1);
  EXPECT_TRUE(jobs_.add("a", kScratch, list));
  EXPECT_TRUE(jobs_.add("b", {.filesystem = "home", .metadata = false}, list));
  EXPECT_TRUE(jobs_.add("c", {.filesystem = "home", .metadata = true}, list));
  jobs_.end();
  EXPECT_EQ(shown(), "7:1 7:1 7:1 ");
}

TEST_F(LustreJobsTest, RemembersABoundedNumberOfIds) {
  std::string list;
  for (std::size_t i = 0; i < LustreJobs::kMaxRemembered + 10; ++i) {
    list += fmt::format("- job_id: p{}.0\n", i);
  }
  read({{"OST0", list}});
  EXPECT_EQ(jobs_.not_counted(), 10U);
  EXPECT_EQ(jobs_.left_out(), LustreJobs::kMaxRemembered - 2);
  read({{"OST0", job("7", 1)}});
  EXPECT_EQ(jobs_.not_counted(), 1U);  // the others are forgotten at the end of this round
  read({{"OST0", job("7", 1)}});
  EXPECT_EQ(shown(), "7:1 ");
}

}  // namespace
}  // namespace ceems::exporter
