#include "lb/error_filter.h"

#include <gtest/gtest.h>

namespace ceems::lb {
namespace {

constexpr std::string_view kWithheld =
    "the server's message is withheld: it may name labels that are hidden here";

const net::Headers kJson{{"Content-Type", "application/json; charset=utf-8"}};

std::string filtered(int status,
                     std::string_view answer,
                     const net::Headers& headers = kJson,
                     std::size_t piece = 7) {
  const auto filter = make_error_filter(status, headers);
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
      filtered(422, R"({"status":"error","errorType":"execution","error":"found duplicate series )"
                    R"(for the match group {} on the right hand-side of the operation: )"
                    R"([{instance=\"secret-host\"}, {instance=\"other-host\"}];many-to-many )"
                    R"(matching not allowed: matching labels must be unique on one side"})"),
      envelope("execution",
               "many-to-many matching not allowed: matching labels must be unique on one side"));
  EXPECT_EQ(filtered(503, R"({"status":"error","errorType":"timeout","error":)"
                          R"("query timed out in expression evaluation"})"),
            envelope("timeout", "query timed out"));
}

TEST(ErrorFilter, OtherMessagesAreWithheld) {
  for (const char* message : {"secret-host", "", "Query Timed Out", "query timed\\u0020in"}) {
    EXPECT_EQ(filtered(500, R"({"status":"error","errorType":"internal","error":")" +
                                std::string(message) + R"("})"),
              envelope("internal", kWithheld));
  }
}

TEST(ErrorFilter, TypesThatPrometheusDoesNotHaveAreNotBelieved) {
  EXPECT_EQ(filtered(400, R"({"errorType":"secret-host","error":"x","data":["secret-host"]})"),
            envelope("bad_data", kWithheld));
  EXPECT_EQ(filtered(404, R"({"errorType":1,"error":{}})"), envelope("not_found", kWithheld));
  EXPECT_EQ(filtered(429, R"({})"), envelope("too_many_requests", kWithheld));
  EXPECT_EQ(filtered(400, R"({"errorType":"timeout"})"), envelope("timeout", kWithheld));
}

TEST(ErrorFilter, WhatIsNoObjectOfJsonGivesTheTypeOfTheStatus) {
  for (const std::string& answer :
       {std::string("secret-host"), std::string(), std::string("[\"secret-host\"]"),
        std::string(R"({"error":"secret-host)"), std::string(R"({"errorType":"timeout"} secret)"),
        R"({"errorType":"timeout","x":)" + std::string(50, '[') + std::string(50, ']') + "}",
        R"({"errorType":"timeout","error":")" + std::string(65536, 'x') + R"("})"}) {
    for (const std::size_t piece : {std::size_t{3}, std::size_t{1} << 20U}) {
      EXPECT_EQ(filtered(503, answer, kJson, piece), envelope("unavailable", kWithheld)) << answer;
    }
  }
}

TEST(ErrorFilter, AnswersThatAreNoJsonBecomeALineOfText) {
  const net::Headers html{{"content-type", "text/html"}};
  EXPECT_EQ(filtered(502, "<html>secret-host</html>", html), "Bad Gateway\n");
  EXPECT_EQ(filtered(302, "<a href=secret-host>", {}), "Found\n");
  EXPECT_EQ(filtered(599, R"({"error":"query timed out"})", {}), "Unknown\n");
}

TEST(ErrorFilter, SuccessAndWhatHasNoBodyAreNotItsBusiness) {
  for (const int status : {200, 204, 299, 304}) {
    EXPECT_EQ(filtered(status, "secret-host"), "unfiltered") << status;
  }
}

}  // namespace
}  // namespace ceems::lb
