#include "admission/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::admission {
namespace {

using ::testing::HasSubstr;

class ReviewerTest : public ::testing::Test {
 protected:
  net::Response ask(const std::string& method,
                    const std::string& path,
                    const std::string& body = "",
                    const std::string& type = "application/json") {
    net::Request request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.headers = {{"content-type", type}};
    net::Response response;
    reviewer_.handle(request, response);
    return response;
  }
  net::Response mutate(const std::string& request) {
    return ask("POST", "/ceems-admission-controller/mutate",
               R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":)" +
                   request + "}");
  }

  Reviewer reviewer_{{}, builtin_workloads()};
};

TEST_F(ReviewerTest, KnowsItsPathsAndMethods) {
  EXPECT_EQ(ask("GET", "/health").body, "CEEMS k8s Admission Controller is healthy");
  EXPECT_EQ(ask("POST", "/health").status, 405);
  EXPECT_EQ(ask("GET", "/ceems-admission-controller/mutate").status, 405);
  EXPECT_EQ(ask("POST", "/ceems-admission-controller").status, 404);
  EXPECT_EQ(ask("GET", "/").status, 404);
}

TEST_F(ReviewerTest, AcceptsJsonOnly) {
  for (const char* const type : {"application/json; charset=utf-8", "application/yaml", ""}) {
    const auto answer = ask("POST", "/ceems-admission-controller/validate", "{}", type);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.body, "only content type 'application/json' is supported\n");
  }
  EXPECT_EQ(ask("POST", "/ceems-admission-controller/validate", "{").status, 400);
}

TEST_F(ReviewerTest, AnswersOperationsAsTheReferenceDoes) {
  for (const char* const operation : {"DELETE", "CONNECT"}) {
    const auto answer = mutate(R"({"uid":"1","operation":")" + std::string(operation) + "\"}");
    EXPECT_EQ(answer.status, 500);
    EXPECT_EQ(answer.body, "");
  }
  const auto answer = mutate(R"({"uid":"1","operation":"PATCH"})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(
      answer.body,
      HasSubstr(
          R"("allowed":false,"status":{"metadata":{},"message":"Invalid operation: PATCH"}}})"));
  EXPECT_EQ(mutate(R"({"uid":"1","operation":"CREATE","object":null})").status, 500);
}

TEST_F(ReviewerTest, LetsUnknownKindsPass) {
  const auto answer = mutate(
      R"({"uid":"1","operation":"CREATE","object":{"apiVersion":"example.org/v1","kind":"Job","metadata":7}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body,
            R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1",)"
            R"("allowed":true,"status":{"metadata":{}}}})"
            "\n");
  const std::string page = ask("GET", "/metrics").body;
  EXPECT_THAT(
      page,
      HasSubstr(
          "ceems_k8s_admission_controller_reviews_total{hook=\"mutate\",outcome=\"skipped\"} 1\n"));
}

}  // namespace
}  // namespace ceems::admission
