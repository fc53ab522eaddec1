#include "api/accounting/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/accounting/options.h"
#include "base/time/durations.h"
#include "testing/temp_dir.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

TimeZone paris() {
  return TimeZone::find("Europe/Paris").value();
}

std::int64_t at(const std::string& local) {
  return paris().parse_local(local).value();
}

Result<PriceOptions> prices_of(const std::string& text) {
  const auto document = config::parse_yaml(text, "prices.yml");
  return document ? read_prices(*document, paris()) : fail(document.error());
}

std::string price_error(const std::string& text) {
  const auto prices = prices_of(text);
  return prices ? "no error" : prices.error().message;
}

constexpr const char* kTimeOfUse =
    "energy:\n"
    "  - time_of_use:\n"
    "      zone: Europe/Paris\n"
    "      otherwise: 0.1\n"
    "      hours:\n"
    "        - {days: [mon-fri], from: \"07:00\", to: \"23:00\", kwh: 0.3}\n"
    "        - {days: [sat, sun], from: \"22:30\", to: \"02:30\", kwh: 0.2}\n";

/// The mean price, without a TSDB.
std::optional<double> mean(const PriceOptions& options,
                           std::int64_t from,
                           std::int64_t to,
                           const std::string& cluster = "hpc") {
  return Costs(options, {}).price(cluster, from, to);
}

TEST(Prices, AreDividedWhereTheyChange) {
  const auto options = prices_of(kTimeOfUse);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_FALSE(options->constant());
  // Friday, 06:00 to 08:00: an hour each.
  EXPECT_NEAR(*mean(*options, at("2026-01-09T06:00:00"), at("2026-01-09T08:00:00")), 0.2, 1e-12);
  EXPECT_NEAR(*mean(*options, at("2026-01-09T06:59:00"), at("2026-01-09T07:00:00")), 0.1, 1e-12);
  EXPECT_NEAR(*mean(*options, at("2026-01-09T07:00:00"), at("2026-01-09T07:00:00")), 0.3, 1e-9);
  // A whole working day has 16 dear hours.
  EXPECT_NEAR(*mean(*options, at("2026-01-08T00:00:00"), at("2026-01-09T00:00:00")),
              (16 * 0.3 + 8 * 0.1) / 24, 1e-12);
  // Hours over midnight are of the day of each moment: Sunday at 00:00 to 02:30, not Monday.
  EXPECT_NEAR(*mean(*options, at("2026-01-11T00:00:00"), at("2026-01-11T02:30:00")), 0.2, 1e-12);
  EXPECT_NEAR(*mean(*options, at("2026-01-12T00:00:00"), at("2026-01-12T02:30:00")), 0.1, 1e-12);
  // The same from one curve in any order, however much it has to grow.
  Costs costs(*options, {});
  for (const int day : {20, 9, 1, 25}) {
    const std::int64_t noon = at("2026-01-01T12:00:00") + (day - 1) * kDayMs;
    const bool weekend = day == 25;
    EXPECT_NEAR(*costs.price("hpc", noon, noon + kHourMs), weekend ? 0.1 : 0.3, 1e-9) << day;
  }
}

TEST(Prices, KnowDaysOnWhichTheClockChanges) {
  const auto options = prices_of(kTimeOfUse);
  ASSERT_TRUE(options);
  // Sunday 2026-03-29 has 23 hours: what lies between 02:00 and 03:00 does not exist.
  const std::int64_t spring = at("2026-03-29T00:00:00");
  EXPECT_NEAR(*mean(*options, spring, spring + 23 * kHourMs),
              (2 + 1.5) * 0.2 / 23 + 19.5 * 0.1 / 23, 1e-9);
  // Sunday 2026-10-25 has 25: 02:00 to 02:30 is there twice.
  const std::int64_t autumn = at("2026-10-25T00:00:00");
  EXPECT_NEAR(*mean(*options, autumn, autumn + 25 * kHourMs),
              ((2 + 0.5 + 0.5 + 1.5) * 0.2 + (25 - 4.5) * 0.1) / 25, 1e-9);
}

TEST(Prices, ChangeWithTheYearAndByCluster) {
  const auto options = prices_of(
      "energy:\n"
      "  - {from: 2025-01-01, kwh: 0.2}\n"
      "  - {from: 2026-01-01, kwh: 0.4}\n"
      "  - {clusters: [cloud], from: 2026-01-01, kwh: 1}\n"
      "gpu_hour: 0.5\n");
  ASSERT_TRUE(options) << options.error().message;
  const std::int64_t new_year = at("2026-01-01T00:00:00");
  EXPECT_NEAR(*mean(*options, new_year - kHourMs, new_year + kHourMs), 0.3, 1e-12);
  EXPECT_NEAR(*mean(*options, new_year - kHourMs, new_year + kHourMs, "cloud"), 0.6, 1e-12);
  EXPECT_FALSE(mean(*options, at("2024-12-31T23:00:00"), new_year));  // no price before
  Costs costs(*options, {});
  EXPECT_EQ(costs.of("hpc", new_year - kHourMs, new_year + kHourMs, 10, 99, 4), 5);
  EXPECT_FALSE(costs.of("hpc", new_year, new_year + kHourMs, std::nullopt, 1, 1));
  EXPECT_FALSE(costs.of("hpc", 0, kHourMs, 1, 1, 1));
}

TEST(Prices, OfExchangesMayBeNegativeOrMissing) {
  auto options = prices_of("energy:\n  - series: {query: spot, cluster: hpc}\n");
  ASSERT_TRUE(options) << options.error().message;
  const std::int64_t start = at("2026-01-09T00:00:00");
  int asked = 0;
  const AskPrices ask = [&](const PriceRule& rule, std::int64_t from, std::int64_t to,
                            std::chrono::milliseconds step) -> Result<PriceSeries> {
    ++asked;
    EXPECT_EQ(rule.query, "spot");
    EXPECT_EQ(rule.series_cluster, "hpc");
    EXPECT_EQ(step.count(), kHourMs / 4);
    PriceSeries series;
    for (std::int64_t t = from; t < to; t += step.count()) {
      if (t < start + 2 * kHourMs) {
        series.emplace_back(t, t < start + kHourMs ? 0.1 : -0.05);
      }
    }
    return series;
  };
  Costs costs(*options, ask);
  EXPECT_NEAR(*costs.price("hpc", start, start + kHourMs), 0.1, 1e-12);
  EXPECT_NEAR(*costs.price("hpc", start + kHourMs / 2, start + 3 * kHourMs / 2), 0.025, 1e-12);
  EXPECT_NEAR(costs.of("hpc", start + kHourMs, start + 2 * kHourMs, 100, 0, 0).value_or(0), -5,
              1e-9);
  EXPECT_EQ(asked, 3);
  // No answer asks more often. What is known stays so.
  EXPECT_FALSE(costs.price("hpc", start - kDayMs, start + kHourMs));
  EXPECT_NEAR(*costs.price("hpc", start, start + kHourMs), 0.1, 1e-12);
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(Costs(*options, ask).price("hpc", start + kHourMs, start + 3 * kHourMs));
  // Without an answer, the other price counts if there is one.
  const AskPrices none = [](const auto&...) -> Result<PriceSeries> {
    return fail(ErrorCode::kUnavailable, "down");
  };
  EXPECT_FALSE(Costs(*options, none).price("hpc", start, start + kHourMs));
  options->rules.front().otherwise = 0.7;
  EXPECT_NEAR(*Costs(*options, none).price("hpc", start, start + kHourMs), 0.7, 1e-12);
  EXPECT_NEAR(*Costs(*options, ask).price("hpc", start + kHourMs, start + 3 * kHourMs), 0.325,
              1e-12);
}

TEST(Prices, AreMultipliedByThePue) {
  auto options = prices_of("energy: [{kwh: 0.2}]\ncore_hour: 0.01\n");
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->constant());
  options->pue = 1.5;
  EXPECT_EQ(Costs(*options, {}).of("any", 0, 0, 10, 100, 0), 4);
  EXPECT_FALSE(Costs(PriceOptions{}, {}).of("any", 0, 0, 10, 100, 0));
}

TEST(Prices, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(price_error("energi: []\n"), HasSubstr("prices.yml:1"));
  EXPECT_THAT(price_error("energy:\n  - {kwh: 0.2, kw: 1}\n"), HasSubstr("prices.yml:2"));
  EXPECT_THAT(price_error("energy:\n  - {from: 2026-01-01}\n"), HasSubstr("expected one of kwh"));
  EXPECT_THAT(price_error("energy:\n  - {kwh: 1, series: {query: x}}\n"),
              HasSubstr("expected one of kwh"));
  EXPECT_THAT(price_error("energy:\n  - {kwh: .nan}\n"), HasSubstr("expected a number"));
  EXPECT_THAT(price_error("energy:\n  - {from: 2026-13-01, kwh: 1}\n"),
              HasSubstr("expected a date"));
  EXPECT_THAT(price_error("energy:\n  - series: {cluster: a}\n"), HasSubstr("PromQL"));
  const std::string begin =
      "energy:\n  - time_of_use:\n      otherwise: 1\n      hours:\n        - ";
  EXPECT_THAT(price_error(begin + "{from: \"7:00\", to: \"08:00\", kwh: 1}\n"), HasSubstr("from"));
  EXPECT_THAT(price_error(begin + "{from: \"07:00\", to: \"24:01\", kwh: 1}\n"), HasSubstr("to"));
  EXPECT_THAT(price_error(begin + "{from: \"07:00\", to: \"07:00\", kwh: 1}\n"),
              HasSubstr("another"));
  EXPECT_THAT(price_error(begin + "{days: [monday], from: \"07:00\", to: \"08:00\", kwh: 1}\n"),
              HasSubstr("mon-fri"));
  EXPECT_THAT(price_error(begin + "{from: \"07:00\", to: \"08:00\"}\n"),
              HasSubstr("price of a kWh"));
  EXPECT_THAT(price_error("energy:\n  - time_of_use: {zone: Mars, otherwise: 1}\n"),
              HasSubstr("Mars"));
}

TEST(AccountingFiles, AreReadFromTheDirectoryOfTheConfiguration) {
  const testing::TempDir dir;
  const std::string directory = dir.path().string();
  SiteOptions site{.currency = "EUR", .pue = 1.2};
  const auto options = [&](const std::string& text) {
    const auto document = config::parse_yaml(text, "c.yml");
    return document ? read_accounting((*document)["accounting"], directory, site, paris())
                    : fail(document.error());
  };
  EXPECT_FALSE(options("")->prices.any());
  EXPECT_FALSE(options("accounting: {prices: nothing.yml}"));
  dir.write("prices.yml", "energy: [{kwh: 0.2}]\n");
  dir.write("budgets.yml", "budgets:\n  - {project: p, unit: eur, amount: 5}\n");
  const auto read = options("accounting: {reconcile: factor}");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->prices.pue, 1.2);
  EXPECT_TRUE(read->billed);
  ASSERT_EQ(read->budgets.size(), 1U);
  EXPECT_EQ(read->budgets.front().unit, BudgetUnit::kCost);
  EXPECT_THAT(options("accounting: {price: x}").error().message, HasSubstr("c.yml:1"));
  EXPECT_FALSE(options("accounting: {reconcile: x}"));
  EXPECT_TRUE(read->market.empty());
  const auto market = options(
      "accounting:\n"
      "  market:\n"
      "    - {g_kwh: 400, source: residual mix}\n"
      "    - {from: 2026-01-01, g_kwh: 0, source: \"certificates 1 to 9\"}\n");
  ASSERT_TRUE(market) << market.error().message;
  ASSERT_EQ(market->market.size(), 2U);
  EXPECT_EQ(market->market[0].grams, 400);
  EXPECT_EQ(market->market[1].from_ms, at("2026-01-01T00:00:00"));
  EXPECT_EQ(market->market[1].source, "certificates 1 to 9");
  EXPECT_THAT(options("accounting: {market: 12}").error().message, HasSubstr("expected a list"));
  EXPECT_THAT(options("accounting:\n  market:\n    - {g_kwh: 1}\n").error().message,
              HasSubstr("c.yml:3: accounting.market"));
  site.prices.kwh = 0.1;
  EXPECT_THAT(options("").error().message, HasSubstr("leave one of the two out"));
  site.prices.kwh.reset();
  site.currency.clear();
  EXPECT_THAT(options("").error().message, HasSubstr("ui.currency"));
}

}  // namespace
}  // namespace ceems::api
