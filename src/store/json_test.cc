#include "store/json.h"

#include <limits>

#include <gtest/gtest.h>

namespace ceems::store {
namespace {

std::string number(double value) {
  std::string out;
  append_metric_number(out, value);
  return out;
}

TEST(MetricNumber, IsAnIntegerOrHasEightDecimals) {
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(-0.0), "0");
  EXPECT_EQ(number(3), "3");
  EXPECT_EQ(number(-3), "-3");
  EXPECT_EQ(number(0.123456789), "0.12345679");
  EXPECT_EQ(number(50.1362011), "50.13620110");
  EXPECT_EQ(number(1e-9), "0.00000000");
  EXPECT_EQ(number(9.3e18), "9300000000000000000.00000000");
  EXPECT_EQ(number(9007199254740993.0), "9007199254740992");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "0");
}

TEST(MetricMap, ReadsWhatTheReferenceWrites) {
  const auto map = parse_metric_map(R"( {"rte_total": 1.5, "owid_total":-2e2,"x":null} )");
  ASSERT_TRUE(map);
  EXPECT_EQ(*map, (model::MetricMap{{"owid_total", -200}, {"rte_total", 1.5}, {"x", 0}}));
  EXPECT_EQ(metric_map_text(*map), R"({"owid_total":-200,"rte_total":1.5,"x":0})");
  std::string shown;
  append_metric_map(shown, *map);
  EXPECT_EQ(shown, R"({"owid_total":-200,"rte_total":1.50000000,"x":0})");
}

TEST(MetricMap, EmptyAndNullAreEmpty) {
  for (const char* text : {"", " ", "null", "{}", " { } "}) {
    const auto map = parse_metric_map(text);
    ASSERT_TRUE(map) << text;
    EXPECT_TRUE(map->empty()) << text;
  }
}

TEST(MetricMap, WhatIsNotFiniteIsZero) {
  const auto map = parse_metric_map(
      R"({"a":NaN,"b":"NaN","c":+Inf,"d":"-infinity","e":"inf","f":-INF,"g":1e999})");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->size(), 7U);
  for (const auto& [name, value] : *map) {
    EXPECT_EQ(value, 0) << name;
  }
}

TEST(MetricMap, RefusesEverythingElse) {
  for (const char* text : {"{", "[]", "1", R"({"a":"1"})", R"({"a":true})", R"({"a":{}})",
                           R"({"a":1,})", R"({"a":01})", R"({"a":1} x)", R"({a:1})",
                           "{\"a\x01\":1}", R"({"a\q":1})", R"({"a":nano})"}) {
    EXPECT_FALSE(parse_metric_map(text)) << text;
  }
  EXPECT_EQ(parse_metric_map("{\"a\":\x02").error().message,
            "expected a JSON object of numbers, got '{\"a\":\\x02'");
}

TEST(StringList, RoundTrips) {
  const std::vector<std::string> list{"a", "b\"c", ""};
  const auto read = parse_string_list(string_list_text(list));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, list);
  EXPECT_TRUE(parse_string_list("null")->empty());
  EXPECT_EQ(parse_string_list(R"(["a",1,{"b":2},"c"])").value(),
            (std::vector<std::string>{"a", "c"}));
  EXPECT_FALSE(parse_string_list("[\"a\""));
  EXPECT_FALSE(parse_string_list("{}"));
}

}  // namespace
}  // namespace ceems::store
