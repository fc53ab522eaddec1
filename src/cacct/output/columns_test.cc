#include "cacct/output/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;

Columns columns() {
  Columns made({{.title = "A", .least = 3},
                {.title = "B", .right = true, .leave_out = 1},
                {.title = "C", .least = 4}});
  made.add({"abcdefgh", "1", "klmnopqr"});
  made.add({"ab", "20", ""});
  return made;
}

TEST(Columns, AreWholeWhereThereIsRoom) {
  Columns made = columns();
  EXPECT_TRUE(made.fit(22, "…"));  // 8 + 2 + 2 + 2 + 8
  EXPECT_THAT(made.lines(),
              ElementsAre("A          B  C", "abcdefgh   1  klmnopqr", "ab        20"));
}

TEST(Columns, AreCutFromTheLeft) {
  Columns made = columns();
  EXPECT_FALSE(made.fit(21, "…"));
  EXPECT_THAT(made.lines(), ElementsAre("A         B  C", "abcdef…   1  klmnopqr", "ab       20"));
  made = columns();
  EXPECT_FALSE(made.fit(13, "…"));  // 3 + 2 + 2 + 2 + 4
  EXPECT_THAT(made.lines(), ElementsAre("A     B  C", "ab…   1  klm…", "ab   20"));
}

TEST(Columns, AreLeftOutWhereCuttingIsNotEnough) {
  Columns made = columns();
  EXPECT_FALSE(made.fit(12, "…"));
  EXPECT_THAT(made.lines(), ElementsAre("A    C", "ab…  klmnop…", "ab"));
}

TEST(Columns, AreLeftOutWhereAllCellsAreEmpty) {
  Columns made({{.title = "A"}, {.title = "B", .leave_out = 2}});
  made.add({"", ""});
  made.drop_empty();
  EXPECT_THAT(made.lines(), ElementsAre("A", ""));
}

TEST(Shortened, KeepsOneColumnAtLeast) {
  EXPECT_EQ(shortened("abc", 3, "…"), "abc");
  EXPECT_EQ(shortened("abc", 2, "…"), "a…");
  EXPECT_EQ(shortened("abc", 1, "…"), "a…");
}

}  // namespace
}  // namespace ceems::cacct
