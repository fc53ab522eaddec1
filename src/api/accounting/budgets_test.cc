#include "api/accounting/budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using Period = ProjectBudget::Period;

constexpr std::int64_t kNewYear = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

Result<std::vector<ProjectBudget>> budgets_of(const std::string& text) {
  const auto document = config::parse_yaml(text, "budgets.yml");
  return document ? read_budgets(*document, SiteOptions{.currency = "EUR"}, TimeZone())
                  : fail(document.error());
}

std::string budget_error(const std::string& budget) {
  const auto budgets = budgets_of("budgets:\n  - " + budget + "\n");
  return budgets ? "no error" : budgets.error().message;
}

TEST(Budgets, AreRead) {
  const auto budgets = budgets_of(
      "budgets:\n"
      "  - {project: fluids, cluster: hpc-a, unit: kgco2, amount: 1500, period: year}\n"
      "  - {project: optics, amount: 10, period: month, warn: [0.9, 0.5]}\n"
      "  - {project: x, unit: EUR, amount: 1, period: {from: 2026-02-01, to: 2026-03-31}}\n");
  ASSERT_TRUE(budgets) << budgets.error().message;
  ASSERT_EQ(budgets->size(), 3U);
  EXPECT_EQ(budgets->at(0).cluster, "hpc-a");
  EXPECT_EQ(budgets->at(0).unit, BudgetUnit::kKgCo2);
  EXPECT_EQ(budgets->at(0).warn, (std::vector<double>{0.5, 0.8, 1.0}));
  EXPECT_EQ(budgets->at(1).unit, BudgetUnit::kKwh);
  EXPECT_EQ(budgets->at(1).warn, (std::vector<double>{0.5, 0.9}));
  EXPECT_FALSE(budgets->at(1).of_all_projects());
  EXPECT_EQ(budgets->at(2).unit, BudgetUnit::kCost);
  EXPECT_EQ(budgets->at(2).from_ms, kNewYear + 31 * kDayMs);
  EXPECT_EQ(budgets->at(2).to_ms, kNewYear + 90 * kDayMs);  // the last day counts
}

TEST(Budgets, OfAllProjectsAreNoLimitOfAnAccount) {
  const auto budgets = budgets_of("budgets: [{project: '*', amount: 1200000}]\n");
  ASSERT_TRUE(budgets) << budgets.error().message;
  EXPECT_TRUE(budgets->at(0).of_all_projects());
  EXPECT_EQ(sacctmgr_line(budgets->at(0), {}), "# left out: a budget of all projects together\n");
}

TEST(Budgets, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(budget_error("{project: p, amount: 1, unti: kwh}"), HasSubstr("budgets.yml:2"));
  EXPECT_THAT(budget_error("{amount: 1}"), HasSubstr("project"));
  EXPECT_THAT(budget_error("{project: p}"), HasSubstr("above 0"));
  EXPECT_THAT(budget_error("{project: p, amount: 0}"), HasSubstr("above 0"));
  EXPECT_THAT(budget_error("{project: p, amount: .inf}"), HasSubstr("expected a number"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, unit: usd}"), HasSubstr("currency"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, period: week}"), HasSubstr("year, month"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, period: {from: 2026-01-01}}"),
              HasSubstr("2026-12-31"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, period: {from: 2026-02-01, to: 2026-01-01}}"),
              HasSubstr("after"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, warn: [0]}"), HasSubstr("share"));
  EXPECT_THAT(budget_error("{project: p, amount: 1, warn: 0.5}"), HasSubstr("list"));
}

TEST(Budgets, HavePeriodsInTheZoneOfTheServer) {
  const auto paris = TimeZone::find("Europe/Paris").value();
  constexpr std::int64_t kHour = kDayMs / 24;
  ProjectBudget budget{.project = "p", .amount = 1};
  const BudgetPeriod year = period_of(budget, paris, kNewYear);
  EXPECT_EQ(year.name, "2026");
  EXPECT_EQ(year.from_ms, kNewYear - kHour);
  EXPECT_EQ(year.to_ms, kNewYear + 365 * kDayMs - kHour);
  EXPECT_EQ(period_of(budget, paris, kNewYear - 2 * kHour).name, "2025");
  budget.period = Period::kMonth;
  const BudgetPeriod december = period_of(budget, paris, kNewYear - 2 * kHour);
  EXPECT_EQ(december.name, "2025-12");
  EXPECT_EQ(december.to_ms, kNewYear - kHour);
  budget.period = Period::kFixed;
  budget.from_ms = kNewYear - kHour;
  budget.to_ms = kNewYear + kDayMs - kHour;
  EXPECT_EQ(period_of(budget, paris, 0).name, "2026-01-01/2026-01-01");
}

TEST(Budgets, ForecastFromTheMedianOfDays) {
  const TimeZone utc;
  const std::int64_t now = kNewYear + 99 * kDayMs + kDayMs / 2;
  const ProjectBudget budget{.project = "p", .amount = 1000};
  const BudgetPeriod year = period_of(budget, utc, now);
  std::vector<UsedOfDay> days;
  for (int day = 0; day < 99; ++day) {
    // One day of a hundred times as much does not change the forecast.
    days.push_back({.day_ms = kNewYear + day * kDayMs,
                    .amount = day == 90 ? 400 : (day % 2 == 0 ? 3.0 : 5.0)});
  }
  days.push_back({.day_ms = kNewYear - kDayMs, .amount = 1e6});  // before the period
  const BudgetState state = state_of(budget, year, days, utc, now);
  EXPECT_DOUBLE_EQ(state.used, 49 * 3.0 + 49 * 5.0 + 400);
  EXPECT_DOUBLE_EQ(state.burn, 5);  // 13 days of 3, 14 of 5 and one of 400
  // Half of the days differ from it by 2, half by nothing.
  EXPECT_DOUBLE_EQ(state.forecast_low, state.used + 4 * 265.5);
  EXPECT_DOUBLE_EQ(state.forecast_high, state.used + 6 * 265.5);
  EXPECT_EQ(state.state, "warn_0.5");
  EXPECT_TRUE(state.complete);
}

TEST(Budgets, HaveABandAndAState) {
  const TimeZone utc;
  const std::int64_t now = kNewYear + 28 * kDayMs;
  ProjectBudget budget{.project = "p", .amount = 100, .period = Period::kMonth};
  const BudgetPeriod month = period_of(budget, utc, now);
  std::vector<UsedOfDay> days;
  for (int day = 0; day < 28; ++day) {
    days.push_back({.day_ms = kNewYear + day * kDayMs, .amount = day < 14 ? 1 : 3});
  }
  BudgetState state = state_of(budget, month, days, utc, now);
  EXPECT_DOUBLE_EQ(state.burn, 2);
  EXPECT_DOUBLE_EQ(state.forecast_low, 56 + 3 * 1.0);
  EXPECT_DOUBLE_EQ(state.forecast_high, 56 + 3 * 3.0);
  EXPECT_EQ(state.state, "warn_0.5");
  budget.amount = 57;
  EXPECT_EQ(state_of(budget, month, days, utc, now).state, "warn_0.8");
  budget.amount = 56;
  EXPECT_EQ(state_of(budget, month, days, utc, now).state, "over");
  budget.amount = 113;
  EXPECT_EQ(state_of(budget, month, days, utc, now).state, "ok");
  EXPECT_EQ(state_of(budget, {.from_ms = kNewYear, .to_ms = now, .name = ""}, days, utc, now).state,
            "ended");
  // Days without usage count as nothing, a day without a price makes the sum unknown.
  EXPECT_DOUBLE_EQ(state_of(budget, month, {}, utc, now).burn, 0);
  days.front().amount.reset();
  EXPECT_FALSE(state_of(budget, month, days, utc, now).complete);
}

TEST(Budgets, AreWrittenForSlurmOnlyIfNamesAreHarmless) {
  ProjectBudget budget{.cluster = "hpc", .project = "fluids", .amount = 10};
  const BudgetState state{.used = 4};
  EXPECT_EQ(sacctmgr_line(budget, state),
            "sacctmgr -i modify account name=fluids cluster=hpc set GrpTRESMins=energy=21600000\n");
  for (const char* name : {"a;rm -rf /", "$(id)", "-i", "a\nb", "a b", "é"}) {
    budget.project = name;
    EXPECT_TRUE(sacctmgr_line(budget, state).starts_with("# left out")) << name;
    EXPECT_EQ(sacctmgr_line(budget, state).find(name), std::string::npos) << name;
  }
  budget.project = "fluids";
  budget.unit = BudgetUnit::kKgCo2;
  EXPECT_TRUE(sacctmgr_line(budget, state).starts_with("# fluids"));
}

}  // namespace
}  // namespace ceems::api
