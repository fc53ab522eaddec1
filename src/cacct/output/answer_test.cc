#include "cacct/output/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string refusal(std::string text) {
  const auto parsed = parse_answer(std::move(text));
  return parsed ? "accepted" : parsed.error().message;
}

TEST(Answer, GivesTextsNumbersAndMetrics) {
  const auto records = parse_answer(
      R"({"status":"success","data":[{"uuid":"1","started_at_ts":1645450627000,"tags":null,)"
      R"("total_cpu_emissions_gms":{"rte_total":2.5,"emaps_total":1},"avg_gpu_usage":{},)"
      R"("list":[1],"ok":true,"share":0.25},{}]})");
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  const Record& unit = records->front();
  EXPECT_EQ(unit.text("uuid"), "1");
  EXPECT_EQ(unit.text("nothing"), "");
  EXPECT_EQ(unit.text("ok"), "true");
  EXPECT_EQ(unit.text("share"), "0.25");
  EXPECT_EQ(unit.whole("started_at_ts"), 1645450627000);
  EXPECT_EQ(unit.whole("uuid"), 1);
  EXPECT_EQ(unit.whole("share"), 0);
  ASSERT_NE(unit.numbers("total_cpu_emissions_gms"), nullptr);
  EXPECT_THAT(*unit.numbers("total_cpu_emissions_gms"),
              ElementsAre(Pair("emaps_total", 1.0), Pair("rte_total", 2.5)));
  EXPECT_EQ(unit.numbers("avg_gpu_usage"), nullptr);
  EXPECT_THAT(records->back().texts, IsEmpty());
}

TEST(Answer, IsEmptyWithoutData) {
  EXPECT_THAT(*parse_answer(R"({"status":"success","data":[]})"), IsEmpty());
  EXPECT_THAT(*parse_answer(R"({"status":"success","data":null})"), IsEmpty());
  EXPECT_THAT(*parse_answer(R"({"status":"success"})"), IsEmpty());
}

TEST(Answer, ReportsErrorsOfTheServer) {
  const auto failed =
      parse_answer(R"({"status":"error","errorType":"timeout","error":"too \u001b[31mslow"})");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(failed.error().message, "too \\x1b[31mslow");
}

TEST(Answer, RefusesOtherTexts) {
  for (const char* text :
       {"", "[]", "1", "{}", "<html>", R"({"status":1})", R"({"status":"success","data":{}})",
        R"({"status":"success","data":[1]})", R"({"status":"success","data":[{]})"}) {
    EXPECT_THAT(refusal(text), HasSubstr("unexpected answer of the API server")) << text;
  }
  std::string deep = R"({"status":"success","data":[{"x":)";
  deep += std::string(1000, '[') + std::string(1000, ']') + "}]}";
  EXPECT_THAT(refusal(deep), HasSubstr("unexpected answer"));
}

TEST(Answer, IsSafeForTerminals) {
  const auto records = parse_answer(R"({"status":"success","data":[{"name":"\u001b]0;x\u0007"}]})");
  EXPECT_EQ(records->front().text("name"), "\uFFFD]0;x\uFFFD");
}

}  // namespace
}  // namespace ceems::cacct
