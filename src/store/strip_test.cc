#include "store/strip.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace ceems::store {
namespace {

TEST(StripText, HasACharacterForEachPart) {
  Strip strip;
  EXPECT_EQ(strip_text(strip), "");
  strip.cpu[0] = 0;
  strip.cpu[1] = 0.5;
  strip.cpu[2] = 1;
  strip.cpu[23] = 1.7;  // more than was reserved
  EXPECT_EQ(strip_text(strip), "0W_...................._");
  strip.gpu[0] = 10.0 / 63;
  EXPECT_EQ(strip_text(strip), "0W_...................._A.......................");
  strip.cpu = {};
  EXPECT_EQ(strip_text(strip), std::string(24, '.') + "A.......................");
  EXPECT_LE(strip_text(strip).size(), 64U);
}

TEST(StripText, LeavesOutWhatIsNoShare) {
  Strip strip;
  strip.cpu[0] = -0.1;
  strip.cpu[1] = std::numeric_limits<double>::quiet_NaN();
  strip.gpu[5] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(strip_text(strip), "");
}

TEST(IsStrip, AcceptsWhatIsWrittenAndNothingElse) {
  const std::string good(24, 'z');
  EXPECT_TRUE(is_strip(good));
  EXPECT_TRUE(is_strip(good + std::string(24, '.')));
  EXPECT_TRUE(is_strip("0123456789ABCDEFGHIJKL-_"));
  for (const std::string& bad :
       {std::string(), std::string(23, '0'), std::string(25, '0'), std::string(47, '0'),
        std::string(72, '0'), std::string(23, '0') + '<', std::string(23, '0') + '\0'}) {
    EXPECT_FALSE(is_strip(bad)) << bad;
  }
}

}  // namespace
}  // namespace ceems::store
