#include "base/recent_map.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(RecentMap, EvictsTheLeastRecentlyUsed) {
  RecentMap<int> map(4, 10);
  for (const char* const key : {"a", "b", "c", "d"}) {
    map.store(key, *key);
  }
  EXPECT_EQ(map.find("a"), 'a');
  map.store("b", 'B');
  map.store("e", 'e');  // evicts "c": "a" was found and "b" stored again since
  EXPECT_EQ(map.find("c"), std::nullopt);
  map.store("f", 'f');
  EXPECT_EQ(map.find("d"), std::nullopt);
  EXPECT_EQ(map.find("a"), 'a');
  EXPECT_EQ(map.find("b"), 'B');
  EXPECT_EQ(map.find("e"), 'e');
  EXPECT_EQ(map.find("f"), 'f');
}

TEST(RecentMap, MayHoldOneEntryOrNone) {
  RecentMap<int> one(1, 10);
  one.store("a", 1);
  one.store("a", 2);
  EXPECT_EQ(one.find("a"), 2);
  one.store("b", 3);
  EXPECT_EQ(one.find("a"), std::nullopt);
  EXPECT_EQ(one.find("b"), 3);
  RecentMap<int> none(0, 10);
  none.store("a", 1);
  EXPECT_EQ(none.find("a"), std::nullopt);
}

TEST(RecentMap, StoreReplacesTheValue) {
  RecentMap<std::string> map(4, 10);
  map.store("a", "old");
  map.store("a", "new");
  EXPECT_EQ(map.find("a"), "new");
  map.store("b", "b");
  map.store("c", "c");
  map.store("a", "newest");
  EXPECT_EQ(map.find("a"), "newest");
}

TEST(RecentMap, LongKeysAreNotKept) {
  RecentMap<int> map(4, 3);
  map.store("abcd", 1);
  map.store("abc", 2);
  EXPECT_EQ(map.find("abcd"), std::nullopt);
  EXPECT_EQ(map.find("abc"), 2);
}

}  // namespace
}  // namespace ceems
