#include "exporter/energy/account/unit_watts.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using Use = UnitWatts::Use;

TEST(UnitWatts, StartsWithTheAverage) {
  UnitWatts watts;
  const std::array units{Use{.key = 1, .cores = 3}, Use{.key = 2, .cores = 1}};
  watts.observe(12, 1, 2, units);
  EXPECT_DOUBLE_EQ(watts.average(), 2);
  EXPECT_DOUBLE_EQ(watts.watts()[0], 6);
  EXPECT_DOUBLE_EQ(watts.watts()[1], 2);
  EXPECT_DOUBLE_EQ(watts.total_watts(), 12);
}

TEST(UnitWatts, LearnsFromUnitsThatStartAndStop) {
  // Unit 1 draws 3 W a core, unit 2 draws 1.5 W.
  UnitWatts watts;
  for (int minute = 0; minute < 20; ++minute) {
    const bool first = minute % 4 != 1;
    const bool second = minute % 4 != 3;
    for (int second_of = 0; second_of < 60; ++second_of) {
      const std::array units{Use{.key = 1, .cores = first ? 8.0 : 0.0},
                             Use{.key = 2, .cores = second ? 16.0 : 0.0}};
      watts.observe(units[0].cores * 3 + units[1].cores * 1.5 + 0.5, 1, 0.2, units);
    }
  }
  const std::array both{Use{.key = 1, .cores = 8}, Use{.key = 2, .cores = 16}};
  watts.observe(48.5, 1, 0.2, both);
  EXPECT_NEAR(watts.watts()[0], 24, 0.5);
  EXPECT_NEAR(watts.watts()[1], 24, 0.5);
}

TEST(UnitWatts, KeepsWhatItLearnedWhenOtherUnitsComeAndGo) {
  UnitWatts watts;
  for (int i = 0; i < 200; ++i) {
    const std::array units{Use{.key = 5, .cores = i % 40 < 20 ? 4.0 : 0.0},
                           Use{.key = 6, .cores = 4}};
    watts.observe(units[0].cores * 4 + 4, 1, 0, units);
  }
  const std::array units{Use{.key = 7, .cores = 0}, Use{.key = 5, .cores = 4},
                         Use{.key = 6, .cores = 4}};
  watts.observe(20, 1, 0, units);
  EXPECT_NEAR(watts.watts()[1], 16, 1);
  EXPECT_NEAR(watts.watts()[2], 4, 1);
}

TEST(UnitWatts, IsBoundedWhateverIsSeen) {
  UnitWatts watts;
  const std::array units{Use{.key = 1, .cores = 2}, Use{.key = 2, .cores = 2}};
  for (int i = 0; i < 1000; ++i) {
    watts.observe(i % 7 == 0 ? 1e9 : 8, 1, 0, units);
    const double least = UnitWatts::kMinWatts * watts.average() * 2;
    const double most = UnitWatts::kMaxWatts * watts.average() * 2;
    for (const double drawn : watts.watts()) {
      ASSERT_GE(drawn, least * (1 - 1e-9));
      ASSERT_LE(drawn, most * (1 + 1e-9));
    }
  }
}

TEST(UnitWatts, CountsByCoresWhileNothingIsKnown) {
  UnitWatts watts;
  const std::array units{Use{.key = 1, .cores = 3}, Use{.key = 2, .cores = 1}};
  watts.observe(0, 1, 1, units);
  EXPECT_EQ(watts.average(), 0);
  EXPECT_EQ(watts.watts()[0], 3);
  EXPECT_EQ(watts.total_watts(), 5);
  watts.observe(10, 1, 1, units);
  EXPECT_DOUBLE_EQ(watts.watts()[0], 6);
  watts.observe(10, 1, 0, {});
  EXPECT_TRUE(watts.watts().empty());
  EXPECT_EQ(watts.total_watts(), 0);
}

TEST(UnitWatts, PutsUnitsBeyondTheLimitTogetherWithTheSystem) {
  UnitWatts watts;
  std::vector<Use> units(UnitWatts::kMaxUnits + 10);
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i] = {.key = i + 1, .cores = 0.5};
  }
  for (int i = 0; i < 30; ++i) {
    watts.observe(300, 1, 17, units);
  }
  ASSERT_EQ(watts.watts().size(), units.size());
  EXPECT_NEAR(watts.total_watts(), 300, 1e-6);
  EXPECT_NEAR(std::accumulate(watts.watts().begin(), watts.watts().end(), 0.0), 266, 1e-6);
}

}  // namespace
}  // namespace ceems::exporter::energy
