#include "lb/label_filter.h"

#include <gtest/gtest.h>

namespace ceems::lb {
namespace {

std::string filtered(AnswerKind kind, std::string_view answer, std::size_t piece) {
  LabelFilter filter(kind, {"instance", "host"});
  std::string out;
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    if (auto fed = filter.feed(answer.substr(i, piece), out); !fed) {
      return "error";
    }
  }
  return filter.finish(out) ? out : "error";
}

/// The same for every way of cutting the answer.
void expect_filtered(AnswerKind kind, std::string_view answer, std::string_view wanted) {
  for (const std::size_t piece : {answer.size(), std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
    EXPECT_EQ(filtered(kind, answer, piece), wanted) << piece;
  }
}

TEST(LabelFilter, TakesLabelsOutOfSamples) {
  expect_filtered(
      AnswerKind::kSamples,
      R"({"status":"success","data":{"resultType":"vector","result":[)"
      R"({"metric":{"instance":"n1:9010","uuid":"1"},"value":[12345,"21.22149394"]},)"
      R"({"metric":{"uuid":"2","host":"n2"},"histogram":[1,{"count":"5","buckets":[[0,"1","2","3"]]}]},)"
      R"({"metric":{"instance":"x"},"values":[[1.5e3,"NaN"],[-2,"1"]]}]},"infos":["x"],"stats":{"instance":1}})",
      R"({"status":"success","data":{"resultType":"vector","result":[)"
      R"({"metric":{"uuid":"1"},"value":[12345,"21.22149394"]},)"
      R"({"metric":{"uuid":"2"},"histogram":[1,{"count":"5","buckets":[[0,"1","2","3"]]}]},)"
      R"({"metric":{},"values":[[1.5e3,"NaN"],[-2,"1"]]}]},"infos":["x"],"stats":{"instance":1}})");
}

TEST(LabelFilter, ScalarsAndErrorsStayAsTheyAre) {
  for (const char* answer :
       {R"({"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"1"]}})",
        R"({"status":"error","errorType":"bad_data","error":"instance"})",
        R"({"status":"success","data":null})",
        R"({"status":"success","data":{"resultType":"vector","result":null}})",
        R"({"status":"success","data":{"resultType":"string","result":[1,"instance"]}})"}) {
    expect_filtered(AnswerKind::kSamples, answer, answer);
  }
}

TEST(LabelFilter, TakesLabelsOutOfSeries) {
  expect_filtered(
      AnswerKind::kSeries,
      R"({"status":"success","data":[{"__name__":"up","instance":"a"},{"host":"b"},{"job":"c"}]})",
      R"({"status":"success","data":[{"__name__":"up"},{},{"job":"c"}]})");
}

TEST(LabelFilter, TakesNamesOutOfLists) {
  expect_filtered(AnswerKind::kNames,
                  R"({"status":"success","data":["host","a","instance","b","host"]})",
                  R"({"status":"success","data":["a","b"]})");
  expect_filtered(AnswerKind::kNames, R"({"status":"success","data":["host"],"warnings":["host"]})",
                  R"({"status":"success","data":[],"warnings":["host"]})");
}

TEST(LabelFilter, TakesLabelsOutOfExemplars) {
  expect_filtered(
      AnswerKind::kExemplars,
      R"({"status":"success","data":[{"seriesLabels":{"host":"x","job":"y"},"exemplars":[)"
      R"({"labels":{"traceID":"1","instance":"z"},"value":"6","timestamp":1600096945.479}]}]})",
      R"({"status":"success","data":[{"seriesLabels":{"job":"y"},"exemplars":[)"
      R"({"labels":{"traceID":"1"},"value":"6","timestamp":1600096945.479}]}]})");
}

TEST(LabelFilter, KeysInDisguiseAndValuesOfAnyKindGoToo) {
  expect_filtered(
      AnswerKind::kSeries,
      R"({"data":[{"inst\u0061nce":{"a":[1,{"b":null}],"c":"d"},"e":"f"},{"host":[[]],"g":true}]})",
      R"({"data":[{"e":"f"},{"g":true}]})");
}

TEST(LabelFilter, BlanksGoAndTextsStay) {
  expect_filtered(AnswerKind::kSeries, " { \"data\" : [ { \"a\" : \"\u00e9\\n\\\"\" } ] } \n",
                  "{\"data\":[{\"a\":\"\u00e9\\n\\\"\"}]}");
}

TEST(LabelFilter, WhatIsNoJsonIsRefused) {
  for (const char* answer :
       {"<html>", R"({"data":[)", R"({"data":[}]})", "{} {}", "", R"({"a":1,})"}) {
    EXPECT_EQ(filtered(AnswerKind::kSeries, answer, 3), "error") << answer;
  }
  EXPECT_EQ(filtered(AnswerKind::kSeries, std::string(100, '['), 9), "error");
  EXPECT_EQ(filtered(AnswerKind::kSeries, "[\"" + std::string(2U << 20U, 'x') + "\"]", 65536),
            "error");
}

}  // namespace
}  // namespace ceems::lb
