#include "exporter/energy/account/use_history.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using Use = UnitWatts::Use;

class UseHistoryTest : public testing::Test {
 protected:
  /// Intervals in which the units each used `uses`, and the system one core.
  void run(int times, const std::vector<Use>& uses, double seconds = 1) {
    UseHistory::Means means{.cores = 1, .awake = uses.empty() ? 0.5 : 1};
    for (const Use& use : uses) {
      means.cores += use.cores;
      means.beside_resting += use.beside_resting;
    }
    for (int i = 0; i < times; ++i) {
      history_.advance(seconds, means, uses);
    }
  }
  [[nodiscard]] std::optional<Use> of(std::uint64_t key) const {
    const auto found = std::ranges::find(history_.uses(), key, &Use::key);
    return found == history_.uses().end() ? std::nullopt : std::optional(*found);
  }
  [[nodiscard]] double cores(std::uint64_t key) const { return of(key).value_or(Use{}).cores; }

  UseHistory history_;
};

TEST_F(UseHistoryTest, AveragesOverATimeThatIsOver) {
  run(10, {});
  run(10, {{.key = 1, .cores = 4, .beside_resting = 3}});
  run(10,
      {{.key = 1, .cores = 8, .beside_resting = 4}, {.key = 2, .cores = 2, .beside_resting = 1}});
  const auto means = history_.look_back(5, 20);  // seconds 5 to 25
  ASSERT_TRUE(means);
  EXPECT_NEAR(cores(1), (10 * 4 + 5 * 8) / 20.0, 1e-3);
  EXPECT_NEAR(of(1)->beside_resting, (10 * 3 + 5 * 4) / 20.0, 1e-3);
  EXPECT_NEAR(cores(2), 5 * 2 / 20.0, 1e-3);
  EXPECT_NEAR(means->cores, 1 + 4 + 0.5, 1e-9);
  EXPECT_NEAR(means->awake, (5 * 0.5 + 15) / 20, 1e-9);
  EXPECT_NEAR(means->beside_resting, (10 * 3 + 5 * 5) / 20.0, 1e-9);
}

TEST_F(UseHistoryTest, InterpolatesWithinAnInterval) {
  run(5, {{.key = 1, .cores = 2}}, 4);
  run(5, {{.key = 1, .cores = 6}}, 4);
  ASSERT_TRUE(history_.look_back(17, 4));  // 3 s of the first interval with 6 cores, 1 s before it
  EXPECT_NEAR(cores(1), (1 * 2 + 3 * 6) / 4.0, 1e-3);
}

TEST_F(UseHistoryTest, TakesShortIntervalsTogether) {
  run(40, {{.key = 1, .cores = 2}}, 0.25);
  run(40, {{.key = 1, .cores = 4}}, 0.25);
  ASSERT_TRUE(history_.look_back(0, 20));
  EXPECT_NEAR(cores(1), 3, 1e-3);
  ASSERT_TRUE(history_.look_back(0.5, 0.25));
  EXPECT_NEAR(cores(1), 4, 1e-3);
}

TEST_F(UseHistoryTest, KnowsUnitsThatHaveEnded) {
  run(10, {{.key = 1, .cores = 4}, {.key = 2, .cores = 0}});
  run(20, {{.key = 3, .cores = 1}});
  ASSERT_TRUE(history_.look_back(15, 10));
  EXPECT_NEAR(cores(1), 2, 1e-3);
  EXPECT_FALSE(of(2));  // it never used anything
  EXPECT_TRUE(of(3));
  ASSERT_TRUE(history_.look_back(0, 10));
  EXPECT_FALSE(of(1));
}

TEST_F(UseHistoryTest, ReachesBackThreeMinutes) {
  run(5, {{.key = 1, .cores = 4}});
  EXPECT_FALSE(history_.look_back(0, 6));
  EXPECT_TRUE(history_.look_back(0, 5));
  EXPECT_FALSE(history_.look_back(0, 0));
  run(1000, {{.key = 2, .cores = 7}});
  EXPECT_TRUE(history_.look_back(60, 120));
  EXPECT_NEAR(cores(2), 7, 1e-3);
  EXPECT_FALSE(history_.look_back(100, 120));
}

TEST_F(UseHistoryTest, FindsPlaceForNewUnitsWhereOthersHaveEnded) {
  std::vector<Use> many;
  for (std::uint64_t key = 1; key <= UseHistory::kMaxUnits + 1; ++key) {
    many.push_back({.key = key, .cores = 1});
  }
  run(1, many);
  ASSERT_TRUE(history_.look_back(0, 1));
  EXPECT_EQ(history_.uses().size(), UseHistory::kMaxUnits);
  many.erase(many.begin());  // 1 ends, and the last one gets its place
  run(1, many);
  ASSERT_TRUE(history_.look_back(0, 1));
  EXPECT_EQ(history_.uses().size(), UseHistory::kMaxUnits);
  EXPECT_NEAR(cores(UseHistory::kMaxUnits + 1), 1, 1e-3);
  EXPECT_NEAR(cores(2), 1, 1e-3);
  EXPECT_FALSE(of(1));
}

TEST_F(UseHistoryTest, CountsOnAfterTheStepsWrap) {
  run(3000, {{.key = 1, .cores = 256}});  // 768,000 core-seconds; 2^32 steps are 429,497
  ASSERT_TRUE(history_.look_back(10, 100));
  EXPECT_NEAR(cores(1), 256, 1e-2);
}

}  // namespace
}  // namespace ceems::exporter::energy
