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

TEST(EnforcingReviewer, RefusesARevisionThatNamesAnotherCreator) {
  Reviewer reviewer{{.enforce = true}, builtin_workloads()};
  const auto ask = [&reviewer](const std::string& hook, const std::string& caller,
                               const std::string& creator) {
    net::Request request;
    request.method = "POST";
    request.path = "/ceems-admission-controller/" + hook;
    request.headers = {{"content-type", "application/json"}};
    // As the controllers of Kubernetes write them, for a StatefulSet and for a DaemonSet.
    request.body =
        R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",)"
        R"("operation":"CREATE","userInfo":{"username":")" +
        caller +
        R"(","uid":"7"},"object":{"apiVersion":"apps/v1","kind":"ControllerRevision",)"
        R"("metadata":{"name":"web-1","ownerReferences":[{"kind":"StatefulSet","name":"web",)"
        R"("controller":true}]},"revision":1,"data":{"spec":{"template":{"$patch":"replace",)"
        R"("metadata":{"annotations":{)" +
        (creator.empty() ? "" : R"(")" + std::string(kCreatedBy) + R"(":")" + creator + R"(")") +
        R"(}},"spec":{"containers":[]}}}}}}})";
    net::Response response;
    reviewer.handle(request, response);
    EXPECT_EQ(response.status, 200);
    return response.body;
  };
  const std::string controller = "system:serviceaccount:kube-system:statefulset-controller";
  EXPECT_THAT(ask("validate", "eve", "victim"), HasSubstr(R"("allowed":false)"));
  EXPECT_THAT(ask("validate", "eve", ""), HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(ask("validate", controller, "victim"), HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(ask("mutate", "eve", "victim"), HasSubstr(R"("patchType":"JSONPatch")"));
  EXPECT_EQ(ask("mutate", controller, "victim").find("patch"), std::string::npos)
      << "the controller compares the data of its revisions";
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
