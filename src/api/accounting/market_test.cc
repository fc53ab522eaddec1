#include "api/accounting/market.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

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

TEST(MarketFactors, AreEmissionsByEnergyOfTheBillOfThatTime) {
  MarketFactors factors(
      {market_bill("", 100, 200, 5000, "250"), market_bill("", 200, 300, 1000, "0")});
  EXPECT_DOUBLE_EQ(factors.at("a", 100).value(), 50);  // 250 kg of 5000 kWh
  EXPECT_DOUBLE_EQ(factors.at("a", 199).value(), 50);
  EXPECT_DOUBLE_EQ(factors.at("b", 200).value(), 0);  // supplied without emissions
  EXPECT_FALSE(factors.at("a", 99));
  EXPECT_FALSE(factors.at("a", 300));
  EXPECT_DOUBLE_EQ(factors.at("a", 100).value(), 50);
}

TEST(MarketFactors, AreThoseOfTheClusterBeforeThoseOfTheSite) {
  MarketFactors factors({market_bill("", 0, 100, 1000, "100"), market_bill("a", 0, 50, 100, "30")});
  EXPECT_DOUBLE_EQ(factors.at("a", 10).value(), 300);
  EXPECT_DOUBLE_EQ(factors.at("a", 60).value(), 100);
  EXPECT_DOUBLE_EQ(factors.at("b", 10).value(), 100);
}

TEST(MarketFactors, OfTwoMetersAreOneMean) {
  MarketFactors factors({market_bill("", 0, 100, 1000, "100"), market_bill("", 0, 50, 3000, "0")});
  EXPECT_DOUBLE_EQ(factors.at("a", 10).value(), 25);
  EXPECT_DOUBLE_EQ(factors.at("a", 60).value(), 100);
}

TEST(MarketFactors, AreNotGuessed) {
  MarketFactors factors({market_bill("", 0, 100, 1000, ""), market_bill("", 100, 200, 0, "5"),
                         market_bill("", 200, 300, 10, "1"), market_bill("", 200, 300, 10, "")});
  EXPECT_FALSE(factors.at("a", 50));   // the bill does not say it
  EXPECT_FALSE(factors.at("a", 150));  // no energy to divide it by
  EXPECT_FALSE(factors.at("a", 250));  // one of two bills does not say it
  MarketFactors none({});
  EXPECT_FALSE(none.at("a", 50));
}

}  // namespace
}  // namespace ceems::api
