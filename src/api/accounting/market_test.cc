#include "api/accounting/market.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"

namespace ceems::api {
namespace {

store::Bill market_bill(const std::string& cluster,
                        std::int64_t start,
                        std::int64_t end,
                        double kwh,
                        const std::string& kgco2) {
  return {.cluster_id = cluster,
          .start_ms = start,
          .end_ms = end,
          .energy = static_cast<std::int64_t>(kwh * 1e9),
          .kgco2 = kgco2};
}

const std::vector<MarketRule> kNoRules;

std::optional<double> grams(MarketFactors& factors, const std::string& cluster, std::int64_t ms) {
  const auto factor = factors.at(cluster, ms);
  return factor ? std::optional(factor->grams) : std::nullopt;
}

TEST(MarketFactors, AreEmissionsByEnergyOfTheBillOfThatTime) {
  MarketFactors factors(
      {market_bill("", 100, 200, 5000, "250"), market_bill("", 200, 300, 1000, "0")}, kNoRules);
  EXPECT_DOUBLE_EQ(grams(factors, "a", 100).value(), 50);  // 250 kg of 5000 kWh
  EXPECT_DOUBLE_EQ(grams(factors, "a", 199).value(), 50);
  EXPECT_DOUBLE_EQ(grams(factors, "b", 200).value(), 0);  // supplied without emissions
  EXPECT_FALSE(factors.at("a", 99));
  EXPECT_FALSE(factors.at("a", 300));
  EXPECT_DOUBLE_EQ(grams(factors, "a", 100).value(), 50);
}

TEST(MarketFactors, AreThoseOfTheClusterBeforeThoseOfTheSite) {
  MarketFactors factors({market_bill("", 0, 100, 1000, "100"), market_bill("a", 0, 50, 100, "30")},
                        kNoRules);
  EXPECT_DOUBLE_EQ(grams(factors, "a", 10).value(), 300);
  EXPECT_DOUBLE_EQ(grams(factors, "a", 60).value(), 100);
  EXPECT_DOUBLE_EQ(grams(factors, "b", 10).value(), 100);
}

TEST(MarketFactors, OfTwoMetersAreOneMean) {
  MarketFactors factors({market_bill("", 0, 100, 1000, "100"), market_bill("", 0, 50, 3000, "0")},
                        kNoRules);
  EXPECT_DOUBLE_EQ(grams(factors, "a", 10).value(), 25);
  EXPECT_DOUBLE_EQ(grams(factors, "a", 60).value(), 100);
}

TEST(MarketFactors, AreNotGuessed) {
  MarketFactors factors({market_bill("", 0, 100, 1000, ""), market_bill("", 100, 200, 0, "5"),
                         market_bill("", 200, 300, 10, "1"), market_bill("", 200, 300, 10, "")},
                        kNoRules);
  EXPECT_FALSE(factors.at("a", 50));   // the bill does not say it
  EXPECT_FALSE(factors.at("a", 150));  // no energy to divide it by
  EXPECT_FALSE(factors.at("a", 250));  // one of two bills does not say it
  MarketFactors none({}, kNoRules);
  EXPECT_FALSE(none.at("a", 50));
}

TEST(MarketFactors, AreConfiguredWhereNoBillSaysThem) {
  const std::vector<MarketRule> rules{
      {.grams = 400, .source = "residual mix"},
      {.from_ms = 100, .to_ms = 300, .grams = 20, .source = "hydro"},
      {.from_ms = 200, .clusters = {"b", "c"}, .grams = 0, .source = "own roof"}};
  MarketFactors factors(
      {market_bill("", 140, 160, 1000, "50"), market_bill("a", 240, 260, 1000, "")}, rules);
  const auto rule = [](std::size_t source, double value) {
    return std::optional(MarketFactor{.grams = value, .source = source});
  };
  EXPECT_EQ(factors.at("a", 99), rule(0, 400));
  EXPECT_EQ(factors.at("a", 100), rule(1, 20));
  ASSERT_TRUE(factors.at("a", 150));
  EXPECT_DOUBLE_EQ(factors.at("a", 150)->grams, 50);
  EXPECT_EQ(factors.at("a", 150)->source, MarketFactor::kBills);
  EXPECT_EQ(factors.at("a", 250), rule(1, 20));  // its bill does not say it
  EXPECT_EQ(factors.at("a", 299), rule(1, 20));
  EXPECT_EQ(factors.at("a", 300), rule(0, 400));
  EXPECT_EQ(factors.at("b", 199), rule(1, 20));
  EXPECT_EQ(factors.at("b", 200), rule(2, 0));
  EXPECT_EQ(factors.at("b", 200), rule(2, 0));
}

Result<MarketRule> read(const std::string& text) {
  const auto document = config::parse_yaml(text, "config.yml");
  const auto zone = TimeZone::find("Europe/Paris").value();
  return document ? read_market_rule(*document, zone) : fail(document.error());
}

TEST(MarketRules, HoldFromTheirFirstDayToTheirLast) {
  const auto rule = read(
      "{from: 2026-01-01, to: 2026-12-31, clusters: [hpc-a], g_kwh: 12.5, source: Énergie verte}");
  ASSERT_TRUE(rule) << rule.error().message;
  EXPECT_EQ(rule->from_ms, 1'767'222'000'000);  // midnight in Paris
  EXPECT_EQ(rule->to_ms, 1'798'758'000'000);    // of 2027-01-01
  EXPECT_EQ(rule->clusters, std::vector<std::string>{"hpc-a"});
  EXPECT_EQ(rule->grams, 12.5);
  EXPECT_EQ(rule->source, "Énergie verte");
  const auto always = read("{g_kwh: 0, source: all hydro}");
  ASSERT_TRUE(always) << always.error().message;
  EXPECT_LT(always->from_ms, 0);
  EXPECT_GT(always->to_ms, 9'000'000'000'000);
  EXPECT_EQ(read("{from: 2026-10-25, to: 2026-10-25, g_kwh: 1, source: a day}")->to_ms,
            read("{from: 2026-10-26, g_kwh: 1, source: the next}")->from_ms);
}

TEST(MarketRules, AreRefusedWithTheirLine) {
  const auto error = [](const std::string& text) {
    const auto rule = read(text);
    return rule ? "no error" : rule.error().message;
  };
  using ::testing::HasSubstr;
  for (const char* factor : {"-1", "5001", "-0.001"}) {
    EXPECT_THAT(error("source: x\ng_kwh: " + std::string(factor)),
                HasSubstr("config.yml:2: g_kwh: expected the emissions"))
        << factor;
  }
  EXPECT_THAT(error("source: x"), HasSubstr("expected the emissions"));
  EXPECT_THAT(error("g_kwh: 1"), HasSubstr("what proves the factor"));
  EXPECT_THAT(error("{g_kwh: 1, source: \"a\\nb\"}"), HasSubstr("what proves the factor"));
  EXPECT_THAT(error("{g_kwh: 1, source: " + std::string(201, 'x') + "}"),
              HasSubstr("what proves the factor"));
  EXPECT_THAT(error("{g_kwh: 1, source: x, from: 2026}"), HasSubstr("expected a date"));
  EXPECT_THAT(error("{g_kwh: 1, source: x, to: 2026-02-30}"), HasSubstr("expected a date"));
  EXPECT_THAT(error("{g_kwh: 1, source: x, from: 2026-02-02, to: 2026-02-01}"),
              HasSubstr("expected the last day"));
  EXPECT_THAT(error("{g_kwh: 1, source: x, until: 2026-02-01}"), HasSubstr("until"));
  EXPECT_THAT(error("{g_kwh: .nan, source: x}"), HasSubstr("expected a number"));
}

}  // namespace
}  // namespace ceems::api
