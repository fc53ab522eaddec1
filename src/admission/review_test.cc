#include "admission/review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::admission {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string review_of(const std::string& request) {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":)" + request +
         "}";
}

std::string refusal(std::string_view text) {
  const auto review = parse_review(text, builtin_workloads());
  return review ? "accepted" : review.error().message;
}

Result<Object> object_of(const std::string& now,
                         const std::string& old = "null",
                         const std::vector<Workload>& workloads = builtin_workloads()) {
  auto review = parse_review(review_of(R"({"uid":"u","operation":"UPDATE","object":)" + now +
                                       R"(,"oldObject":)" + old + "}"),
                             workloads);
  EXPECT_TRUE(review);
  return review ? std::move(review->object) : fail(review.error());
}

TEST(Review, HasTheTextsOfTheReferenceForBadRequests) {
  EXPECT_THAT(refusal(""), HasSubstr("could not deserialize request: "));
  EXPECT_THAT(refusal("{"), HasSubstr("could not deserialize request: "));
  EXPECT_THAT(refusal("[]"), HasSubstr("could not deserialize request: "));
  EXPECT_THAT(refusal("{}"), HasSubstr("could not deserialize request: "));
  EXPECT_EQ(refusal(R"({"kind":"AdmissionReview"})"),
            "could not deserialize request: Object 'apiVersion' is missing");
  EXPECT_EQ(refusal(R"({"kind":"A","apiVersion":"x.org/v1"})"),
            "could not deserialize request: no kind \"A\" is registered for version \"x.org/v1\"");
  EXPECT_EQ(refusal(R"({"kind":"Pod","apiVersion":"v1"})"), "unsupported group version kind");
  EXPECT_EQ(refusal(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"})"),
            "unsupported group version kind");
  for (const char* const request : {"null", "[]", "1"}) {
    EXPECT_EQ(refusal(review_of(request)), "malformed admission review: request is nil") << request;
  }
  EXPECT_EQ(refusal(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"})"),
            "malformed admission review: request is nil");
}

TEST(Review, TellsWhoAsksForWhat) {
  const auto review = parse_review(
      review_of(
          R"({"uid":"7","namespace":"ns","name":"n","operation":"CREATE","unknown":[{}],"userInfo":
             {"username":"ann","uid":"12","groups":["a",3,"b"]},"object":{"apiVersion":"v1","kind":"Node"}})"),
      builtin_workloads());
  ASSERT_TRUE(review) << review.error().message;
  EXPECT_EQ(review->api_version, "admission.k8s.io/v1");
  EXPECT_EQ(review->uid, "7");
  EXPECT_EQ(review->operation, Operation::kCreate);
  EXPECT_EQ(review->caller.name, "ann");
  EXPECT_EQ(review->caller.uid, "12");
  EXPECT_THAT(review->caller.groups, ElementsAre("a", "b"));
  ASSERT_TRUE(review->object);
  EXPECT_EQ(review->object->kind, Kind::kOther);
  EXPECT_EQ(parse_review(review_of(R"({"operation":"DELETE"})"), {})->operation,
            Operation::kDelete);
  EXPECT_EQ(parse_review(review_of(R"({"operation":"create"})"), {})->operation,
            Operation::kUnknown);
}

TEST(Review, FindsTheTemplatesOfKubernetesKinds) {
  const auto path = [](const std::string& version, const std::string& kind) {
    const auto object =
        object_of(R"({"apiVersion":")" + version + R"(","kind":")" + kind +
                  R"(","metadata":{},"spec":{"template":{"metadata":{"annotations":{"a":"b"}}},
            "jobTemplate":{"spec":{"template":{}}}}})");
    EXPECT_TRUE(object);
    return object->kind != Kind::kWorkload ? "not a workload"
           : object->templates.size() != 1 ? "wrong number"
                                           : object->templates[0].path;
  };
  for (const char* const kind : {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}) {
    EXPECT_EQ(path("apps/v1", kind), "/spec/template/metadata/annotations") << kind;
  }
  EXPECT_EQ(path("batch/v1", "Job"), "/spec/template/metadata/annotations");
  EXPECT_EQ(path("batch/v1", "CronJob"), "/spec/jobTemplate/spec/template/metadata/annotations");
  const auto cron_job = object_of(
      R"({"apiVersion":"batch/v1","kind":"CronJob","spec":{"jobTemplate":{
          "metadata":{"annotations":{"ceems.io/created-by":"bob"}},"spec":{"template":{}}}}})");
  ASSERT_TRUE(cron_job);
  ASSERT_EQ(cron_job->made.size(), 1U);
  EXPECT_EQ(cron_job->made[0].path, "/spec/jobTemplate/metadata/annotations");
  EXPECT_EQ(cron_job->made[0].annotations.at("ceems.io/created-by"), "bob");
  // The same names in other groups are other kinds.
  for (const auto& [version, kind] :
       {std::pair("example.org/v1", "Job"), std::pair("example.org/v1", "Deployment"),
        std::pair("example.org/v1", "Pod"), std::pair("apps/v1", "ReplicationController"),
        std::pair("v1", "Deployment"), std::pair("apps/v1", "Pod")}) {
    EXPECT_EQ(path(version, kind), "not a workload") << version << ' ' << kind;
  }
}

TEST(Review, TakesATemplateThatIsMissingForAnEmptyOne) {
  for (const char* const rest : {"", R"(,"spec":{})", R"(,"spec":{"template":null})"}) {
    const auto object =
        object_of(R"({"apiVersion":"apps/v1","kind":"Deployment")" + std::string(rest) + "}");
    ASSERT_TRUE(object) << rest;
    ASSERT_EQ(object->templates.size(), 1U) << rest;
    EXPECT_EQ(object->templates[0].path, "/spec/template/metadata/annotations");
    EXPECT_TRUE(object->templates[0].changed);
  }
  const std::string bare = R"({"apiVersion":"apps/v1","kind":"Deployment"})";
  EXPECT_FALSE(object_of(bare, bare)->templates.at(0).changed);
  EXPECT_TRUE(object_of(R"({"apiVersion":"x.org/v1","kind":"A","spec":{}})", "null",
                        {*parse_workload("x.org/A:/spec/template")})
                  ->templates.empty());
}

TEST(Review, FindsAllTemplatesOfCustomKinds) {
  const std::vector<Workload> workloads{
      *parse_workload("ray.io/RayCluster:/spec/head/template"),
      *parse_workload("ray.io/RayCluster:/spec/workers/*/template"),
      *parse_workload("ray.io/RayCluster:/spec/roles/*/template")};
  const std::string old = R"({"apiVersion":"ray.io/v1","kind":"RayCluster","spec":{
      "head":{"template":{}},"workers":[{"template":{}},{"template":{"x":1}}],"roles":{"a~/b":{"template":{}}}}})";
  const std::string now = R"({"apiVersion":"ray.io/v1","kind":"RayCluster","spec":{
      "head":{"template":{}},"workers":[{"template":{}},{"template":{"x":2}},{}],"roles":{"a~/b":{"template":{}}}}})";
  const auto object = object_of(now, old, workloads);
  ASSERT_TRUE(object) << object.error().message;
  ASSERT_EQ(object->templates.size(), 4U);
  EXPECT_FALSE(object->builtin);
  EXPECT_EQ(object->templates[0].path, "/spec/head/template/metadata/annotations");
  EXPECT_FALSE(object->templates[0].has_parent);
  EXPECT_FALSE(object->templates[0].changed);
  EXPECT_EQ(object->templates[2].path, "/spec/workers/1/template/metadata/annotations");
  EXPECT_TRUE(object->templates[2].changed);
  EXPECT_EQ(object->templates[3].path, "/spec/roles/a~0~1b/template/metadata/annotations");
  EXPECT_FALSE(object->templates[3].changed);
}

TEST(Review, ReadsWhatControlsAnObject) {
  const auto controlled = [](const std::string& owners) {
    return object_of(R"({"apiVersion":"v1","kind":"Pod","metadata":{"ownerReferences":)" + owners +
                     "}}")
        ->controlled;
  };
  EXPECT_TRUE(controlled(R"([{"kind":"A"},{"kind":"B","controller":true}])"));
  EXPECT_FALSE(controlled(R"([{"kind":"A","controller":false}])"));
  EXPECT_FALSE(controlled(R"([{"kind":"A","controller":"true"}])"));
  EXPECT_FALSE(controlled("null"));
}

TEST(Review, ReportsObjectsThatCannotBeRead) {
  for (const char* const metadata :
       {"[]", R"({"annotations":[]})", R"({"annotations":{"a":1}})", "\"x\""}) {
    const auto object =
        object_of(R"({"apiVersion":"v1","kind":"Pod","metadata":)" + std::string(metadata) + "}");
    ASSERT_FALSE(object) << metadata;
    EXPECT_EQ(object.error().code, ErrorCode::kParse);
  }
  EXPECT_FALSE(object_of("null"));
  EXPECT_FALSE(object_of("[]"));
  EXPECT_FALSE(object_of(R"({"apiVersion":"batch/v1","kind":"Job","spec":{"template":[]}})"));
  EXPECT_TRUE(object_of(R"({"apiVersion":"v1","kind":"Pod","metadata":{"annotations":null}})"));
  // Objects of other kinds are not looked at.
  EXPECT_TRUE(object_of(R"({"apiVersion":"v1","kind":"Secret","metadata":[]})"));
}

TEST(Review, BoundsTheDepth) {
  const auto nested = [](std::size_t depth) {
    return review_of(R"({"operation":"CREATE","object":{"apiVersion":"x/v1","kind":"X","spec":)" +
                     std::string(depth, '[') + std::string(depth, ']') + "}}");
  };
  EXPECT_TRUE(parse_review(nested(200), {}));
  EXPECT_FALSE(parse_review(nested(1000), {}));
  EXPECT_FALSE(parse_review(std::string(3'000'000, '['), {}));
}

TEST(Answer, HasTheFormOfTheReference) {
  EXPECT_EQ(
      answer_json("admission.k8s.io/v1", "a<b", {}),
      R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"a\u003cb",)"
      R"("allowed":true,"status":{"metadata":{}}}})"
      "\n");
  Verdict verdict;
  verdict.patch = {
      {.path = "/metadata/annotations",
       .annotations = {{"ceems.io/created-by", "a&b"}, {"ceems.io/created-by-uid", ""}}}};
  const std::string answer = answer_json("admission.k8s.io/v1beta1", "", verdict);
  const auto begin = answer.find("\"patch\":\"") + 9;
  const auto patch = crypto::base64_decode(answer.substr(begin, answer.find('"', begin) - begin));
  ASSERT_TRUE(patch);
  EXPECT_EQ(
      *patch,
      R"([{"op":"add","path":"/metadata/annotations","from":"","value":{"ceems.io/created-by":)"
      R"("a\u0026b","ceems.io/created-by-uid":""}}])");
  EXPECT_THAT(answer, ::testing::EndsWith("\",\"patchType\":\"JSONPatch\"}}\n"));
}

TEST(Answer, RefusesWithAReason) {
  Verdict verdict{.allowed = false, .refused = true, .message = "no"};
  EXPECT_THAT(
      answer_json("v", "u", verdict),
      HasSubstr(
          R"("allowed":false,"status":{"metadata":{},"message":"no","reason":"Forbidden","code":403})"));
}

}  // namespace
}  // namespace ceems::admission
