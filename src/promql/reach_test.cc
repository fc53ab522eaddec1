#include "promql/reach.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "promql/parser.h"

namespace ceems::promql {
namespace {

constexpr std::int64_t kMinute = 60'000;

Reach reach(std::string_view query) {
  auto parsed = parse(query);
  EXPECT_TRUE(parsed) << query;
  return parsed ? reach_of(**parsed) : Reach{};
}

TEST(Reach, IsNothingWithoutSelector) {
  EXPECT_EQ(reach("1 + time()"), Reach{});
}

TEST(Reach, GoesBackByRangeAndOffset) {
  EXPECT_EQ(reach("a"), (Reach{.around = TimeSpan{0, 0}}));
  EXPECT_EQ(reach("rate(a[5m])"), (Reach{.around = TimeSpan{-5 * kMinute, 0}}));
  EXPECT_EQ(reach("a offset 1m"), (Reach{.around = TimeSpan{-kMinute, -kMinute}}));
  EXPECT_EQ(reach("a offset -1m"), (Reach{.around = TimeSpan{kMinute, kMinute}}));
  EXPECT_EQ(reach("rate(a[5m] offset 2m)"),
            (Reach{.around = TimeSpan{-7 * kMinute, -2 * kMinute}}));
  EXPECT_EQ(reach("sum by (x) (a offset 3m) / on () group_left rate(b[1m])"),
            (Reach{.around = TimeSpan{-3 * kMinute, 0}}));
}

TEST(Reach, SubqueriesAddUp) {
  EXPECT_EQ(reach("max_over_time(rate(a[5m] offset 1m)[1h:1m] offset 2m)"),
            (Reach{.around = TimeSpan{-68 * kMinute, -3 * kMinute}}));
  EXPECT_EQ(reach("max_over_time(min_over_time(a[10m:])[1h:1m])"),
            (Reach{.around = TimeSpan{-70 * kMinute, 0}}));
}

TEST(Reach, AtLeavesTheTimeOfEvaluation) {
  EXPECT_EQ(reach("a @ 600"), (Reach{.fixed = TimeSpan{600'000, 600'000}}));
  EXPECT_EQ(reach("rate(a[1m] @ 600 offset 1m)"), (Reach{.fixed = TimeSpan{480'000, 540'000}}));
  EXPECT_EQ(reach("a @ start() + b @ end() offset 1m + c"),
            (Reach{.around = TimeSpan{0, 0},
                   .at_start = TimeSpan{0, 0},
                   .at_end = TimeSpan{-kMinute, -kMinute}}));
  EXPECT_EQ(reach("max_over_time(a[1h:1m] @ 7200)"),
            (Reach{.fixed = TimeSpan{3'600'000, 7'200'000}}));
  // The inner "@" wins, wherever the subquery is.
  EXPECT_EQ(reach("max_over_time((a @ 600)[1h:1m] @ 7200)"),
            (Reach{.fixed = TimeSpan{600'000, 600'000}}));
  EXPECT_EQ(reach("max_over_time((a @ start())[1h:1m])"), (Reach{.at_start = TimeSpan{0, 0}}));
}

TEST(Reach, DurationsThatDependOnTheRequestReachEverywhere) {
  constexpr TimeSpan kAll{std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(reach("rate(a[5m * 2] offset (1h - 5m))"),
            (Reach{.around = TimeSpan{-65 * kMinute, -55 * kMinute}}));
  EXPECT_EQ(reach("rate(a[max_of(step(), 1m)])"), (Reach{.around = kAll}));
  EXPECT_EQ(reach("a offset -range()"), (Reach{.around = kAll}));
  EXPECT_EQ(reach("rate(a[1m - 5m])"), (Reach{.around = kAll}));
  EXPECT_EQ(reach("a[step()] @ 600"), (Reach{.fixed = kAll}));
  EXPECT_TRUE(reach("rate(a[5m] smoothed)").looks_ahead);
  EXPECT_TRUE(reach("sum(a smoothed)").looks_ahead);
  EXPECT_FALSE(reach("rate(a[5m] anchored)").looks_ahead);
}

TEST(Reach, RangesThatTheServerChoosesReachEverywhere) {
  constexpr TimeSpan kAll{std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()};
  const auto of = [](std::string_view query) {
    auto parsed = parse(query, {.metricsql = true});
    EXPECT_TRUE(parsed) << query;
    return parsed ? reach_of(**parsed) : Reach{};
  };
  constexpr TimeSpan kNow{0, 0};
  EXPECT_EQ(of("rate(a)"), (Reach{.around = kNow}));
  EXPECT_EQ(of("median_over_time((a[5m]))"), (Reach{.around = TimeSpan{-5 * kMinute, 0}}));
  EXPECT_EQ(of("max_over_time(rate(a[5m])[1h])"), (Reach{.around = TimeSpan{-65 * kMinute, 0}}));
  EXPECT_EQ(of("median by (x) (label_set(sum(a), 'x', 'y'))"), (Reach{.around = kNow}));
  EXPECT_EQ(of("rate(sum(a))"), (Reach{.around = kAll}));
  EXPECT_EQ(of("rollup_rate(1, (sum(a)))"), (Reach{.around = kAll}));
}

TEST(Reach, ValuesOfTheRequestDependOnItsTimes) {
  const auto parsed = parse("a * (end() - start())", {.experimental = true});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(
      reach_of(**parsed),
      (Reach{.around = TimeSpan{0, 0}, .at_start = TimeSpan{0, 0}, .at_end = TimeSpan{0, 0}}));
}

TEST(Reach, TimesDoNotRunOver) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(add_times(Limits::max(), 1), Limits::max());
  EXPECT_EQ(add_times(Limits::min(), -1), Limits::min());
  EXPECT_EQ(add_times(5, -7), -2);
  std::string far = "a offset 292y";
  for (int i = 0; i < 3; ++i) {
    far.insert(0, "max_over_time((").append(")[292y:1y] offset 292y)");
  }
  const Reach found = reach(far);
  ASSERT_TRUE(found.around);
  EXPECT_LT(found.around->from_ms, -1500LL * 365 * 24 * 60 * kMinute);
  EXPECT_LT(found.around->from_ms, found.around->to_ms);
}

}  // namespace
}  // namespace ceems::promql
