#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ceems::store {

// The column `advice` of ceems_unit_facts: one bit for each rule that has a finding about the unit
// (docs/api/database.md, "Facts of units").

/// What stands for all rules of a site's own among the rules, and its bit.
inline constexpr std::string_view kOtherRule = "other";
inline constexpr int kOtherBit = 25;

struct RuleBit {
  std::string_view id;
  int bit;
};
/// The rules that the program carries. data/advice/generate writes them from data/advice/rules/.
std::span<const RuleBit> rule_bits();

struct AdviceRule {
  std::string_view id;
  /// The bits to look for. Those that no rule of this program has, because it is gone or newer, are
  /// kOtherRule's.
  std::int64_t mask;
};
/// The rules that the program carries and kOtherRule, in the order of their bits.
std::span<const AdviceRule> advice_rules();

/// The bit to store for a rule. All that the program does not carry have kOtherBit.
std::int64_t advice_bit(std::string_view rule);
/// The bits of units that may have a finding of the rule.
std::int64_t advice_mask(std::string_view rule);
/// The bits of all rules except "good", which is not advice.
std::int64_t any_advice();

}  // namespace ceems::store
