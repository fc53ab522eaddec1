#include "store/advice_rules.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::store {
namespace {

constexpr std::int64_t bit(int place) {
  return std::int64_t{1} << place;
}

std::vector<std::string> rules_of(std::int64_t bits) {
  std::vector<std::string> ids;
  for (const auto& [id, mask] : advice_rules()) {
    if ((bits & mask) != 0) {
      ids.emplace_back(id);
    }
  }
  return ids;
}

/// Rows of older versions have these bits.
TEST(AdviceRules, KeepTheirBits) {
  const std::map<std::string, int> old{
      {"gpu-unused", 0}, {"gpu-low", 2},      {"gpu-narrow", 3},  {"cpu-unused-node", 5},
      {"cpu-low", 6},    {"cpu-serial", 7},   {"mem-excess", 10}, {"mem-tight", 11},
      {"oom", 12},       {"time-limit", 13},  {"timeout", 14},    {"nodes-many", 15},
      {"good", 21},      {"gpu-none", 22},    {"idle", 23},       {"node-fail", 24},
      {"other", 25},     {"flavor-large", 26}};
  for (const auto& [rule, place] : old) {
    EXPECT_EQ(advice_bit(rule), bit(place)) << rule;
    EXPECT_THAT(rules_of(bit(place)), ::testing::ElementsAre(rule));
  }
}

TEST(AdviceRules, HaveBitsOfTheirOwnInOrder) {
  std::int64_t seen = 0;
  for (const auto& [id, mask] : advice_rules()) {
    EXPECT_EQ(seen & mask, 0) << id;
    EXPECT_GT(mask, 0) << id;
    EXPECT_EQ(mask & advice_bit(id), advice_bit(id)) << id;
    EXPECT_TRUE(id == kOtherRule || std::has_single_bit(static_cast<std::uint64_t>(mask))) << id;
    seen |= mask;
  }
  EXPECT_EQ(seen, bit(62) - 1);
  EXPECT_TRUE(std::ranges::is_sorted(advice_rules(), {},
                                     [](const AdviceRule& rule) { return advice_bit(rule.id); }));
}

/// A rule that is gone, or one of a newer version, is still shown and found.
TEST(AdviceRules, OfOtherVersionsCountAsOther) {
  for (const int place : {1, 20, 61}) {
    EXPECT_THAT(rules_of(bit(place) | bit(12)), ::testing::UnorderedElementsAre("oom", "other"));
    EXPECT_NE(any_advice() & bit(place), 0);
    EXPECT_NE(advice_mask("of-the-site") & bit(place), 0);
  }
  EXPECT_EQ(advice_bit("of-the-site"), bit(25));
  EXPECT_EQ(advice_mask("oom"), bit(12));
  EXPECT_EQ(any_advice() & bit(21), 0);  // "good" is not advice
}

}  // namespace
}  // namespace ceems::store
