#include "base/recent_map.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(RecentMap, ForgetsWhatNobodyAsksFor) {
  RecentMap<int> map(4, 10);
  map.store("a", 1);
  map.store("b", 2);
  map.store("c", 3);  // "a" and "b" are the older half now
  EXPECT_EQ(map.find("a"), 1);
  map.store("d", 4);  // "a" and "c" become older, "b" goes
  EXPECT_EQ(map.find("b"), std::nullopt);
  EXPECT_EQ(map.find("a"), 1);
  EXPECT_EQ(map.find("d"), 4);
}

TEST(RecentMap, TheNewestValueCounts) {
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
  RecentMap<int> none(0, 3);
  none.store("a", 1);
  EXPECT_EQ(none.find("a"), std::nullopt);
}

}  // namespace
}  // namespace ceems
