#include "exporter/profile/format/flame_graph.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "exporter/profile/format/test_profile.h"

namespace ceems::exporter::profile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The text between two others; fails the test if they are not there.
std::string between(const std::string& text, std::string_view from, std::string_view to) {
  const std::size_t start = text.find(from);
  const std::size_t end = text.find(to, start + from.size());
  if (start == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "no " << from;
    return {};
  }
  return text.substr(start + from.size(), end - start - from.size());
}

std::string data_of(const std::string& page) {
  return between(page, R"(<script type="application/json" id="data">)", "</script>");
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; ++at) {
    ++found;
  }
  return found;
}

TEST(FlameGraph, HasTheTreeForTheScript) {
  EXPECT_EQ(data_of(flame_graph(small_profile(), "job 42")),
            R"({"rate":97,"kinds":[["process",""],["native",""],["Python","[py]"],)"
            R"(["compiled at run time","[jit]"],["kernel","[k]"]],)"
            R"("frames":[["all","",0],["app","",0],["main","app",1],["solve","libsolve.so",1],)"
            R"(["copy_page","",4],["run.py run","run.py",2]],)"
            R"("nodes":[0,0,10,0,1,1,10,0,2,2,10,0,5,3,1,1,3,3,9,7,4,4,2,2]})");
}

TEST(FlameGraph, HasATableOfTheHottestFunctions) {
  const std::string page = flame_graph(small_profile(), "job 42");
  EXPECT_THAT(page, HasSubstr("<title>Flame graph of job 42</title>"));
  EXPECT_THAT(page, HasSubstr("<p>10 samples at 97 Hz: 0.10 s of CPU time in 30.0 s, from "
                              "2026-01-01 00:00:00 UTC.</p>"));
  const std::string rows = between(page, "<tbody>\n", "</tbody>");
  EXPECT_EQ(count(rows, "<tr>"), 4U);
  EXPECT_TRUE(rows.starts_with(
      R"(<tr><td class="number">70.00</td><td class="number">90.00</td><td class="number">7</td>)"
      R"(<th scope="row" class="name">solve</th><td>native</td><td class="name">libsolve.so</td></tr>)"));
  EXPECT_THAT(rows,
              HasSubstr(R"(<td class="number">20.00</td><td class="number">20.00</td>)"
                        R"(<td class="number">2</td><th scope="row" class="name">copy_page</th>)"
                        R"(<td>kernel</td>)"));
  EXPECT_THAT(page, Not(HasSubstr("samples are not drawn")));
  EXPECT_THAT(page, Not(HasSubstr("more functions")));
}

TEST(FlameGraph, RunsOnlyItsOwnScriptAndLoadsNothing) {
  const std::string page = flame_graph(small_profile(), "job 42");
  const std::string policy =
      between(page, R"(http-equiv="Content-Security-Policy" content=")", "\"");
  const auto hash = [](const std::string& text) {
    return "'sha256-" + crypto::base64_encode(crypto::sha256(text)) + "'";
  };
  EXPECT_EQ(policy, "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " +
                        hash(between(page, "<script>", "</script>")) + "; style-src " +
                        hash(between(page, "<style>", "</style>")));
  for (const std::string_view outside : {"http:", "https:", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(FlameGraph, NoNameCanBecomeMarkup) {
  const std::string evil = R"(</script><script>alert(1)</script><!--{{subject}}"'&)";
  Profile profile = profile_of({evil, "<img src=x onerror=alert(1)>", "a\u2028b\xff"});
  profile.frames[0].name = evil;
  profile.frames[1].module = evil;
  const std::string page = flame_graph(profile, evil);
  EXPECT_EQ(count(page, "<script"), 2U);
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=alert(1)&gt;"));
  EXPECT_THAT(data_of(page), HasSubstr(R"(["\u003cimg src=x onerror=alert(1)\u003e","",1])"));
  EXPECT_THAT(data_of(page), HasSubstr("{{subject}}"));
}

TEST(FlameGraph, SaysWhenThereIsNothing) {
  Profile profile;
  profile.stacks.push_back({.frames = {}, .samples = 3});
  const std::string page = flame_graph(profile, "process 7");
  EXPECT_THAT(page, HasSubstr("No samples: "));
  EXPECT_THAT(page, HasSubstr("<p>0 samples at 97 Hz: 0.00 s of CPU time.</p>"));
  EXPECT_THAT(page, Not(HasSubstr("<canvas")));
  EXPECT_THAT(page, Not(HasSubstr("<table")));
}

TEST(FlameGraph, LeavesOutWhatIsTooSmallToSee) {
  const std::string page = flame_graph(many_stacks(10'000), "job 42");
  EXPECT_THAT(page, HasSubstr(" samples are not drawn."));
  EXPECT_THAT(page, HasSubstr("<p>900 more functions are not listed.</p>"));
  EXPECT_EQ(count(between(page, "<tbody>\n", "</tbody>"), "<tr>"), 100U);
  const std::string nodes = between(data_of(page), R"("nodes":[)", "]");
  const std::size_t drawn = (count(nodes, ",") + 1) / 4;
  EXPECT_LE(drawn, 100'001U);
  EXPECT_GT(drawn, 10'000U);
  EXPECT_LT(page.size(), std::size_t{3} << 20U);
}

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
