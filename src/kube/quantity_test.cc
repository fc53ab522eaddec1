#include "kube/quantity.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::kube {
namespace {

TEST(Quantity, AcceptsAllSuffixesOfKubernetes) {
  const std::vector<std::pair<std::string, double>> cases = {
      {"0", 0},        {"1", 1},        {"250", 250},    {"0.5", 0.5},       {"+2", 2},
      {".5", 0.5},     {"5.", 5},       {"100m", 0.1},   {"1500m", 1.5},     {"3u", 3e-6},
      {"7n", 7e-9},    {"1k", 1e3},     {"2M", 2e6},     {"3G", 3e9},        {"4T", 4e12},
      {"5P", 5e15},    {"6E", 6e18},    {"1Ki", 1024},   {"1.5Mi", 1572864}, {"2Gi", 2147483648.0},
      {"1Ti", 0x1p40}, {"1Pi", 0x1p50}, {"1Ei", 0x1p60}, {"1e3", 1000},      {"12E2", 1200},
      {"5e-1", 0.5},   {"1E+2", 100},
  };
  for (const auto& [text, value] : cases) {
    const auto quantity = parse_quantity(text);
    ASSERT_TRUE(quantity) << text;
    EXPECT_DOUBLE_EQ(*quantity, value) << text;
  }
}

TEST(Quantity, RejectsEverythingElse) {
  for (const std::string text :
       {"",      " 1",   "1 ",  "m",   ".",  "-1",  "--1",   "1mi",   "1KI", "1ki", "1Kib",
        "1.2.3", "0x10", "nan", "inf", "1e", "1e+", "1e999", "1e3Ki", "1,5", "1m "}) {
    EXPECT_FALSE(parse_quantity(text)) << text;
  }
  EXPECT_FALSE(parse_quantity(std::string(100, '1')));
}

}  // namespace
}  // namespace ceems::kube
