#include "api/profiles/flame.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using Level = std::vector<Flame::Node>;
using Texts = std::vector<std::string>;

/// The answer of Pyroscope to a question about a program in which main calls solve and write, and
/// solve calls dot.
constexpr const char* kProgram =
    R"({"flamegraph":{"names":["total","main","solve","write","dot"],)"
    R"("levels":[{"values":["0","100","0","0"]},{"values":["0","100","10","1"]},)"
    R"({"values":["10","60","20","2","5","20","20","3"]},{"values":["30","40","40","4"]}],)"
    R"("total":"100","maxSelf":"40"},"tree":""})";

std::string levels_of(const std::string& values) {
  return R"({"flamegraph":{"names":["a","b"],"levels":[{"values":[)" + values + "]}]}}";
}

TEST(Flame, IsWhatPyroscopeSends) {
  const auto flame = parse_flame(kProgram);
  ASSERT_TRUE(flame) << flame.error().message;
  EXPECT_EQ(flame->names, (Texts{"total", "main", "solve", "write", "dot"}));
  ASSERT_EQ(flame->levels.size(), 4U);
  EXPECT_EQ(flame->levels[0], (Level{{0, 100, 0, 0}}));
  EXPECT_EQ(flame->levels[1], (Level{{0, 100, 10, 1}}));
  EXPECT_EQ(flame->levels[2], (Level{{10, 60, 20, 2}, {75, 20, 20, 3}}));
  EXPECT_EQ(flame->levels[3], (Level{{30, 40, 40, 4}}));
  EXPECT_EQ(flame->left_out, 0U);
}

TEST(Flame, IsEmptyWithoutSamples) {
  for (const char* body :
       {"{}", R"({"flamegraph":null})", R"({"flamegraph":{}})", R"({"tree":"","more":[{"a":[1]}]})",
        R"({"flamegraph":{"names":["total"],"levels":[{"values":["0","0","0","0"]}],"total":"0"}})",
        R"({"flamegraph":{"names":[],"levels":[{}],"total":0}})",
        R"({"flamegraph":{"names":null,"levels":null}})"}) {
    const auto flame = parse_flame(body);
    ASSERT_TRUE(flame) << body << ": " << flame.error().message;
    EXPECT_TRUE(flame->levels.empty()) << body;
  }
}

TEST(Flame, NumbersMayBeNumbers) {
  const auto flame = parse_flame(levels_of("0,5,5,1"));
  ASSERT_TRUE(flame);
  EXPECT_EQ(flame->levels[0], (Level{{0, 5, 5, 1}}));
}

TEST(Flame, WhatIsNotATreeIsRefused) {
  const std::string root = R"({"flamegraph":{"names":["a"],"levels":[{"values":[0,10,0,0]},)";
  for (const std::string& body : {
           std::string(),
           std::string("[]"),
           std::string("{"),
           std::string("{}x"),
           std::string("<html>"),
           levels_of("0,1,1"),
           levels_of("0,1,1,2"),
           levels_of("0,-1,0,0"),
           levels_of("0,1,2,0"),
           levels_of("1,5,0,0"),
           levels_of("0,5,0,0,0,5,0,0"),
           levels_of("\"x\",1,1,0"),
           levels_of("0,1.5,0,0"),
           levels_of("0,1e3,0,0"),
           levels_of("0,9223372036854775808,0,0"),
           levels_of("0,9223372036854775807,0,0,1,1,0,0"),
           root + R"({"values":[0,11,0,0]}]}})",                      // wider than its parent
           root + R"({"values":[5,6,0,0]}]}})",                       // beyond its parent
           root + R"({"values":[0,6,0,0,0,5,0,0]}]}})",               // two that are together
           root + R"({"values":[2,5,5,0]},{"values":[1,2,2,0]}]}})",  // beside its parent
       }) {
    const auto flame = parse_flame(body);
    ASSERT_FALSE(flame) << body;
    EXPECT_EQ(flame.error().code, ErrorCode::kParse) << body;
  }
}

TEST(Flame, NamesOfProgramsAreOnlyTexts) {
  const auto flame = parse_flame("{\"flamegraph\":{\"names\":[\"<b>a\\u202e\\n\xff\",\"" +
                                 std::string(250, 'x') + R"("],"levels":[{"values":[0,1,1,0]}]}})");
  ASSERT_TRUE(flame);
  EXPECT_EQ(flame->names[0], "<b>a\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(flame->names[1], std::string(200, 'x') + "…");
}

TEST(Flame, KeepsTheHeaviestWithTheirParents) {
  auto flame = parse_flame(kProgram);
  ASSERT_TRUE(flame);
  keep_heaviest(*flame, 4);
  EXPECT_EQ(flame->names, (Texts{"total", "main", "solve", "dot"}));
  ASSERT_EQ(flame->levels.size(), 4U);
  EXPECT_EQ(flame->levels[2], (Level{{10, 60, 20, 2}}));
  EXPECT_EQ(flame->levels[3], (Level{{30, 40, 40, 3}}));
  EXPECT_EQ(flame->left_out, 1U);
  keep_heaviest(*flame, 100);
  EXPECT_EQ(flame->levels.size(), 4U);
  EXPECT_EQ(flame->left_out, 1U);
  keep_heaviest(*flame, 1);
  EXPECT_EQ(flame->names, Texts{"total"});
  EXPECT_EQ(flame->left_out, 4U);
  Flame none;
  keep_heaviest(none, 1);
  EXPECT_TRUE(none.levels.empty());
}

TEST(Flame, ADeepStackIsCutAtItsEnd) {
  std::string body = R"({"flamegraph":{"names":["f"],"levels":[)";
  for (int i = 0; i < 5000; ++i) {
    body += std::string(i == 0 ? "" : ",") + R"({"values":[0,7,0,0]})";
  }
  auto flame = parse_flame(body + "]}}");
  ASSERT_TRUE(flame);
  keep_heaviest(*flame, 2000);
  EXPECT_EQ(flame->levels.size(), 2000U);
  EXPECT_EQ(flame->left_out, 3000U);
}

}  // namespace
}  // namespace ceems::api
