#include "api/answer/entity_tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::MatchesRegex;

net::Request with(std::initializer_list<std::string> tags) {
  net::Request request;
  for (const std::string& tag : tags) {
    request.headers.emplace_back("if-none-match", tag);
  }
  return request;
}

TEST(EntityTag, FollowsFromItsPartsAndTheirBounds) {
  const EntityTags tags;
  EXPECT_EQ(tags.make({"a", "b"}), tags.make({"a", "b"}));
  EXPECT_NE(tags.make({"a", "b"}), tags.make({"ab", ""}));
  EXPECT_NE(tags.make({"a", "b"}), tags.make({"a"}));
  EXPECT_NE(tags.make({"a:1", "b"}), tags.make({"a", "1:b"}));
  EXPECT_NE(tags.make({"a"}), EntityTags().make({"a"}));  // another process
  EXPECT_THAT(tags.make({""}), MatchesRegex("W/\"[A-Za-z0-9_-]+\""));
}

TEST(EntityTag, IsFoundAmongOthersStrongOrWeak) {
  const std::string tag = "W/\"abc\"";
  EXPECT_TRUE(client_has(with({"W/\"abc\""}), tag));
  EXPECT_TRUE(client_has(with({"\"abc\""}), tag));
  EXPECT_TRUE(client_has(with({"\"x,y\" , W/\"abc\""}), tag));
  EXPECT_TRUE(client_has(with({"\"x\"", "W/\"abc\""}), tag));
  for (const char* other : {"", "*", "abc", "\"ab\"", "\"abcd\"", "w/\"abc\"", ",,", "\"abc"}) {
    EXPECT_FALSE(client_has(with({other}), tag)) << other;
  }
  EXPECT_FALSE(client_has(with({}), tag));
}

}  // namespace
}  // namespace ceems::api
