#include "base/json_cutter.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// "key:text" for each element, in parts of this size.
std::vector<std::string> cut(const std::string& member,
                             std::string_view text,
                             std::size_t size,
                             std::string& error) {
  std::vector<std::string> found;
  JsonCutter cutter({member}, [&](const JsonCutter::Element& element) -> Result<> {
    EXPECT_EQ(element.member, member);
    found.push_back(std::string(element.key) + ":" + std::string(element.json));
    return {};
  });
  error.clear();
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    if (auto done = cutter.add(text.substr(0, size)); !done) {
      error = done.error().message;
      return found;
    }
  }
  if (auto done = cutter.finish(); !done) {
    error = done.error().message;
  }
  return found;
}

TEST(JsonCutter, PassesOnTheElementsOfOneMember) {
  std::string error;
  for (const std::size_t size : {1U, 3U, 1000U}) {
    EXPECT_THAT(cut("RECORDS",
                    R"({"COMMAND":"x","RECORDS":[ {"a": "}]\"" }, 5 ,[1,2] ],"N":{"RECORDS":[7]}})",
                    size, error),
                ElementsAre(R"(:{"a": "}]\"" })", ":5", ":[1,2]"));
    EXPECT_EQ(error, "");
    EXPECT_THAT(
        cut("Jobs", R"({"t":1,"Jobs":{"1.s":{"x":{"Jobs":1}},"2[3].s":{}},"u":[{}]})", size, error),
        ElementsAre(R"(1.s:{"x":{"Jobs":1}})", "2[3].s:{}"));
    EXPECT_EQ(error, "");
  }
  EXPECT_THAT(cut("Jobs", R"({"timestamp":1})", 5, error), IsEmpty());
  EXPECT_EQ(error, "");
}

TEST(JsonCutter, SaysWhereTheDocumentBreaks) {
  std::string error;
  cut("Jobs", R"({"Jobs":{"1.s":{"a":1},"2.s":{"b)", 1000, error);
  EXPECT_EQ(error, "the JSON document is incomplete, in or after 2.s");
  for (const char* const text :
       {"", "x", "[]", "{}{}", R"({"Jobs":{}}})", R"({"a"})", "{", R"({"Jobs":[)", R"({"Jobs":[{})",
        R"({"a":")", "{} x", R"({"a","b"})", R"({"Jobs":[])", "<html>"}) {
    cut("Jobs", text, 1000, error);
    EXPECT_NE(error, "") << text;
  }
  cut("Jobs", R"({"Jobs":{"1.s":")" + std::string(5U << 20U, 'x'), 1U << 16U, error);
  EXPECT_THAT(error, HasSubstr("more than 4 MiB"));
  cut("Jobs", R"({"Jobs":[)" + std::string(5U << 20U, '[') + "]}", 1U << 16U, error);
  EXPECT_THAT(error, HasSubstr("more than 4 MiB"));
}

TEST(JsonCutter, SplitsSeveralMembersHoweverTheDocumentIsCutUp) {
  const std::string text = R"( { "meta" : {"a": [1, 2]}, "jobs": [ {"n": "]},{\"[\\"}, 7 , "x,y" ],
    "none": [], "errors": {"e": {}}, "last": true, "jobs": 5 } )";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::vector<std::string> found;
    JsonCutter cutter(
        {"jobs", "errors", "none"}, [&](const JsonCutter::Element& element) -> Result<> {
          found.push_back(fmt::format("{} {} {}", element.member, element.key, element.json));
          return {};
        });
    for (std::size_t at = 0; at < text.size(); at += size) {
      ASSERT_TRUE(cutter.add(std::string_view(text).substr(at, size))) << size;
    }
    EXPECT_TRUE(cutter.finish()) << size;
    EXPECT_THAT(found, ElementsAre(R"(jobs  {"n": "]},{\"[\\"})", "jobs  7", R"(jobs  "x,y")",
                                   "errors e {}"))
        << size;
    EXPECT_TRUE(cutter.has_list("jobs") && cutter.has_list("none"));
    EXPECT_FALSE(cutter.has_list("errors") || cutter.has_list("meta"));
  }
}

TEST(JsonCutter, StopsWhereAnElementIsNotTaken) {
  int taken = 0;
  JsonCutter cutter({"a"}, [&](const JsonCutter::Element& /*element*/) -> Result<> {
    return ++taken == 2 ? Result<>(fail(ErrorCode::kUnavailable, "enough")) : Result<>();
  });
  const auto done = cutter.add(R"({"a":[1,2,3]})");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "enough");
  EXPECT_EQ(taken, 2);
}

std::vector<std::string> cut_jobs(const std::string& text, std::string& problem) {
  std::vector<std::string> found;
  JsonCutter cutter(
      {"Jobs"},
      [&](const JsonCutter::Element& element) -> Result<> {
        if (element.json.find("bad") != std::string_view::npos) {
          return fail(ErrorCode::kParse, "bad {}", element.key);
        }
        found.emplace_back(element.key);
        return {};
      },
      [](std::string_view key) { return key.ends_with(".s"); });
  auto done = cutter.add(text);
  if (done) {
    done = cutter.finish();
  }
  EXPECT_EQ(cutter.taken(), found.size());
  problem = done ? cutter.first_problem() : "error: " + done.error().message;
  return found;
}

TEST(JsonCutter, ResumesBehindADamagedElement) {
  std::string problem;
  for (const std::string bad :
       {R"({"e":"bad\"})", R"({"e":"bad""})", R"({"e":"bad{})", R"({"e":[bad})", R"({bad})",
        R"({"e":"bad }, \"x\": {" })", R"({"bad":1}})", R"({"bad":{"a":1})", R"({bad]}{{})"}) {
    const auto found = cut_jobs(
        R"({"Jobs":{"1.s":{"a":{"b":1}},"2.s":)" + bad + R"(, "3.s" : {"a":"\"}},\"4.s\":{"}}})",
        problem);
    EXPECT_THAT(found, ElementsAre("1.s", "3.s")) << bad;
    EXPECT_EQ(problem, "bad 2.s") << bad;
  }
  // As the last and as the first element.
  EXPECT_THAT(cut_jobs(R"({"Jobs":{"1.s":{},"2.s":{"e":"bad\"}}})", problem), ElementsAre("1.s"));
  EXPECT_EQ(problem, "bad 2.s");
  EXPECT_THAT(cut_jobs(R"({"Jobs":{"2.s":{"e":"bad\"},"3.s":{}}})", problem), ElementsAre("3.s"));
}

TEST(JsonCutter, TakesADamagedDocumentThatEndsEarlyForIncomplete) {
  std::string problem;
  cut_jobs(R"({"Jobs":{"1.s":{"e":"bad\"},"2.s":{"e":)", problem);
  EXPECT_THAT(problem, HasSubstr("error: the JSON document is incomplete"));
  cut_jobs(R"({"Jobs":{"1.s":{"e":"bad\"}, "2.s":{"e":"bad\"})", problem);
  EXPECT_THAT(problem, HasSubstr("error: the JSON document is incomplete"));
}

TEST(MendJson, KeepsTheElementsThatAreValid) {
  const auto mended = mend_json(
      R"({"kind":"x","metadata":{"v":"7","n":null},"items":[{"a":1},{"a":"b"c"},{"a":"\ud800"}],)"
      R"("links":[]})",
      {"metadata", "items", "links"});
  ASSERT_TRUE(mended) << mended.error().message;
  EXPECT_EQ(mended->text,
            "{\"metadata\":{\"v\":\"7\",\"n\":null},\"items\":[{\"a\":1},"
            "{\"a\":\"\uFFFD\"}],\"links\":[]}");
  EXPECT_EQ(mended->left_out, 1U);
  EXPECT_THAT(mended->first_problem, HasSubstr("not valid JSON"));
  EXPECT_FALSE(mend_json(R"({"items":[{"a":1},)", {"items"}));
}

}  // namespace
}  // namespace ceems
