#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/emissions/provider.h"

namespace ceems::exporter::emissions {
namespace {

constexpr std::string_view kHeading = "alpha_2;alpha_3;name;grams_per_kwh;year;source\n";

TEST(ParseCountryTable, UsesTheLatestYearInAnyOrder) {
  const auto factors = parse_country_table(std::string("# comment\n\n") + std::string(kHeading) +
                                           "AF;AFG;Afghanistan;120;2001;x\n"
                                           "AF;AFG;Afghanistan;110.5;2002;x\n"
                                           "AF;AFG;Afghanistan;130;2000;x\n"
                                           "AF;AFG;Afghanistan;140;;x\n"
                                           "CI;CIV;Côte d'Ivoire;0;;x\n");
  ASSERT_TRUE(factors);
  EXPECT_EQ(*factors, (Factors{{"AF", "Afghanistan", 110.5}, {"CI", "Côte d'Ivoire", 0}}));
}

TEST(ParseCountryTable, NamesTheInvalidLine) {
  for (const char* bad : {"AF;AFG;Afghanistan;120;2001", "af;AFG;Afghanistan;120;2001;x",
                          "AF;AF;A;120;2001;x", "AF;AFG;;120;2001;x", "AF;AFG;A;-1;2001;x",
                          "AF;AFG;A;nan;2001;x", "AF;AFG;A;12;MM;x", "AF;AFG;A;;2001;x"}) {
    const auto factors = parse_country_table(std::string(kHeading) + bad + "\n");
    ASSERT_FALSE(factors) << bad;
    EXPECT_TRUE(factors.error().message.starts_with("line 2: expected 'alpha_2;")) << bad;
  }
  EXPECT_FALSE(parse_country_table(""));
  EXPECT_FALSE(parse_country_table("AF;AFG;Afghanistan;120;2001;x\n"));
}

TEST(CountryFactors, HoldsTheCountriesWithoutZeros) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  EXPECT_GE(factors->size(), 200U);
  EXPECT_TRUE(std::ranges::all_of(*factors, [](const Factor& factor) {
    return factor.grams_per_kwh > 0 && factor.grams_per_kwh < 2000;
  }));
  const auto france = std::ranges::find(*factors, "FR", &Factor::code);
  ASSERT_NE(france, factors->end());
  EXPECT_EQ(france->country, "France");
  EXPECT_NEAR(france->grams_per_kwh, 45, 35);
}

/// The names of Our World in Data, which dashboards of the reference select by, where they differ
/// from ISO 3166-1, and territories that other lists leave out.
TEST(CountryFactors, HasTheNamesAndTerritoriesOfOurWorldInData) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  const std::vector<std::pair<std::string, std::string>> expected{
      {"BM", "Bermuda"},
      {"BN", "Brunei"},
      {"CD", "Democratic Republic of Congo"},
      {"CI", "Cote d'Ivoire"},
      {"CV", "Cape Verde"},
      {"EH", "Western Sahara"},
      {"FK", "Falkland Islands"},
      {"GI", "Gibraltar"},
      {"NA", "Namibia"},
      {"PS", "Palestine"},
      {"RE", "Reunion"},
      {"RU", "Russia"},
      {"SH", "Saint Helena"},
      {"TL", "East Timor"},
      {"TR", "Turkey"},
      {"VG", "British Virgin Islands"},
      {"VI", "United States Virgin Islands"}};
  for (const auto& [code, name] : expected) {
    const auto found = std::ranges::find(*factors, code, &Factor::code);
    ASSERT_NE(found, factors->end()) << code;
    EXPECT_EQ(found->country, name);
  }
}

/// The twelve countries whose numbers in Ember's newer edition are more than 1 % off.
TEST(CountryFactors, HasTheNumbersOfOurWorldInData) {
  const auto factors = country_factors();
  ASSERT_TRUE(factors);
  const std::vector<std::pair<std::string, double>> expected{
      {"AE", 492.69827}, {"AR", 358.94824}, {"BR", 103.212296}, {"BY", 313.6173},
      {"CA", 174.81425}, {"FR", 44.179085}, {"GB", 210.89114},  {"IR", 641.93616},
      {"KG", 163.70107}, {"SV", 101.56249}, {"TJ", 115.87792},  {"UA", 256.21008},
      {"VN", 471.15857}};
  for (const auto& [code, grams] : expected) {
    const auto found = std::ranges::find(*factors, code, &Factor::code);
    ASSERT_NE(found, factors->end()) << code;
    EXPECT_DOUBLE_EQ(found->grams_per_kwh, grams) << code;
  }
}

}  // namespace
}  // namespace ceems::exporter::emissions
