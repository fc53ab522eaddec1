#include "api/answer/numbers.h"

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using store::FactKind;

std::string json_of(FactKind kind, std::int64_t number, std::string_view text = {}) {
  std::string out;
  JsonWriter json(out);
  append_json_cell(json, kind, text, number);
  return out;
}

TEST(Numbers, HaveFourDigitsWhereTheyWereMeasured) {
  EXPECT_EQ(json_of(FactKind::kEnergy, 41'234'567'890), "41.23");
  EXPECT_EQ(json_of(FactKind::kEnergy, 1), "1e-09");
  EXPECT_EQ(json_of(FactKind::kEnergy, 0), "0");
  EXPECT_EQ(json_of(FactKind::kPercent, 2242), "22.42");
  EXPECT_EQ(json_of(FactKind::kPercent, 10000), "100");
  EXPECT_EQ(json_of(FactKind::kMeasured, 8'482'563'123), "8483000000");
  EXPECT_EQ(json_of(FactKind::kCount, 274'877'906'944), "274877906944");
  EXPECT_EQ(json_of(FactKind::kMilli, 250), "0.25");
  EXPECT_EQ(json_of(FactKind::kMilli, 64'000), "64");
  EXPECT_EQ(json_of(FactKind::kMoment, 1'767'225'600'000), "1767225600000");
}

TEST(Numbers, AreNullWhereTheyAreNotKnown) {
  for (const FactKind kind : {FactKind::kCount, FactKind::kMilli, FactKind::kPercent,
                              FactKind::kMeasured, FactKind::kEnergy, FactKind::kGrams}) {
    EXPECT_EQ(json_of(kind, -1), "null");
    EXPECT_EQ(json_of(kind, 0), "0");
  }
  EXPECT_EQ(json_of(FactKind::kMoment, 0), "null");
  EXPECT_EQ(json_of(FactKind::kText, 0), "null");
  EXPECT_EQ(json_of(FactKind::kAdvice, 0), "[]");
  EXPECT_EQ(json_of(FactKind::kAdvice, 0b101), R"(["gpu-unused","gpu-low"])");
}

TEST(Rounded, KeepsSignificantDigits) {
  EXPECT_EQ(rounded(123456, 4), 123500);
  EXPECT_EQ(rounded(0.00123456, 4), 0.001235);
  EXPECT_EQ(rounded(99999, 4), 100000);
  EXPECT_EQ(rounded(41.25, 4), 41.25);
  EXPECT_EQ(rounded(0.1, 6), 0.1);
  EXPECT_EQ(rounded(0, 4), 0);
}

}  // namespace
}  // namespace ceems::api
