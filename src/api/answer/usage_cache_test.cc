#include "api/answer/usage_cache.h"

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

TEST(UsageCache, EntriesExpireAfter15MinutesHoweverOftenTheyAreUsed) {
  UsageCache cache;
  cache.store("key", 1, 0, "[1]");
  for (std::int64_t minute = 0; minute < 15; ++minute) {
    const auto hit = cache.find("key", 1, minute * kMinuteMs);
    ASSERT_TRUE(hit) << minute;
    EXPECT_EQ(*hit->data, "[1]");
    EXPECT_EQ(hit->expires_ms, 15 * kMinuteMs);
  }
  EXPECT_FALSE(cache.find("key", 1, 15 * kMinuteMs));
}

TEST(UsageCache, KeysAreComparedWhole) {
  UsageCache cache;
  const std::string shared(4096, 'x');
  cache.store(shared + "ada", 1, 0, "ada's");
  cache.store(shared + "bob", 1, 0, "bob's");
  EXPECT_EQ(*cache.find(shared + "ada", 1, 1)->data, "ada's");
  EXPECT_EQ(*cache.find(shared + "bob", 1, 1)->data, "bob's");
  EXPECT_FALSE(cache.find(shared, 1, 1));
}

TEST(UsageCache, ACommitClearsTheCache) {
  UsageCache cache;
  cache.store("a", 1, 0, "old");
  EXPECT_FALSE(cache.find("a", 2, 1));
  cache.store("b", 2, 0, "new");
  EXPECT_FALSE(cache.find("a", 1, 1));
  cache.store("a", 1, 0, "late");  // computed before the commit
  EXPECT_FALSE(cache.find("a", 2, 1));
  EXPECT_TRUE(cache.find("b", 2, 1));
}

TEST(UsageCache, SizeIsBoundedAndAnswersInUseStayValid) {
  UsageCache cache;
  const std::string large(std::size_t{3} << 20U, 'x');
  cache.store("first", 1, 0, large);
  const auto held = cache.find("first", 1, 1);
  cache.store("second", 1, 0, large);
  EXPECT_TRUE(cache.find("first", 1, 1));
  cache.store("third", 1, 0, large);  // takes the place of the least recently used
  EXPECT_TRUE(cache.find("first", 1, 1));
  EXPECT_FALSE(cache.find("second", 1, 1));
  cache.store("third", 1, 0, "small");  // replaces the large one
  cache.store("fourth", 1, 0, large);
  EXPECT_TRUE(cache.find("first", 1, 1));
  EXPECT_EQ(*cache.find("third", 1, 1)->data, "small");
  for (int i = 0; i < 20; ++i) {
    cache.store(std::to_string(i), 1, 0, large);
  }
  EXPECT_FALSE(cache.find("first", 1, 1));
  EXPECT_EQ(*held->data, large);
  EXPECT_TRUE(cache.find("18", 1, 1));
  EXPECT_TRUE(cache.find("19", 1, 1));
  EXPECT_FALSE(cache.find("17", 1, 1));
  cache.store("huge", 1, 0, std::string(UsageCache::kMaxEntryBytes, 'x'));
  EXPECT_FALSE(cache.find("huge", 1, 1));
  EXPECT_TRUE(cache.find("19", 1, 1));
}

}  // namespace
}  // namespace ceems::api
