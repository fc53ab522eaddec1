#include "config/environment.h"

#include <gtest/gtest.h>

namespace ceems::config {
namespace {

std::string expanded(std::string_view text) {
  return expand_environment(text,
                            [](const std::string& name) {
                              return name == "A" || name == "A_1z" ? "<" + name + ">"
                                                                   : std::string();
                            })
      .value();
}

TEST(ExpandEnvironment, ReplacesNames) {
  EXPECT_EQ(expanded("$A ${A} $B."), "<A> <A> .");
  EXPECT_EQ(expanded("$A_1z-$A/${A}_1z$A"), "<A_1z>-<A>/<A>_1z<A>");
  EXPECT_EQ(expanded("# $A"), "# <A>");
  EXPECT_EQ(expanded(""), "");
  EXPECT_EQ(expanded("no variable"), "no variable");
}

TEST(ExpandEnvironment, ReadsOneDollarFromTwo) {
  EXPECT_EQ(expanded("$$ $$A ${$}A"), "$ $A $A");
}

TEST(ExpandEnvironment, TakesASpecialCharacterAsAName) {
  for (const char c : std::string("*#@!?-0123456789")) {
    EXPECT_EQ(expanded(std::string("[$") + c + "x]"), "[x]") << c;
    EXPECT_EQ(expanded(std::string("[${") + c + "}]"), "[]") << c;
  }
  EXPECT_EQ(expand_environment("$1A${?}", [](const std::string& name) { return name; }).value(),
            "1A?");
}

TEST(ExpandEnvironment, DropsBrokenSyntaxAndKeepsLoneDollars) {
  EXPECT_EQ(expanded("a ${} b"), "a  b");
  EXPECT_EQ(expanded("a ${A"), "a A");
  EXPECT_EQ(expanded("100$"), "100$");
  EXPECT_EQ(expanded("$. $ $\n"), "$. $ $\n");
}

TEST(ExpandEnvironment, RefusesTheLiteralToken) {
  const auto refused =
      expand_environment("x [[{$}]]", [](const std::string& name) { return name; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(
      refused.error().message,
      "expanding env vars is not supported with literal template token [[{$}]] in the config file");
}

}  // namespace
}  // namespace ceems::config
