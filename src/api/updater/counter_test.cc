#include "api/updater/counter.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using tsdb::Sample;

TEST(Counter, CountsDifferencesAndWholeValuesAfterResets) {
  const std::vector<Sample> samples{{10, 5}, {20, 8}, {30, 2}, {40, 2}, {50, 4}};
  EXPECT_EQ(counter_increase(samples, 0, 0, 100), 5 + 3 + 2 + 0 + 2);
  EXPECT_EQ(counter_increase(samples, 4, 0, 100), 1 + 3 + 2 + 0 + 2);
  EXPECT_EQ(counter_increase(samples, 0, 10, 20), 3);  // (from, to]
  EXPECT_EQ(counter_increase(samples, 0, 15, 45), 3 + 2);
  EXPECT_EQ(counter_increase(samples, 0, 51, 100), 0);
  EXPECT_EQ(counter_increase({}, 0, 0, 100), 0);
}

TEST(Counter, PassesOverWhatIsNoCount) {
  const std::vector<Sample> samples{{10, 1}, {20, NAN}, {30, INFINITY}, {40, -5}, {50, 3}};
  EXPECT_EQ(counter_increase(samples, 0, 0, 100), 3);
}

TEST(Counter, AddsUpToTheSameTotalHoweverTheTimeIsCut) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<Sample> samples;
    double value = 0;
    std::int64_t time = 0;
    while (time < 100'000) {
      time += 1 + static_cast<std::int64_t>(random() % 3000);
      // Multiples of 1/8 add exactly.
      value = random() % 20 == 0 ? 0 : value + static_cast<double>(random() % 100) / 8;
      samples.push_back({time, value});
    }
    const double whole = counter_increase(samples, 0, 0, 200'000);
    double parts = 0;
    for (std::int64_t at = 0; at < 200'000;) {
      const std::int64_t next = std::min<std::int64_t>(at + 1 + random() % 20'000, 200'000);
      parts += counter_increase(samples, 0, at, next);
      at = next;
    }
    ASSERT_EQ(parts, whole) << "round " << round;
  }
}

TEST(Counter, ContinuesAcrossARenamedTargetAndTakesOneOfTwoSights) {
  // The target got another address after 20 s.
  EXPECT_EQ(origin_increase({{.samples = {{30, 9}, {40, 12}}, .before = {}},
                             {.samples = {{10, 5}, {20, 8}}, .before = {}}},
                            0, 100),
            12);
  // The same counter scraped by two jobs.
  EXPECT_EQ(origin_increase({{.samples = {{10, 5}, {20, 8}, {30, 9}}, .before = {}},
                             {.samples = {{11, 5}, {21, 8}, {31, 10}}, .before = {}}},
                            0, 100),
            10);
  EXPECT_EQ(origin_increase({{.samples = {{10, 5}}, .before = 3}}, 0, 100), 2);
}

TEST(Gauge, AveragesTheSamplesOfTheWindow) {
  const std::vector<Sample> samples{{10, 1}, {20, 3}, {30, NAN}, {40, 100}};
  EXPECT_EQ(gauge_mean(samples, 0, 30), 2);
  EXPECT_EQ(gauge_mean(samples, 40, 50), std::nullopt);
}

}  // namespace
}  // namespace ceems::api
