#include "store/sums/unit_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "store/test_database.h"

namespace ceems::store {
namespace {

TEST(PlanSpans, WithoutSumsTheUnitsAreRead) {
  const auto plan = plan_spans({5, 10 * kSpanMs}, {});
  EXPECT_TRUE(plan.runs.empty());
  ASSERT_EQ(plan.rest.size(), 1U);
  EXPECT_EQ(plan.rest[0].from_ms, 5);
  EXPECT_EQ(plan.rest[0].to_ms, 10 * kSpanMs);
}

TEST(PlanSpans, EveryMomentIsCoveredOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Spans known;
    for (std::int64_t number = 0; number < 100; ++number) {
      for (int level = 0; level < 3; ++level) {
        if (random() % 3 != 0) {
          known.emplace(level, number);
        }
      }
    }
    const std::int64_t from = static_cast<std::int64_t>(random() % 120) * kSpanMs / 2;
    const TimeRange range{from, from + static_cast<std::int64_t>(random() % 100) * kSpanMs / 3};
    const auto plan = plan_spans(range, known);
    std::vector<TimeRange> pieces = plan.rest;
    std::size_t spans = 0;
    for (const auto& run : plan.runs) {
      for (auto number = run.first; number <= run.last; ++number, ++spans) {
        EXPECT_TRUE(known.contains({run.level, number}));
        const auto width = span_width(run.level);
        pieces.push_back({number * width, (number + 1) * width - 1});
      }
    }
    EXPECT_EQ(spans, plan.spans);
    std::ranges::sort(pieces, {}, &TimeRange::from_ms);
    std::int64_t at = range.from_ms;
    for (const auto& piece : pieces) {
      ASSERT_EQ(piece.from_ms, at);
      at = piece.to_ms + 1;
    }
    ASSERT_EQ(at, range.to_ms + 1);
  }
}

TEST(PlanSpans, RangesFarFromAllSumsTakeNoTime) {
  const Spans known{{0, 100}};
  const auto plan = plan_spans({0, std::int64_t{1} << 60}, known);
  EXPECT_EQ(plan.spans, 1U);
  EXPECT_EQ(plan.rest.size(), 2U);
  EXPECT_TRUE(plan_spans({-5, 1000 * kSpanMs}, known).runs.empty());
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(plan_spans({0, kLast}, known).rest.back().to_ms, kLast);
  EXPECT_EQ(plan_spans({kLast - 1, kLast}, known).rest.size(), 1U);
}

class UnitSumsTest : public EveryDatabase {
 protected:
  [[nodiscard]] std::vector<UsageGroup> usage(TimeRange range,
                                              bool terminated,
                                              bool daily = false) const {
    CurrentUsageQuery query;
    query.rows.members.everybody = true;
    query.updated = range;
    query.terminated_only = terminated;
    query.daily = daily;
    query.by_groupname = true;
    query.maps.fill(true);
    auto groups = db_->reader().current_usage(query);
    EXPECT_TRUE(groups) << groups.error().message;
    return groups.value_or(std::vector<UsageGroup>{});
  }
  /// What stats() counts, a cluster a line.
  [[nodiscard]] std::string counts(const std::vector<std::string>& clusters = {}) const {
    auto rows = db_->reader().stats(clusters, std::nullopt);
    EXPECT_TRUE(rows) << rows.error().message;
    std::string lines;
    while (rows && (*rows)->next().value_or(false)) {
      for (std::size_t column = 0; column < stat_fields().size(); ++column) {
        lines += fmt::format("{}{}", column == 0 ? "" : " ", (*rows)->text(column));
      }
      lines += "\n";
    }
    return lines;
  }
  static void expect_equal(const std::vector<UsageGroup>& some,
                           const std::vector<UsageGroup>& others) {
    ASSERT_EQ(some.size(), others.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      EXPECT_EQ(
          some[i].username + some[i].project + some[i].groupname + some[i].cluster_id,
          others[i].username + others[i].project + others[i].groupname + others[i].cluster_id);
      EXPECT_EQ(some[i].num_units, others[i].num_units);
      for (std::size_t map = 0; map < some[i].maps.size(); ++map) {
        ASSERT_EQ(some[i].maps[map].size(), others[i].maps[map].size());
        for (const auto& [name, value] : some[i].maps[map]) {
          EXPECT_NEAR(value, others[i].maps[map].at(name), 1e-9 * std::abs(value) + 1e-12) << name;
        }
      }
    }
  }

  std::mt19937 random_{11};
};
INSTANTIATE_TEST_SUITE_P(All,
                         UnitSumsTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

TEST_P(UnitSumsTest, AnswersAreThoseOfTheUnits) {
  std::vector<model::Unit> running;
  int number = 0;
  constexpr int kHours = 90;
  for (int hour = 0; hour < kHours; ++hour) {
    const std::int64_t start = kNow + hour * kHour;
    std::vector<model::Unit> units;
    std::vector<model::Unit> still;
    for (int i = 0; i < 4; ++i) {
      auto unit = job(std::to_string(number++), start + 1 + i);
      unit.username = "user" + std::to_string(random_() % 3);
      unit.groupname = "group" + std::to_string(random_() % 2);
      running.push_back(unit);
    }
    for (auto& unit : running) {
      unit.total_time_seconds = {{"walltime", 3600.0}, {"alloc_cputime", random_() % 7200}};
      with(unit, model::Metric::kTotalCpuEnergyUsageKwh,
           {{"total", 0.001 * static_cast<double>(random_() % 999)}});
      unit.has_metric[0] = random_() % 3 != 0;
      unit.metric(model::Metric::kAvgCpuUsage) = {{"global", static_cast<double>(random_() % 100)}};
      if (random_() % 4 == 0) {
        unit.ended_at_ts = start + kHour / 2;
      } else if (random_() % 9 != 0) {  // some are never heard of again
        still.push_back(unit);
      }
      units.push_back(unit);
    }
    running = std::move(still);
    write(start, start + kHour, units);
    if (hour == 40) {
      ASSERT_TRUE(db_->writer().purge(kNow + 3 * kHour));
    }
  }
  EXPECT_GT(std::stoi(text("SELECT count(*) FROM ceems_unit_spans WHERE level = 0")), 15);
  EXPECT_GT(std::stoi(text("SELECT count(*) FROM ceems_unit_spans WHERE level = 1")), 1);
  const std::vector<TimeRange> ranges{{kNow, kNow + kHours * kHour},
                                      {kNow - 1, kNow + kHours * kHour - 1},
                                      {kNow + kHour + 5, kNow + 77 * kHour},
                                      {kNow + 16 * kHour, kNow + 32 * kHour - 1},
                                      {0, kNow + 1000 * kDay}};
  std::vector<std::vector<UsageGroup>> with_sums;
  for (const auto& range : ranges) {
    with_sums.push_back(usage(range, false));
    with_sums.push_back(usage(range, true));
  }
  execute("DELETE FROM ceems_unit_spans");
  std::size_t index = 0;
  for (const auto& range : ranges) {
    for (const bool terminated : {false, true}) {
      SCOPED_TRACE(index);
      expect_equal(with_sums[index++], usage(range, terminated));
    }
  }
  EXPECT_FALSE(with_sums[0].empty());
}

TEST_P(UnitSumsTest, AnswersOfDaysAndCountsAreThoseOfTheRows) {
  constexpr int kDays = 50;
  int number = 0;
  for (int day = 0; day < kDays; ++day) {
    const std::int64_t start = kNow + day * kDay;
    std::vector<model::Unit> units;
    for (int i = 0; i < 4; ++i) {
      auto unit = job(std::to_string(number++), start + 1 + i);
      unit.username = "user" + std::to_string(random_() % 3);
      unit.project = "project" + std::to_string(random_() % 2);
      unit.ended_at_ts = random_() % 4 == 0 ? 0 : start + kHour;
      with_times(unit, static_cast<double>(random_() % 3600), static_cast<double>(random_() % 999));
      with(unit, model::Metric::kAvgCpuUsage, {{"global", static_cast<double>(random_() % 100)}});
      units.push_back(unit);
    }
    write(start, start + kDay, units);
    if (day == 30) {
      ASSERT_TRUE(db_->writer().purge(kNow + 3 * kDay));
    }
  }
  EXPECT_GE(std::stoi(text("SELECT count(*) FROM ceems_unit_spans WHERE level = 8")), 3);
  EXPECT_GE(std::stoi(text("SELECT count(*) FROM ceems_unit_spans WHERE level < 5")), 200);
  const std::vector<TimeRange> ranges{
      {kNow, kNow + kDays * kDay}, {kNow + 5 * kDay, kNow + 45 * kDay}, {0, kNow + 1000 * kDay}};
  std::vector<std::vector<UsageGroup>> with_sums;
  for (const auto& range : ranges) {
    with_sums.push_back(usage(range, false, true));
  }
  const std::string counted = counts();
  const std::string of_none = counts({"elsewhere"});
  execute("DELETE FROM ceems_unit_spans");
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SCOPED_TRACE(i);
    expect_equal(with_sums[i], usage(ranges[i], false, true));
  }
  EXPECT_FALSE(with_sums[0].empty());
  EXPECT_EQ(counted, counts());
  EXPECT_EQ(of_none, "");
  EXPECT_THAT(counted, ::testing::StartsWith("hpc "));
}

TEST_P(UnitSumsTest, SumsOfDaysAreReallyReadAndGoWhenADayChanges) {
  auto unit = job("1", kNow + 1);
  with_times(unit, 60, 60);
  write(kNow, kNow + kHour, {unit});
  write(kNow + kHour, kNow + 30 * kDay, {});
  const auto days_summed = [this] {
    return std::stoi(text("SELECT count(*) FROM ceems_unit_spans WHERE level = 8"));
  };
  for (int round = 0; round < 100 && days_summed() < 2; ++round) {  // half a second each
    write(kNow + 30 * kDay + round, kNow + 30 * kDay + round + 1, {});
  }
  const TimeRange month{kNow - 20 * kDay, kNow + 30 * kDay};
  ASSERT_EQ(usage(month, false, true).size(), 1U);
  execute("UPDATE ceems_unit_sums SET num_units = 70 + num_units");
  EXPECT_EQ(usage(month, false, true)[0].num_units, 71);
  EXPECT_THAT(counts(), ::testing::HasSubstr(" 71 "));
  ASSERT_TRUE(db_->writer().purge(kNow + 20 * kDay));
  EXPECT_EQ(usage(month, false, true).size(), 0U);
  EXPECT_EQ(counts(), "");
}

TEST_P(UnitSumsTest, SumsAreReallyReadAndGoWhenAUnitChanges) {
  auto old = job("old", kNow + 1);
  with_times(old, 60, 60);
  write(kNow, kNow + kHour, {old});
  write(kNow + kHour, kNow + 12 * kHour, {});
  const TimeRange day{kNow, kNow + kDay};
  ASSERT_EQ(usage(day, false).size(), 1U);
  execute("UPDATE ceems_unit_sums SET num_units = 70 + num_units WHERE level = 0");
  EXPECT_EQ(usage(day, false)[0].num_units, 71);
  // The unit is updated again: its old span no longer holds it.
  write(kNow + 12 * kHour, kNow + 13 * kHour, {old});
  EXPECT_EQ(usage(day, false)[0].num_units, 1);
  EXPECT_EQ(usage({kNow, kNow + 4 * kHour}, false).size(), 0U);
}

}  // namespace
}  // namespace ceems::store
