#include "base/time/rfc3339.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Rfc3339, ParsesFractionsAndOffsets) {
  EXPECT_EQ(parse_rfc3339_ms("2025-07-07T08:56:58Z"), 1'751'878'618'000);
  EXPECT_EQ(parse_rfc3339_ms("2025-07-07T10:56:58+02:00"), 1'751'878'618'000);
  EXPECT_EQ(parse_rfc3339_ms("2025-07-07T03:26:58.250001-05:30"), 1'751'878'618'250);
  EXPECT_EQ(parse_rfc3339_ms("1970-01-01T00:00:00Z"), 0);
  for (const std::string text :
       {"", "2025-07-07", "2025-07-07T08:56:58", "2025-02-30T08:56:58Z", "2025-07-07T24:00:00Z",
        "2025-07-07T08:56:58Zx", "2025-07-07 08:56:58Z", "1969-12-31T23:59:59Z", "N/A",
        "2025-07-07T08:56:58+2:00", "99999-07-07T08:56:58Z"}) {
    EXPECT_FALSE(parse_rfc3339_ms(text)) << text;
  }
}

}  // namespace
}  // namespace ceems
