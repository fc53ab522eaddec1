#include "exporter/emissions/country_table.h"

#include <algorithm>

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ceems::exporter::emissions
