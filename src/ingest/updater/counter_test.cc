#include "ingest/updater/counter.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::ingest {
namespace {

using tsdb::Sample;

double sum_of(const std::vector<Increment>& increments) {
  double sum = 0;
  for (const Increment& increment : increments) {
    sum += increment.value;
  }
  return sum;
}

double counter_increase(std::span<const Sample> samples,
                        double before,
                        std::int64_t from_ms,
                        std::int64_t to_ms) {
  return sum_of(counter_increments(samples, before, from_ms, to_ms));
}

double origin_increase(std::vector<CounterSeries> series,
                       std::int64_t from_ms,
                       std::int64_t to_ms) {
  return sum_of(origin_increments(std::move(series), from_ms, to_ms));
}

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
      // Multiples of 1/8 are added without rounding.
      value = random() % 20 == 0 ? 0 : value + static_cast<double>(random() % 100) / 8;
      samples.push_back({time, value});
    }
    const double whole = counter_increase(samples, 0, 0, 200'000);
    double parts = 0;
    for (std::int64_t at = 0; at < 200'000;) {
      const std::int64_t next =
          std::min<std::int64_t>(at + 1 + static_cast<std::int64_t>(random() % 20'000), 200'000);
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

TEST(Gauge, EverySampleStandsForTheTimeSinceTheOneBeforeIt) {
  const std::vector<Sample> samples{{10, 1}, {20, 3}, {30, NAN}, {40, 100}, {99, 5}};
  const Life life{.start_ms = 5, .end_ms = 0};
  EXPECT_EQ(gauge_area(samples, life, 0, 30, 50)->value_ms, 1 * 5 + 3 * 10);
  EXPECT_EQ(gauge_area(samples, life, 20, 50, 50)->value_ms, 100 * 20);
  EXPECT_EQ(gauge_area(samples, life, 0, 30, 50)->unseen_ms, 0);
  // The last value of a unit that ended lasts up to its end.
  EXPECT_EQ(gauge_area(samples, {.start_ms = 5, .end_ms = 45}, 20, 90, 50)->value_ms,
            100 * 20 + 100 * 5);
  // Samples after the end do not count.
  EXPECT_EQ(gauge_area(samples, {.start_ms = 5, .end_ms = 45}, 20, 200, 500)->value_ms,
            100 * 20 + 5 * 5);
}

TEST(Gauge, LongSilencesAreUnseen) {
  const std::vector<Sample> samples{{10, 1}, {500, 3}};
  const auto area = gauge_area(samples, {.start_ms = 0, .end_ms = 0}, 0, 600, 50);
  EXPECT_EQ(area->value_ms, 1 * 10 + 3 * 50);
  EXPECT_EQ(area->unseen_ms, 440);
  EXPECT_EQ(gauge_area(samples, {.start_ms = 0, .end_ms = 0}, 100, 200, 50), std::nullopt);
  EXPECT_EQ(gauge_area({}, {.start_ms = 0, .end_ms = 0}, 100, 200, 50), std::nullopt);
  // The unit's first sample is after the window and will cover this time.
  EXPECT_EQ(gauge_area(samples, {.start_ms = 490, .end_ms = 0}, 450, 495, 50)->value_ms, 0);
}

TEST(Gauge, AreasAddUpHoweverTheTimeIsCut) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    const auto start = static_cast<std::int64_t>(random() % 20'000);
    const auto end = start + 1 + static_cast<std::int64_t>(random() % 150'000);
    std::vector<Sample> samples;
    for (std::int64_t time = start + static_cast<std::int64_t>(random() % 3000);
         time < end + 15'000; time += 1 + static_cast<std::int64_t>(random() % 3000)) {
      samples.push_back({time, static_cast<double>(random() % 100)});
    }
    constexpr std::int64_t kReach = 5000;
    constexpr std::int64_t kSettle = 4000;
    const Life life{.start_ms = start, .end_ms = end};
    const auto whole = gauge_area(samples, life, 0, 300'000, kReach);
    double parts = 0;
    for (std::int64_t at = 0; at < end;) {
      const std::int64_t next = at + 1 + static_cast<std::int64_t>(random() % 20'000);
      // The loop does the same: the end of a unit that runs at the window's end is not known.
      const bool ended = end <= next;
      const Life known{.start_ms = start, .end_ms = ended ? end : 0};
      const std::int64_t last = next + kSettle;
      std::vector<Sample> seen;
      std::ranges::copy_if(samples, std::back_inserter(seen), [&](const Sample& sample) {
        return sample.time_ms > at - kReach && sample.time_ms <= last;
      });
      if (const auto area = gauge_area(seen, known, at, ended ? last : next, kReach);
          area && start < next) {
        parts += area->value_ms;
      }
      at = next;
    }
    // Samples after the end add nothing, so it does not matter how many were visible.
    ASSERT_NEAR(parts, whole ? whole->value_ms : 0, 1e-6) << "round " << round;
  }
}

}  // namespace
}  // namespace ceems::ingest
