#include <algorithm>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "exporter/profile/format/call_tree.h"
#include "exporter/profile/format/flame_graph.h"
#include "exporter/profile/format/test_profile.h"

namespace ceems::exporter::profile {
namespace {

TEST(Folded, HasOneLineForEachStackWithTheOutermostFrameFirst) {
  EXPECT_EQ(folded(small_profile()),
            "app;main;run.py run 1\n"
            "app;main;solve 7\n"
            "app;main;solve;copy_page 2\n");
  EXPECT_EQ(folded(Profile{}), "");
}

TEST(Folded, JoinsStacksThatLookTheSame) {
  Profile profile = profile_of({"f", "g"}, 3);
  profile.frames.push_back(profile.frames[2]);
  profile.stacks.push_back({.frames = {3, 1, 0}, .samples = 4});
  EXPECT_EQ(folded(profile), "p;f;g 7\n");
}

TEST(Folded, NoNameCanForgeAFrameOrALine) {
  EXPECT_EQ(folded(profile_of({"a;b", "c 9\nroot;evil 99", "\r\xff"})),
            "p;a:b;c 9 root:evil 99; \uFFFD 1\n");
}

TEST(Folded, HoldsTenThousandStacks) {
  const Profile profile = many_stacks(10'000);
  const std::string text = folded(profile);
  std::uint64_t total = 0;
  std::string_view rest = text;
  std::string_view last;
  while (!rest.empty()) {
    const std::string_view line = take_until(rest, '\n');
    const std::size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string_view::npos);
    EXPECT_EQ(std::ranges::count(line, ';'), 20);
    EXPECT_NE(line.substr(0, space), last);
    last = line.substr(0, space);
    total += parse_int(line.substr(space + 1)).value_or(0);
  }
  std::uint64_t expected = 0;
  for (const Stack& stack : profile.stacks) {
    expected += stack.samples;
  }
  EXPECT_EQ(total, expected);
}

TEST(CallTree, CountsRecursionOnce) {
  const CallTree tree(profile_of({"f", "f", "g", "f"}, 5));
  ASSERT_EQ(tree.functions().size(), 2U);
  EXPECT_EQ(tree.frames().at(tree.functions()[0].frame).name, "f");
  EXPECT_EQ(tree.functions()[0].self, 5U);
  EXPECT_EQ(tree.functions()[0].total, 5U);
  EXPECT_EQ(tree.functions()[1].self, 0U);
  EXPECT_EQ(tree.functions()[1].total, 5U);
  EXPECT_EQ(tree.samples(), 5U);
}

TEST(CallTree, TellsFunctionsOfTwoModulesApart) {
  Profile profile = profile_of({"init", "init"}, 2);
  profile.frames[1].module = "liba.so";
  profile.frames[2].module = "libb.so";
  const CallTree tree(profile);
  EXPECT_EQ(tree.functions().size(), 2U);
}

TEST(CallTree, CutsStacksThatAreTooDeep) {
  const CallTree tree(profile_of(std::vector<std::string>(5000, "recurse"), 3));
  ASSERT_EQ(tree.nodes().size(), CallTree::kMaxDepth + 1);
  EXPECT_EQ(tree.nodes().back().depth, CallTree::kMaxDepth);
  EXPECT_EQ(tree.nodes().back().self, 3U);
  EXPECT_EQ(tree.samples(), 3U);
}

}  // namespace
}  // namespace ceems::exporter::profile
