#include "store/advice_rules.h"

#include <algorithm>
#include <vector>

namespace ceems::store {
namespace {

// The column is a signed number of 64 bits, and no bit makes it negative.
constexpr std::int64_t kAllBits = (std::int64_t{1} << 62) - 1;

constexpr std::int64_t mask_of(int bit) {
  return std::int64_t{1} << bit;
}

}  // namespace

std::span<const AdviceRule> advice_rules() {
  static const auto kAll = [] {
    std::vector<RuleBit> rules(rule_bits().begin(), rule_bits().end());
    std::int64_t others = kAllBits;
    for (const RuleBit& rule : rules) {
      others &= ~mask_of(rule.bit);
    }
    rules.push_back({.id = kOtherRule, .bit = kOtherBit});
    std::ranges::sort(rules, {}, &RuleBit::bit);
    std::vector<AdviceRule> all;
    for (const RuleBit& rule : rules) {
      all.push_back({.id = rule.id, .mask = rule.bit == kOtherBit ? others : mask_of(rule.bit)});
    }
    return all;
  }();
  return kAll;
}

std::int64_t advice_bit(std::string_view rule) {
  const auto rules = rule_bits();
  const auto found = std::ranges::find(rules, rule, &RuleBit::id);
  return mask_of(found == rules.end() ? kOtherBit : found->bit);
}

std::int64_t advice_mask(std::string_view rule) {
  const auto rules = advice_rules();
  const auto found = std::ranges::find(rules, rule, &AdviceRule::id);
  return found == rules.end() ? advice_mask(kOtherRule) : found->mask;
}

std::int64_t any_advice() {
  return kAllBits & ~advice_bit("good");
}

}  // namespace ceems::store
