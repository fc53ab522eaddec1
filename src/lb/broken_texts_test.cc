#include "lb/broken_texts.h"

#include <gtest/gtest.h>

#include "testing/fake_clock.h"

namespace ceems::lb {
namespace {

TEST(BrokenTexts, AreRefusedToTheirUserForAWhile) {
  testing::FakeClock clock;
  BrokenTexts texts(clock);
  EXPECT_FALSE(texts.refuses("a"));
  texts.note("a", 1);
  EXPECT_FALSE(texts.refuses("a"));
  texts.note("a", 1);
  EXPECT_TRUE(texts.refuses("a"));
  EXPECT_FALSE(texts.refuses("b"));
  texts.note("b", 2);
  EXPECT_TRUE(texts.refuses("b")) << "at two servers";
  clock.advance(BrokenTexts::kRefusedFor);
  EXPECT_FALSE(texts.refuses("a"));
  texts.note("a", 1);
  EXPECT_FALSE(texts.refuses("a")) << "old failures do not count";
}

TEST(BrokenTexts, AreThoseOfQueriesWhateverTheirTimes) {
  const auto key = [](std::string_view user, std::string_view target, std::string_view body = {}) {
    return broken_key(user, gate::ParsedRequest({.method = "GET", .target = target, .body = body}));
  };
  const std::string one = key("alice", "/api/v1/query?query=up&time=1");
  EXPECT_EQ(one, key("alice", "/api/v1/query?query=up&time=2"));
  EXPECT_NE(one, key("bob", "/api/v1/query?query=up&time=1"));
  EXPECT_NE(one, key("alice", "/api/v1/query?query=down&time=1"));
  EXPECT_NE(key("alice", "/Series", "{}"), key("alice", "/Series", "{ }"));
}

}  // namespace
}  // namespace ceems::lb
