#include "report/plain_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::report {
namespace {

using ::testing::ElementsAre;

TEST(PlainText, ShowsNothingElsewhere) {
  EXPECT_EQ(plain_text("a\x1b[31mb\nc\x7f"), "a\uFFFD[31mb\uFFFDc\uFFFD");
  EXPECT_EQ(plain_text("a\u202Eb\u2028c\u200F"), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(plain_text("\xff\xc3"), "\uFFFD\uFFFD");
  EXPECT_EQ(plain_text("größer ✓"), "größer ✓");
}

TEST(PlainText, HasAFormInAscii) {
  EXPECT_EQ(to_ascii("größer · 12–15 % é"), "groesser - 12-15 % e");
  EXPECT_EQ(to_ascii("✓\xff"), "??");
}

TEST(PlainText, IsBrokenAtBlanks) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("abcdefghij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(wrap("a äöüßäö", 4), ElementsAre("a", "äöüß", "äö"));
  EXPECT_THAT(wrap("", 4), ElementsAre(""));
  for (const std::string& line : wrap(std::string(1000, 'x') + " y z", 60)) {
    EXPECT_LE(columns_of(line), 60U);
  }
}

}  // namespace
}  // namespace ceems::report
