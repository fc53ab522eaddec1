#include "base/json_members.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(JsonMembers, AreTextsAndNumbers) {
  const auto members = JsonMembers::parse(
      R"({"a":"x\"y","n":2.5,"quoted":"4","big":1e999,"o":{"k":[1]},"null":null,"t":true})");
  EXPECT_EQ(members.text("a"), "x\"y");
  EXPECT_EQ(members.number("n"), 2.5);
  EXPECT_EQ(members.text("n"), "2.5");
  EXPECT_EQ(members.number("a"), std::nullopt);
  EXPECT_EQ(members.number("quoted"), std::nullopt);
  EXPECT_EQ(members.number("big"), std::nullopt);
  EXPECT_EQ(members.number("t"), std::nullopt);
  EXPECT_EQ(members.text("o"), R"({"k":[1]})");
  EXPECT_EQ(members.text("null"), "");
  EXPECT_EQ(members.first("none", "t"), "true");
}

TEST(JsonMembers, OfWhatIsNotAnObjectAreNone) {
  for (const std::string_view text : {"", "[]", "null", "{", "{\"a\"", "x"}) {
    EXPECT_EQ(JsonMembers::parse(text).text("a"), "") << text;
  }
  EXPECT_EQ(JsonMembers::parse(R"({"a":1,"b":)").text("a"), "1");  // cut short
}

}  // namespace
}  // namespace ceems
