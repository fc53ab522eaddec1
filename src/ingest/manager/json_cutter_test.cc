#include "ingest/manager/json_cutter.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::ingest {
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
                ElementsAre(R"(:{"a":"}]\""})", ":5", ":[1,2]"));
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
    EXPECT_THAT(found, ElementsAre(R"(jobs  {"n":"]},{\"[\\"})", "jobs  7", R"(jobs  "x,y")",
                                   "errors e {}"))
        << size;
    EXPECT_TRUE(cutter.has_list("jobs") && cutter.has_list("none"));
    EXPECT_FALSE(cutter.has_list("errors") || cutter.has_list("meta"));
  }
}

TEST(JsonCutter, StopsWhereAnElementIsNotTaken) {
  int taken = 0;
  JsonCutter cutter({"a"}, [&](const JsonCutter::Element& /*element*/) -> Result<> {
    return ++taken == 2 ? Result<>(fail(ErrorCode::kParse, "enough")) : Result<>();
  });
  const auto done = cutter.add(R"({"a":[1,2,3]})");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "enough");
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace ceems::ingest
