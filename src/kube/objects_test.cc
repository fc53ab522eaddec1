#include "kube/objects.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/line_splitter.h"

namespace ceems::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kPod = R"({
  "metadata": {"name": "train", "namespace": "lab", "uid": "u-1", "resourceVersion": "12",
    "creationTimestamp": "2026-03-01T10:00:00Z", "deletionTimestamp": "2026-03-01T12:00:30Z",
    "annotations": {"ceems.io/created-by": "ada",
      "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    "labels": {"app": "x"}},
  "spec": {"initContainers": [{"resources": {"limits": {"cpu": "64"}}}],
    "containers": [
      {"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 2}}},
      {"name": "b", "resources": {"limits": {"cpu": 1, "memory": "512Mi", "nvidia.com/gpu": "1"},
                                  "requests": {"cpu": "250m", "memory": "256Mi"}}},
      {"name": "c"}]},
  "status": {"phase": "Failed", "qosClass": "Burstable", "startTime": "2026-03-01T10:00:05Z",
    "conditions": [{"type": "PodScheduled", "status": "True"},
      {"type": "Ready", "status": "False", "reason": "PodFailed",
       "lastTransitionTime": "2026-03-01T11:00:02Z"}],
    "containerStatuses": [
      {"state": {"terminated": {"finishedAt": "2026-03-01T10:30:00Z", "reason": "OOMKilled"}}},
      {"state": {"terminated": {"finishedAt": "2026-03-01T11:00:00Z", "reason": "Error"}}}]}})";

std::string list(const std::string& items, const std::string& metadata = "{}") {
  return R"({"kind": "PodList", "metadata": )" + metadata + R"(, "items": [)" + items + "]}";
}

TEST(KubePod, CountsNativeSidecarsAndTheRequestsOfContainersWithoutALimit) {
  const auto page = parse_pod_list(list(R"({"metadata": {"uid": "u"}, "spec": {
    "initContainers": [
      {"restartPolicy": "Always", "resources": {"limits": {"cpu": "3", "nvidia.com/gpu": "2"}}},
      {"resources": {"limits": {"cpu": "9"}, "requests": {"cpu": "9"}}}],
    "containers": [
      {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "memory": "1Gi"}}},
      {"resources": {"requests": {"cpu": "250m"}}}, {}]}})"));
  ASSERT_TRUE(page) << page.error().message;
  const Pod& pod = page->pods.at(0);
  EXPECT_THAT(pod.limits, ElementsAre(Pair("cpu", 4), Pair("nvidia.com/gpu", 2)));
  EXPECT_THAT(pod.requests, ElementsAre(Pair("cpu", 0.75), Pair("memory", 1 << 30)));
  EXPECT_THAT(pod.reserved,
              ElementsAre(Pair("cpu", 4.25), Pair("memory", 1 << 30), Pair("nvidia.com/gpu", 2)));
}

TEST(ResourceClaims, TellTheDevicesOfEachPod) {
  const auto claims = parse_resource_claims(R"({"metadata": {"continue": "t"}, "items": [
    {"status": {"allocation": {"devices": {"results": [
        {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0"},
        {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-1"}]}},
      "reservedFor": [{"resource": "pods", "name": "a", "uid": "u1"},
                      {"resource": "other", "uid": "u3"},
                      {"resource": "pods", "name": "b", "uid": "u2"}]}},
    {"status": {}}, 5]})");
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->next, "t");
  ASSERT_EQ(claims->devices.size(), 2U);
  EXPECT_EQ(claims->devices[0].pod_uid, "u1");
  EXPECT_EQ(claims->devices[1].pod_uid, "u2");
  EXPECT_EQ(claims->devices[1].driver, "gpu.nvidia.com");
  EXPECT_EQ(claims->devices[1].count, 2);
  EXPECT_FALSE(parse_resource_claims("{}"));
}

TEST(ResourceClaims, LeaveOutDevicesThatAPodDoesNotHold) {
  const auto claims = parse_resource_claims(R"({"items": [
    {"status": {"allocation": {"devices": {"results": [
        {"driver": "gpu.nvidia.com", "device": "gpu-0", "adminAccess": true},
        {"driver": "gpu.nvidia.com", "device": "gpu-1", "adminAccess": true},
        {"driver": "nics.example.org", "device": "nic-0", "adminAccess": false}]}},
      "reservedFor": [{"resource": "pods", "uid": "monitor"}]}},
    {"metadata": {"annotations": {"resource.kubernetes.io/extended-resource-claim": "true"}},
     "status": {"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com"}]}},
      "reservedFor": [{"resource": "pods", "uid": "counted-by-its-limits"}]}}]})");
  ASSERT_TRUE(claims) << claims.error().message;
  ASSERT_EQ(claims->devices.size(), 1U);
  EXPECT_EQ(claims->devices[0].pod_uid, "monitor");
  EXPECT_EQ(claims->devices[0].driver, "nics.example.org");
  EXPECT_EQ(claims->devices[0].count, 1);
}

TEST(KubePod, OfAStaticPodHasTheUidOfItsCgroup) {
  const std::string hash = "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a";
  const auto read = [&hash](const std::string& node) {
    return parse_pod_list(list(R"({"metadata": {"name": "etcd-n1", "uid": "u", "annotations":
                      {"kubernetes.io/config.hash": ")" +
                               hash + R"(", "kubernetes.io/config.mirror": ")" + hash + R"("},
                      "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1",
                      "controller": true}]}, "spec": {"nodeName": ")" +
                               node + R"("}})"))
        ->pods.at(0);
  };
  EXPECT_EQ(read("n1").uid, hash);
  EXPECT_EQ(read("n1").mirror_uid, "u");
  EXPECT_EQ(read("n2").uid, "u");
  EXPECT_EQ(read("n2").mirror_uid, "");
}

TEST(KubePod, IsReadFromItsObject) {
  const auto page = parse_pod_list(list(kPod, R"({"resourceVersion": "77", "continue": "t"})"));
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->resource_version, "77");
  EXPECT_EQ(page->next, "t");
  ASSERT_EQ(page->pods.size(), 1U);
  const Pod& pod = page->pods[0];
  EXPECT_EQ(pod.uid, "u-1");
  EXPECT_EQ(pod.name, "train");
  EXPECT_EQ(pod.name_space, "lab");
  EXPECT_THAT(pod.annotations, ElementsAre(Pair("ceems.io/created-by", "ada")));
  EXPECT_THAT(pod.labels, ElementsAre(Pair("app", "x")));
  EXPECT_EQ(pod.created_ms, 1'772'359'200'000);
  EXPECT_EQ(pod.start_ms, pod.created_ms + 5'000);
  EXPECT_EQ(pod.finished_ms, pod.created_ms + 3'600'000);
  EXPECT_EQ(pod.unready_ms, pod.finished_ms + 2'000);
  EXPECT_EQ(pod.deletion_ms, pod.created_ms + 7'230'000);
  EXPECT_EQ(pod.ready, "PodFailed");
  EXPECT_EQ(pod.qos, "Burstable");
  EXPECT_TRUE(pod.finished());
  EXPECT_TRUE(pod.out_of_memory);
  EXPECT_DOUBLE_EQ(pod.limits.at("cpu"), 1.5);
  EXPECT_DOUBLE_EQ(pod.limits.at("memory"), 1.5 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(pod.limits.at("nvidia.com/gpu"), 3);
  EXPECT_THAT(pod.requests, ElementsAre(Pair("cpu", 0.25), Pair("memory", 256.0 * (1 << 20))));
}

TEST(KubePod, LimitsOfThePodOverrideThoseOfItsContainers) {
  const auto page = parse_pod_list(list(R"({"metadata": {"uid": "u"}, "spec": {
    "resources": {"limits": {"cpu": "100m"}},
    "containers": [{"resources": {"limits": {"cpu": "4", "memory": "1Ki", "a.b/gpu": 1}}}]}})"));
  ASSERT_TRUE(page);
  EXPECT_THAT(page->pods[0].limits,
              ElementsAre(Pair("a.b/gpu", 1), Pair("cpu", 0.1), Pair("memory", 1024)));
  EXPECT_THAT(page->pods[0].requests, IsEmpty());
}

TEST(KubePod, HasNotFinishedWhileAContainerRuns) {
  const auto page = parse_pod_list(list(R"({"metadata": {"uid": "u"}, "status": {
    "containerStatuses": [{"state": {"terminated": {"finishedAt": "2026-03-01T10:30:00Z"}}},
                          {"state": {"running": {}}}]}})"));
  EXPECT_EQ(page->pods[0].finished_ms, 0);
}

TEST(KubePod, IsSkippedWithoutUid) {
  const auto page = parse_pod_list(
      list(R"(null, 5, [], {}, {"metadata": 1}, {"metadata": {"uid": 7}}, {"metadata": {"uid": "u",
        "name": 5, "annotations": [1], "creationTimestamp": 5, "labels": {"a": 1, "b": "c"}},
        "spec": {"containers": {"x": 1}, "resources": 3},
        "status": {"phase": [], "conditions": [1, {"type": "Ready"}], "startTime": "yesterday",
                   "containerStatuses": [3]}})"));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->malformed, 6U);
  ASSERT_EQ(page->pods.size(), 1U);
  EXPECT_THAT(page->pods[0].labels, ElementsAre(Pair("b", "c")));
  EXPECT_EQ(page->pods[0].start_ms, 0);
  EXPECT_EQ(page->pods[0].finished_ms, 0);
}

TEST(KubePod, CannotFillTheMemory) {
  std::string annotations = R"("long": ")" + std::string(5000, 'x') + '"';
  for (int i = 0; i < 100; ++i) {
    annotations += fmt::format(R"(, "k{}": "{}")", i, std::string(1000, 'y'));
  }
  const auto page =
      parse_pod_list(list(R"({"metadata": {"uid": "u", "annotations": {)" + annotations + "}}}"));
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_FALSE(page->pods[0].annotations.contains("long"));
  EXPECT_EQ(page->pods[0].annotations.size(), 8U);
}

TEST(KubePodList, RejectsOtherText) {
  for (const std::string& text :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"items": 5})"), std::string(R"({"items": [)"),
        std::string(R"({"items": []} more)"), std::string(100'000, '['),
        R"({"items": [], "metadata": {"continue": ")" + std::string(100'000, 'a') + "\"}}"}) {
    const auto page = parse_pod_list(text);
    ASSERT_FALSE(page) << text.substr(0, 40);
    EXPECT_EQ(page.error().code, ErrorCode::kParse);
  }
  EXPECT_TRUE(parse_pod_list(R"({"items": null})")->pods.empty());
}

TEST(WatchLine, IsAnEvent) {
  const auto added = parse_watch_line(std::string(R"({"type": "ADDED", "object": )") + kPod + "}");
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->type, WatchEvent::Type::kAdded);
  EXPECT_EQ(added->pod.uid, "u-1");
  EXPECT_EQ(added->resource_version, "12");
  const auto deleted =
      parse_watch_line(R"({"type": "DELETED", "object": {"metadata": {"uid": "u"}}})");
  EXPECT_EQ(deleted->type, WatchEvent::Type::kDeleted);
  const auto bookmark = parse_watch_line(
      R"({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}})");
  EXPECT_EQ(bookmark->type, WatchEvent::Type::kBookmark);
  EXPECT_EQ(bookmark->resource_version, "9");
  const auto error = parse_watch_line(
      R"({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})");
  EXPECT_EQ(error->type, WatchEvent::Type::kError);
  EXPECT_EQ(error->status, 410);
  EXPECT_EQ(error->message, "too old");
}

TEST(WatchLine, RejectsOtherText) {
  for (const std::string text :
       {"", "x", "[]", "{}", R"({"type": "ADDED"})", R"({"type": "ADDED", "object": 5})",
        R"({"type": "NEWS", "object": {"metadata": {"uid": "u"}}})", R"({"object": {}})"}) {
    const auto event = parse_watch_line(text);
    ASSERT_FALSE(event) << text;
    EXPECT_EQ(event.error().code, ErrorCode::kParse) << text;
  }
  const auto event = parse_watch_line(R"({"type": "MODIFIED", "object": {"metadata": {}}})");
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, ErrorCode::kNoData);
}

TEST(RoleBindings, ContainTheUsersTheyName) {
  const auto bindings = parse_role_bindings(R"({"metadata": {"continue": "c"}, "items": [
    {"metadata": {"namespace": "n1"}, "subjects": [
      {"kind": "User", "name": "ada"}, {"kind": "Group", "name": "all"},
      {"kind": "ServiceAccount", "name": "default"}, {"kind": "User"}, 5, {"kind": "User", "name": 3}]},
    {"metadata": {"namespace": "n2"}}, {"metadata": {"namespace": "n2"}, "subjects": null},
    {"subjects": [{"kind": "User", "name": "nowhere"}]}, 7]})");
  ASSERT_TRUE(bindings);
  EXPECT_EQ(bindings->bindings, 5U);
  EXPECT_EQ(bindings->next, "c");
  ASSERT_EQ(bindings->users.size(), 1U);
  EXPECT_EQ(bindings->users[0].name_space, "n1");
  EXPECT_EQ(bindings->users[0].user, "ada");
  EXPECT_FALSE(parse_role_bindings("{}"));
}

TEST(ExecCredential, HasATokenOrACertificate) {
  const auto token = parse_exec_credential(
      R"({"kind": "ExecCredential", "status": {"token": "t",
          "expirationTimestamp": "2026-03-01T10:00:00Z"}})");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->token, "t");
  EXPECT_EQ(token->expires_ms, 1'772'359'200'000);
  EXPECT_TRUE(parse_exec_credential(
      R"({"kind": "ExecCredential",
          "status": {"clientCertificateData": "c", "clientKeyData": "k"}})"));
  for (const std::string text :
       {"", "5ecret",
        R"({"kind": "ExecCredential", "status": {"clientCertificateData": "5ecret"}})",
        R"({"kind": "Pod", "status": {"token": "5ecret"}})"}) {
    const auto none = parse_exec_credential(text);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().message, Not(HasSubstr("5ecret")));
  }
}

TEST(StatusMessage, IsThatOfAStatusObject) {
  EXPECT_EQ(status_message(R"({"kind": "Status", "message": "pods is forbidden"})"),
            "pods is forbidden");
  EXPECT_EQ(status_message("<html>"), "");
  EXPECT_EQ(status_message(R"({"message": "x"})"), "");
}

TEST(LineSplitter, PassesOnLinesHoweverTheyArrive) {
  const std::string text = "one\n\ntwo\r\nthree\nfour";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    LineSplitter lines(100);
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < text.size(); at += step) {
      ASSERT_TRUE(lines.feed(std::string_view(text).substr(at, step),
                             [&seen](std::string_view line) -> Result<> {
                               seen.emplace_back(line);
                               return {};
                             }));
    }
    EXPECT_THAT(seen, ElementsAre("one", "two\r", "three")) << step;
  }
}

TEST(LineSplitter, SkipsLinesThatAreTooLong) {
  LineSplitter lines(4);
  std::vector<std::string> seen;
  const auto take = [&seen](std::string_view line) -> Result<> {
    seen.emplace_back(line);
    return {};
  };
  ASSERT_TRUE(lines.feed("abc", take));
  ASSERT_TRUE(lines.feed("def", take));
  ASSERT_TRUE(lines.feed("ghi\nok\nlonger\nend\n", take));
  EXPECT_THAT(seen, ElementsAre("ok", "end"));
  EXPECT_EQ(lines.skipped(), 2U);
}

TEST(LineSplitter, StopsAtAnError) {
  LineSplitter lines(10);
  int calls = 0;
  const auto fed = lines.feed("a\nb\n", [&calls](std::string_view) -> Result<> {
    ++calls;
    return fail(ErrorCode::kParse, "no");
  });
  EXPECT_FALSE(fed);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ceems::kube
