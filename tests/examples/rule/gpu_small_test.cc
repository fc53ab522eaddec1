// The rule of 15-gpu-small.yml with those that the program carries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/rule_cases.h"

namespace ceems::advice {
namespace {

const config::Node& document() {
  static const auto kDocument =
      config::load_yaml(CEEMS_TEST_ROOT "/examples/rule/15-gpu-small.yml").value();
  return kDocument;
}

TEST(GpuSmall, PassesItsCases) {
  const auto rules = add_carried_rule(core_rules(), document());
  ASSERT_TRUE(rules) << rules.error().message;
  const auto cases = cases_of(document());
  EXPECT_EQ(cases.size(), 1U);
  for (const RuleCase& one : cases) {
    expect_case(one, *rules);
  }
}

TEST(GpuSmall, HasNoKeysThatASiteHasNot) {
  const auto text = "rules:\n- {id: gpu-low, bit: 2}";
  EXPECT_THAT(add_rules(core_rules(), text, "site.yml").error().message,
              ::testing::HasSubstr("rules[0].bit: unknown key"));
}

}  // namespace
}  // namespace ceems::advice
