#include "base/text/node_list.h"

#include <string_view>

#include <gmock/gmock.h>

namespace ceems {
namespace {

using ::testing::ElementsAre;

TEST(NodeList, Expands) {
  const auto expand = [](std::string_view text) { return expand_node_list(text).value(); };
  EXPECT_THAT(expand("compute-[0-2]"), ElementsAre("compute-0", "compute-1", "compute-2"));
  EXPECT_THAT(expand("n[08-11]-x.y"), ElementsAre("n08-x.y", "n09-x.y", "n10-x.y", "n11-x.y"));
  EXPECT_THAT(expand("a-[0-1]-b-[3-4],c"),
              ElementsAre("a-0-b-3", "a-0-b-4", "a-1-b-3", "a-1-b-4", "c"));
  EXPECT_THAT(expand("c[01-02,5]"), ElementsAre("c01", "c02", "c5"));
  EXPECT_THAT(expand("r[1,3]n[1-2]x"), ElementsAre("r1n1x", "r1n2x", "r3n1x", "r3n2x"));
  EXPECT_THAT(expand(""), ElementsAre());
}

TEST(NodeList, RefusesWhatIsNone) {
  for (const char* bad : {"a[0-1,3", "a]", "a[3-1]", "a[x-y]", "a[]", "a[1-2", ",", "a,", "a,,b",
                          "[", "a[0-999999999]", "a[0-999][0-999]", "a[99999999999999999999]",
                          "a[1", "a[1-]", "a[-1]", "a[1-2-3]"}) {
    EXPECT_FALSE(expand_node_list(bad)) << bad;
  }
}

}  // namespace
}  // namespace ceems
