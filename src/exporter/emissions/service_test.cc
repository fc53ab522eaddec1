#include "exporter/emissions/service.h"

#include <gtest/gtest.h>

namespace ceems::exporter::emissions {
namespace {

TEST(ParseEmapsZones, JoinsExistingNames) {
  const auto zones = parse_emaps_zones(
      R"({"FR":{"zoneName":"France"},
          "US-CAL-CISO":{"countryName":"USA","zoneName":"CAISO","access":["*"]},
          "XX":{"countryName":7},"YY":"text","":{"zoneName":"none"}})");
  ASSERT_TRUE(zones);
  EXPECT_EQ(*zones,
            (std::vector<Zone>{{"FR", "France"}, {"US-CAL-CISO", "USA CAISO"}, {"XX", ""}}));
}

TEST(ParseEmapsZones, UsesOnlyTheNamesWhateverElseAZoneHas) {
  const auto zones = parse_emaps_zones(
      R"({"FR":{"zoneName":"France","countryName":null,"isCommerciallyAvailable":true,"tier":"A",
                "zoneParentKey":null,"subZoneKeys":["FR-COR"],"access":["carbon-intensity/latest"],
                "center":{"lat":46.2}},
          "IT-NO":{"countryName":"Italy","zoneName":["North"],"isTrial":false},
          "DE":{"countryName":true,"zoneName":1.5}})");
  ASSERT_TRUE(zones);
  EXPECT_EQ(*zones, (std::vector<Zone>{{"FR", "France"}, {"IT-NO", "Italy"}, {"DE", ""}}));
}

TEST(ParseEmapsZones, RefusesTextsWithoutZones) {
  for (const char* bad : {"", "[]", "{}", "{\"FR\":1}", "null", "{\"FR\":"}) {
    EXPECT_FALSE(parse_emaps_zones(bad)) << bad;
  }
  std::string many = "{";
  for (int i = 0; i < 2001; ++i) {
    many += (i > 0 ? ",\"Z" : "\"Z") + std::to_string(i) + "\":{}";
  }
  EXPECT_EQ(parse_emaps_zones(many + "}").error().message,
            "expected an object of at most 2000 zones");
  EXPECT_FALSE(parse_emaps_zones(std::string(100'000, '[')));
}

TEST(ParseEmapsIntensity, AcceptsNumbersOfAnyType) {
  EXPECT_EQ(parse_emaps_intensity(R"({"zone":"FR","carbonIntensity":53})"), 53);
  EXPECT_EQ(parse_emaps_intensity(R"({"carbonIntensity":53.25})"), 53.25);
  for (const char* bad :
       {"{}", R"({"carbonIntensity":"53"})", R"({"carbonIntensity":null})",
        R"({"carbonIntensity":1e999})", R"({"error":"Invalid token"})", "<html>"}) {
    EXPECT_FALSE(parse_emaps_intensity(bad)) << bad;
  }
  EXPECT_EQ(parse_emaps_intensity("{}").error().message, "expected a number in 'carbonIntensity'");
}

TEST(ParseRteIntensity, UsesTheFirstResult) {
  EXPECT_EQ(parse_rte_intensity(R"({"total_count":2,"results":[{"taux_co2":20},{"taux_co2":9}]})"),
            20);
  for (const char* bad : {R"({"results":[]})", R"({"results":{}})", R"({"results":[1]})",
                          R"({"results":[{"taux_co2":null}]})", "[]"}) {
    EXPECT_FALSE(parse_rte_intensity(bad)) << bad;
  }
}

TEST(ParseWattTimeToken, MustBeValidInAHeader) {
  EXPECT_EQ(parse_watttime_token(R"({"token":"abc.DEF-1"})").value(), "abc.DEF-1");
  for (const char* bad : {"{}", R"({"token":""})", R"({"token":5})", R"({"token":"a\r\nX: b"})"}) {
    EXPECT_FALSE(parse_watttime_token(bad)) << bad;
  }
}

TEST(ParseWattTimeIntensity, ConvertsPoundsPerMegawattHourToGrams) {
  const auto value = parse_watttime_intensity(R"({"data":[{"value":99},{"value":10}],"meta":{}})");
  ASSERT_TRUE(value);
  EXPECT_DOUBLE_EQ(*value, 4.53592);
}

TEST(ParseWattTimeIntensity, ReportsTheWarningsOfTheService) {
  const auto value = parse_watttime_intensity(
      R"({"data":[],"meta":{"warnings":[{"type":"x","message":"no\nrights"},7,{"message":"old"}]}})");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kNoData);
  EXPECT_EQ(value.error().message, "no data for the region: no\\x0arights; old");
  for (const char* bad :
       {"{}", R"({"data":7})", R"({"data":[{}]})", R"({"data":[{"value":"1"}]})"}) {
    EXPECT_FALSE(parse_watttime_intensity(bad)) << bad;
  }
}

}  // namespace
}  // namespace ceems::exporter::emissions
