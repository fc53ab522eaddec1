#include "lb/answer_filter.h"

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

constexpr std::string_view kWithheld =
    "the server's message is withheld: it may name labels that are hidden here";

const net::Headers kJson{{"Content-Type", "application/json; charset=utf-8"}};

std::string error_of(int status,
                     std::string_view answer,
                     const net::Headers& headers = kJson,
                     std::size_t piece = 7) {
  const auto filter =
      make_answer_filter({.names = {"instance"}, .path = "/api/v1/query"}, status, headers);
  if (!filter) {
    return "unfiltered";
  }
  std::string out;
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    if (!filter->feed(answer.substr(i, piece), out)) {
      return "error";
    }
    EXPECT_EQ(out, "") << "before the answer is known";
  }
  return filter->finish(out) ? out : "error";
}

std::string envelope(std::string_view type, std::string_view message) {
  return R"({"status":"error","errorType":")" + std::string(type) + R"(","error":")" +
         std::string(message) + R"("})";
}

TEST(ErrorFilter, MessagesThatNameSeriesBecomeFixedTexts) {
  EXPECT_EQ(
      error_of(422, R"({"status":"error","errorType":"execution","error":"found duplicate series )"
                    R"(for the match group {} on the right hand-side of the operation: )"
                    R"([{instance=\"secret-host\"}, {instance=\"other-host\"}];many-to-many )"
                    R"(matching not allowed: matching labels must be unique on one side"})"),
      envelope("execution",
               "many-to-many matching not allowed: matching labels must be unique on one side"));
  EXPECT_EQ(error_of(503, R"({"status":"error","errorType":"timeout","error":)"
                          R"("query timed out in expression evaluation"})"),
            envelope("timeout", "query timed out"));
}

TEST(ErrorFilter, OtherMessagesAreWithheld) {
  for (const char* message : {"secret-host", "", "Query Timed Out", "query timed\\u0020in"}) {
    EXPECT_EQ(error_of(500, R"({"status":"error","errorType":"internal","error":")" +
                                std::string(message) + R"("})"),
              envelope("internal", kWithheld));
  }
}

TEST(ErrorFilter, TypesThatPrometheusDoesNotHaveAreNotBelieved) {
  EXPECT_EQ(error_of(400, R"({"errorType":"secret-host","error":"x","data":["secret-host"]})"),
            envelope("bad_data", kWithheld));
  EXPECT_EQ(error_of(404, R"({"errorType":1,"error":{}})"), envelope("not_found", kWithheld));
  EXPECT_EQ(error_of(429, R"({})"), envelope("too_many_requests", kWithheld));
  EXPECT_EQ(error_of(400, R"({"errorType":"timeout"})"), envelope("timeout", kWithheld));
}

TEST(ErrorFilter, WhatIsNoObjectOfJsonGivesTheTypeOfTheStatus) {
  for (const std::string& answer :
       {std::string("secret-host"), std::string(), std::string("[\"secret-host\"]"),
        std::string(R"({"error":"secret-host)"), std::string(R"({"errorType":"timeout"} secret)"),
        R"({"errorType":"timeout","x":)" + std::string(50, '[') + std::string(50, ']') + "}",
        R"({"errorType":"timeout","error":")" + std::string(65536, 'x') + R"("})"}) {
    for (const std::size_t piece : {std::size_t{3}, std::size_t{1} << 20U}) {
      EXPECT_EQ(error_of(503, answer, kJson, piece), envelope("unavailable", kWithheld)) << answer;
    }
  }
}

TEST(ErrorFilter, AnswersThatAreNoJsonBecomeALineOfText) {
  const net::Headers html{{"content-type", "text/html"}};
  EXPECT_EQ(error_of(502, "<html>secret-host</html>", html), "Bad Gateway\n");
  EXPECT_EQ(error_of(302, "<a href=secret-host>", {}), "Found\n");
  EXPECT_EQ(error_of(599, R"({"error":"query timed out"})", {}), "Unknown\n");
}

/// What becomes of an answer that names a hidden label.
std::string outcome(int status,
                    bool admin,
                    const std::string& path = "/api/v1/query",
                    const net::Headers& headers = kJson) {
  const auto filter = make_answer_filter(
      {.names = {"instance"}, .path = path, .cluster = "c", .admin = admin}, status, headers);
  if (filter == nullptr) {
    return "unchanged";
  }
  std::string out;
  if (!filter->feed(R"({"data":{"result":[{"metric":{"instance":"n"}}]}})", out) ||
      !filter->finish(out)) {
    return "failed";
  }
  if (out == R"({"data":{"result":[{"metric":{}}]}})") {
    return "without label";
  }
  return out.find(kWithheld) != std::string::npos ? "withheld" : out;
}

TEST(AnswerFilter, TheStatusSaysWhatIsRewritten) {
  for (const int status : {200, 201, 206, 299}) {
    EXPECT_EQ(outcome(status, false), "without label") << status;
    EXPECT_EQ(outcome(status, true), "without label") << status;
  }
  for (const int status : {300, 301, 302, 303, 305, 307, 399, 400, 404, 499, 500, 503, 599}) {
    EXPECT_EQ(outcome(status, false), "withheld") << status;
    EXPECT_EQ(outcome(status, true), "unchanged") << status;
  }
  for (const int status : {204, 304}) {  // without a body
    EXPECT_EQ(outcome(status, false), "unchanged") << status;
    EXPECT_EQ(outcome(status, true), "unchanged") << status;
  }
}

TEST(AnswerFilter, ErrorsAreRewrittenAtEveryPath) {
  for (const char* const path : {"/api/v1/label/job/values", "/api/v1/status/buildinfo", "/"}) {
    EXPECT_EQ(outcome(300, false, path), "withheld") << path;
    EXPECT_EQ(outcome(299, false, path), "unchanged") << path;
  }
}

TEST(AnswerFilter, ThePathSaysWhereLabelsAre) {
  const auto series = [](const std::string& path) {
    const auto filter = make_answer_filter({.names = {"instance"}, .path = path}, 200, kJson);
    std::string out;
    EXPECT_TRUE(filter && filter->feed(R"({"data":[{"instance":"n"},"instance"]})", out) &&
                filter->finish(out))
        << path;
    return out;
  };
  EXPECT_EQ(series("/prom/api/v1/series/"), R"({"data":[{},"instance"]})");
  EXPECT_EQ(series("/api/v1/labels"), R"({"data":[{"instance":"n"}]})");
  EXPECT_EQ(series("/api/v1/label/instance/values"), R"({"status":"success","data":[]})");
  for (const char* const path : {"/api/v1/query", "/api/v1/query_range/", "query"}) {
    EXPECT_EQ(outcome(200, false, path), "without label") << path;
  }
  const auto exemplars =
      make_answer_filter({.names = {"instance"}, .path = "/api/v1/query_exemplars"}, 200, kJson);
  std::string out;
  ASSERT_TRUE(exemplars);
  EXPECT_TRUE(exemplars->feed(R"({"data":[{"seriesLabels":{"instance":"n"}}]})", out));
  EXPECT_EQ(out, R"({"data":[{"seriesLabels":{}}]})");
  EXPECT_EQ(outcome(200, false, "/api/v1/query_other"), "unchanged");
}

TEST(AnswerFilter, WhatTheServerHasCompressedFails) {
  const auto coded = [](const std::string& coding) {
    return outcome(200, false, "/api/v1/query", {{"content-encoding", coding}});
  };
  EXPECT_EQ(coded("gzip"), "failed");
  EXPECT_EQ(coded("zstd"), "failed");
  EXPECT_EQ(coded("Identity"), "without label");
  EXPECT_EQ(outcome(200, false, "/api/v1/status/config", {{"content-encoding", "gzip"}}),
            "unchanged")
      << "no labels there";
}

TEST(AnswerFilter, SaysInTheLogWhichAnswerItCannotRead) {
  const auto filter = make_answer_filter(
      {.names = {"instance"}, .path = "/api/v1/query", .cluster = "c7"}, 200, {});
  ASSERT_TRUE(filter);
  ::testing::internal::CaptureStderr();
  std::string out;
  EXPECT_FALSE(filter->feed("<html>", out));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("cannot remove labels from an answer"), std::string::npos) << log;
  EXPECT_NE(log.find("cluster_id=c7 path=/api/v1/query"), std::string::npos) << log;
}

TEST(Endpoint, IsTheEndOfAPath) {
  const auto text = [](std::string_view path) {
    const Endpoint endpoint = endpoint_of(path);
    return std::string(endpoint.name) + " " + std::string(endpoint.label);
  };
  EXPECT_EQ(text("/api/v1/query"), "query ");
  EXPECT_EQ(text("/prom/api/v1/query_range//"), "query_range ");
  EXPECT_EQ(text("/api/v1/label/job/values/"), "values job");
  EXPECT_EQ(text("values"), "values values");
  EXPECT_EQ(text("/"), " ");
  EXPECT_EQ(text(""), " ");
}

}  // namespace
}  // namespace ceems::lb
