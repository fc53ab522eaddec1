#include "tsdb/answer.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::tsdb {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& name) {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/data/tsdb/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

TEST(TsdbAnswer, ReadsAVectorWithNotANumberAndInfinities) {
  const auto answer = parse_query_answer(data("vector.json"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->type, ResultType::kVector);
  ASSERT_EQ(answer->series.size(), 5U);
  EXPECT_EQ(answer->series[0].labels.get("uuid"), "1001");
  EXPECT_EQ(answer->series[0].samples[0].time_ms, 1767225600500);
  EXPECT_EQ(answer->series[0].samples[0].value, 12.5);
  EXPECT_TRUE(std::isnan(answer->series[1].samples[0].value));
  EXPECT_EQ(answer->series[2].samples[0].value, INFINITY);
  EXPECT_EQ(answer->series[3].samples[0].value, -INFINITY);
  EXPECT_EQ(answer->series[4].labels.get("uuid"), "");
  EXPECT_EQ(answer->series[4].samples[0].value, 1e-3);
}

TEST(TsdbAnswer, MomentsStayWithinTheCalendar) {
  EXPECT_EQ(moment_ms(1767225600.25), 1767225600250);
  EXPECT_EQ(moment_ms(1e308), 253402300800000);
  EXPECT_EQ(moment_ms(std::numeric_limits<double>::infinity()), 253402300800000);
  EXPECT_EQ(moment_ms(-1e300), 0);
  EXPECT_EQ(moment_ms(std::numeric_limits<double>::quiet_NaN()), 0);
}

TEST(TsdbAnswer, ReadsAMatrixAndItsWarnings) {
  const auto answer = parse_query_answer(data("matrix.json"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->type, ResultType::kMatrix);
  ASSERT_EQ(answer->series.size(), 1U);
  EXPECT_EQ(answer->series[0].labels.get("hostname"), "nö1");
  ASSERT_EQ(answer->series[0].samples.size(), 3U);
  EXPECT_EQ(answer->series[0].samples[1].time_ms, 1767225615123);
  EXPECT_EQ(answer->series[0].samples[2].value, 301);
  EXPECT_EQ(answer->incomplete, "store 10.0.0.1 did not answer");
}

TEST(TsdbAnswer, SortsSamplesThatAProxyMergedOutOfOrder) {
  const auto answer = parse_query_answer(
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[3,"3"],[1,"1"],[2,"2"]]}]}})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->series[0].samples[0].value, 1);
  EXPECT_EQ(answer->series[0].samples[2].value, 3);
}

TEST(TsdbAnswer, EveryTruncationIsAnErrorNeverAShorterAnswer) {
  for (const char* name : {"vector.json", "matrix.json"}) {
    std::string text = data(name);
    text.erase(text.find_last_not_of('\n') + 1);
    for (std::size_t size = 0; size < text.size(); ++size) {
      const auto answer = parse_query_answer(text.substr(0, size));
      ASSERT_FALSE(answer) << name << " cut at " << size;
      EXPECT_EQ(answer.error().code, ErrorCode::kParse);
    }
  }
}

TEST(TsdbAnswer, ReportsWrongTypesInOneLine) {
  const auto message = [](const std::string& body) {
    const auto answer = parse_query_answer(body);
    return answer ? std::string("accepted") : answer.error().message;
  };
  EXPECT_EQ(message(data("proxy_error.html")),
            "TSDB response is not complete JSON: '<html><head><title>502 Bad "
            "Gateway</title></head><body><h1>5...'");
  EXPECT_EQ(message(""), "TSDB response is not complete JSON: ''");
  EXPECT_THAT(message("[1,2]"), HasSubstr("not complete JSON"));
  EXPECT_THAT(message(R"({"status":"success"})"), HasSubstr("has no data"));
  EXPECT_THAT(message(R"({"data":{"resultType":"vector","result":[]}})"),
              HasSubstr("has no status"));
  EXPECT_EQ(message(R"({"status":"success","data":[]})"), "TSDB response: data is not an object");
  EXPECT_EQ(message(R"({"status":"success","data":{"resultType":"tensor","result":[]}})"),
            "TSDB response: unknown result type 'tensor'");
  EXPECT_EQ(message(R"({"status":"success","data":{"resultType":"vector","result":{}}})"),
            "TSDB response: result is not a list");
  EXPECT_EQ(
      message(
          R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"uuid":1},"value":[1,"1"]}]}})"),
      "TSDB response: label value is not a string");
  EXPECT_EQ(
      message(
          R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,1]}]}})"),
      "TSDB response: sample value is not a string");
  EXPECT_EQ(
      message(
          R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"many"]}]}})"),
      "TSDB response: sample value 'many' is not a number");
  EXPECT_EQ(
      message(
          R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":["x","1"]}]}})"),
      "TSDB response: the time of a sample is not a number");
  EXPECT_EQ(
      message(
          R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}})"),
      "TSDB response: a sample has fewer than two parts");
}

TEST(TsdbAnswer, ReturnsTheErrorThatTheTsdbReports) {
  const auto bad = parse_query_answer(
      R"({"status":"error","errorType":"bad_data","error":"parse error: unexpected }"})");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(bad.error().message, "TSDB: bad_data: parse error: unexpected }");
  const auto slow = parse_query_answer(
      R"({"status":"error","errorType":"timeout","error":"query timed out","data":null})");
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, ErrorCode::kTimeout);
}

TEST(TsdbAnswer, ReadsLargeAnswers) {
  std::string text = R"({"status":"success","data":{"resultType":"vector","result":[)";
  constexpr int kSeries = 100'000;
  for (int i = 0; i < kSeries; ++i) {
    text += fmt::format("{}{{\"metric\":{{\"uuid\":\"{}\"}},\"value\":[1,\"{}\"]}}",
                        i == 0 ? "" : ",", i, i);
  }
  text += "]}}";
  const auto answer = parse_query_answer(std::move(text));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->series.size(), 100'000U);
  EXPECT_EQ(answer->series.back().labels.get("uuid"), "99999");
  EXPECT_EQ(answer->series.back().samples[0].value, 99999);
}

TEST(TsdbAnswer, ReadsListsSeriesAndStatus) {
  const auto list = parse_string_list_answer(R"({"status":"success","data":["a","b"]})");
  ASSERT_TRUE(list);
  EXPECT_EQ(*list, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(parse_string_list_answer(R"({"status":"success","data":["a",1]})"));
  const auto series =
      parse_series_answer(R"({"status":"success","data":[{"__name__":"up","job":"x"}]})");
  ASSERT_TRUE(series);
  EXPECT_EQ(series->at(0).get("job"), "x");
  const auto status = parse_status_answer(
      R"({"status":"success","data":{"storageRetention":"15d","chunkCount":12,"reload":true,"x":{"y":1}}})");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->get("storageRetention"), "15d");
  EXPECT_EQ(status->get("chunkCount"), "12");
  EXPECT_EQ(status->get("reload"), "true");
}

TEST(TsdbAnswer, DistinguishesMissingDataFromRemarks) {
  const auto incomplete = [](const std::string& more) {
    const auto answer = parse_query_answer(
        R"({"status":"success","data":{"resultType":"vector","result":[]},)" + more + "}");
    return answer ? answer->incomplete : answer.error().message;
  };
  EXPECT_EQ(incomplete(R"("warnings":["PromQL info: metric might not be a counter"])"), "");
  EXPECT_EQ(incomplete(R"("warnings":null,"infos":["x"])"), "");
  EXPECT_EQ(incomplete(R"("warnings":["PromQL info: a","store down","other"])"), "store down");
  EXPECT_EQ(incomplete(R"("isPartial":false)"), "");
  EXPECT_EQ(incomplete(R"("isPartial":true)"), "isPartial");
}

TEST(TsdbAnswer, StopsAtTheLimitOfSeries) {
  const std::string body =
      R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]},)"
      R"({"metric":{},"value":[1,"2"]}]}})";
  EXPECT_TRUE(parse_query_answer(body, 2));
  const auto answer = parse_query_answer(body, 1);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "TSDB response: more than 1 series");
}

}  // namespace
}  // namespace ceems::tsdb
