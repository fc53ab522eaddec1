#include "store/tags.h"

#include <gtest/gtest.h>

namespace ceems::store {
namespace {

TEST(Tags, AllConditionsMustHold) {
  const std::string tags = R"({"partition":"gpu","qos":"long","n":7,"o":{"partition":"x"}})";
  EXPECT_TRUE(has_tags(tags, {}));
  EXPECT_TRUE(has_tags(tags, {{"partition", {"gpu"}}}));
  EXPECT_TRUE(has_tags(tags, {{"partition", {"cpu", "gpu"}}, {"qos", {"long"}}}));
  EXPECT_FALSE(has_tags(tags, {{"partition", {"gpu"}}, {"qos", {"short"}}}));
  EXPECT_FALSE(has_tags(tags, {{"partition", {"gp"}}}));
  EXPECT_FALSE(has_tags(tags, {{"queue", {""}}}));
  EXPECT_FALSE(has_tags(tags, {{"partition", {"x"}}})) << "a tag within a tag";
}

TEST(Tags, OnlyTextsCount) {
  EXPECT_FALSE(has_tags(R"({"n":7})", {{"n", {"7"}}}));
  EXPECT_FALSE(has_tags(R"({"n":["a"]})", {{"n", {"a", "[\"a\"]"}}}));
  EXPECT_FALSE(has_tags(R"({"n":null})", {{"n", {"null", ""}}}));
  EXPECT_TRUE(has_tags(R"({"n":"\u0061\"b"})", {{"n", {"a\"b"}}}));
  EXPECT_FALSE(has_tags(R"({"n":"a","n":"b"})", {{"n", {"a"}}}));
}

TEST(Tags, TextThatIsNotJsonFulfilsNothing) {
  for (const char* text : {"", "null", "[]", R"({"a":"x")", R"({"a":"x"}})", R"({"a" "x"})",
                           R"({"a":"x",})", R"({a:"x"})", R"({"a":"x"} trailing)"}) {
    EXPECT_FALSE(has_tags(text, {{"a", {"x"}}})) << text;
  }
}

}  // namespace
}  // namespace ceems::store
