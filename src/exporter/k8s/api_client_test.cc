#include "exporter/k8s/api_client.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/server/server.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::k8s {
namespace {

TEST(ResourceSlices, NameTheDevicesByUuidOrPciAddress) {
  SliceDevices devices;
  const auto next = parse_slice_page(
      R"({"metadata":{"continue":"t"},"items":[{"spec":{"driver":"gpu.nvidia.com",
          "pool":{"name":"node1"},"devices":[
            {"name":"gpu-0","attributes":{"resource.kubernetes.io/pciBusID":{"string":"0000:c8:00.0"},
                                          "uuid":{"string":"GPU-a"}}},
            {"name":"gpu-1","basic":{"attributes":{"gpu.nvidia.com/uuid":{"string":"GPU-b"}}}},
            {"name":"gpu-2","attributes":{"index":{"int":2}}},5]}},
        {"spec":{"driver":"gpu.amd.com","pool":{"name":"node1"},"devices":[
            {"name":"gpu-3","attributes":{"pciAddr":{"string":"0000:01:00.0"}}}]}},7]})",
      devices);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(*next, "t");
  EXPECT_EQ(devices, (SliceDevices{{"gpu.amd.com/node1/gpu-3", "0000:01:00.0"},
                                   {"gpu.nvidia.com/node1/gpu-0", "GPU-a"},
                                   {"gpu.nvidia.com/node1/gpu-1", "GPU-b"}}));
  EXPECT_FALSE(parse_slice_page("{", devices));
  EXPECT_FALSE(parse_slice_page("{}", devices));
  EXPECT_EQ(parse_slice_page(R"({"items":null})", devices).value(), "");
}

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PodPage, HasNamesAndUids) {
  const auto page = parse_pod_page(R"({"kind": "PodList", "metadata": {"resourceVersion": "7"},
      "items": [
        {"metadata": {"name": "a", "namespace": "n", "uid": "u-1", "labels": {"x": "y"}},
         "spec": {"containers": [{"name": "c"}]}},
        {"metadata": {"name": "b", "namespace": "n", "uid": "u-2"}}]})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->pods.size(), 2U);
  EXPECT_EQ(page->pods[0].name, "a");
  EXPECT_EQ(page->pods[0].name_space, "n");
  EXPECT_EQ(page->pods[0].uid, "u-1");
  EXPECT_EQ(page->pods[1].uid, "u-2");
  EXPECT_EQ(page->next, "");
}

TEST(PodPage, LeavesOutItemsThatAreNotPods) {
  const auto page = parse_pod_page(
      R"({"items": [null, 1, {}, {"metadata": 3}, {"metadata": {"name": 1, "uid": "u"}},
          {"metadata": {"name": "a"}}, {"metadata": {"uid": "u"}},
          {"metadata": {"name": "good", "uid": "u"}}], "metadata": {"continue": "t"}})");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->pods.size(), 1U);
  EXPECT_EQ(page->pods[0].name, "good");
  EXPECT_EQ(page->next, "t");
}

TEST(PodPage, KnowsStaticPodsByTheUidOfTheKubelet) {
  const auto mirror = [](const std::string& name, const std::string& created) {
    return R"({"metadata": {"name": ")" + name + R"(-n1", "uid": ")" + name +
           R"(", "creationTimestamp": ")" + created + R"(",
        "annotations": {"kubernetes.io/config.hash": "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a",
                        "kubernetes.io/config.mirror": "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1",
                             "controller": true}]}})";
  };
  const std::string early = mirror("true", "2026-01-01T00:00:00Z");
  const std::string late = mirror("forged", "2026-01-01T00:00:01Z");
  for (const std::string& items : {early + "," + late, late + "," + early}) {
    auto page = parse_pod_page(R"({"items": [)" + items + "]}", "n1");
    ASSERT_TRUE(page);
    settle_mirrors(page->pods);
    ASSERT_EQ(page->pods.size(), 2U);
    for (const Pod& pod : page->pods) {
      EXPECT_EQ(pod.uid, pod.name == "true-n1" ? "4c1b1f7f0e3a5d6c7b8a9f0e1d2c3b4a" : "forged");
    }
    EXPECT_EQ(parse_pod_page(R"({"items": [)" + early + "]}", "n2")->pods.at(0).uid, "true");
  }
}

TEST(PodPage, TreatsNullAsNoPods) {
  EXPECT_TRUE(parse_pod_page(R"({"items": null})")->pods.empty());
}

TEST(PodPage, RefusesOtherTexts) {
  for (const std::string& text :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"items": {}})"), std::string(R"({"items": [)"),
        std::string(R"({"items": []} more)"), std::string(100'000, '[')}) {
    const auto page = parse_pod_page(text);
    ASSERT_FALSE(page) << text.substr(0, 20);
    EXPECT_EQ(page.error().code, ErrorCode::kParse);
  }
}

class ApiServer : public ::testing::Test {
 protected:
  void serve(std::vector<std::string> bodies, int status = 200) {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    server_ = *net::Server::create(
        std::move(options), [this, bodies = std::move(bodies), status](const net::Request& request,
                                                                       net::Response& response) {
          const MutexLock lock(mutex_);
          response.status = status;
          response.body = bodies.at(std::min(requests_.size(), bodies.size() - 1));
          requests_.push_back(request);
        });
    server_->start();
    access_.server = "http://" + server_->addresses()[0] + "/prefix";
  }
  [[nodiscard]] Result<std::vector<Pod>> list(const std::string& node) const {
    return list_pods(access_, node, milliseconds(3000), {});
  }
  [[nodiscard]] net::Request request(std::size_t number) const {
    const MutexLock lock(mutex_);
    return requests_.at(number);
  }
  [[nodiscard]] std::string header(std::size_t number, std::string_view name) const {
    const net::Request sent = request(number);
    const std::string* value = net::find_header(sent.headers, name);
    return value == nullptr ? "" : *value;
  }

  mutable Mutex mutex_;
  std::vector<net::Request> requests_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;
  kube::ApiAccess access_;
};

constexpr const char* kOnePod = R"({"items": [{"metadata": {"name": "a", "uid": "u"}}]})";

TEST_F(ApiServer, ListsThePodsOfTheNode) {
  serve({kOnePod});
  access_.token = "t0ken";
  const auto pods = list("node 1&x");
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ(pods->size(), 1U);
  EXPECT_EQ(request(0).target, "/prefix/api/v1/pods?fieldSelector=spec.nodeName%3Dnode%201%26x");
  EXPECT_EQ(header(0, "Authorization"), "Bearer t0ken");
  EXPECT_THAT(header(0, "Accept"), HasSubstr("as=PartialObjectMetadataList"));
}

TEST_F(ApiServer, ListsThePodsOfAClusterInPages) {
  serve({R"({"metadata": {"continue": "a+b"}, "items": [{"metadata": {"name": "a", "uid": "1"}}]})",
         R"({"items": [{"metadata": {"name": "b", "uid": "2"}}]})"});
  access_.username = "me";
  access_.password = "secret";
  const auto pods = list("");
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_EQ((*pods)[1].uid, "2");
  EXPECT_EQ(request(0).target, "/prefix/api/v1/pods?limit=500");
  EXPECT_EQ(request(1).target, "/prefix/api/v1/pods?limit=500&continue=a%2Bb");
  EXPECT_EQ(header(1, "Authorization"), "Basic bWU6c2VjcmV0");
}

TEST_F(ApiServer, ReceivesTheCurrentTokenOfTheFile) {
  const testing::TempDir root;
  serve({kOnePod});
  access_.token = "old";
  access_.token_file = root.write("token", "first\n");
  ASSERT_TRUE(list("n"));
  root.write("token", "second\n");
  ASSERT_TRUE(list("n"));
  EXPECT_EQ(header(0, "Authorization"), "Bearer first");
  EXPECT_EQ(header(1, "Authorization"), "Bearer second");
}

TEST_F(ApiServer, MayRefuse) {
  serve({"no"}, 403);
  access_.token = "t0ken";
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr("HTTP status 403"));
  EXPECT_THAT(pods.error().message, Not(HasSubstr("t0ken")));
}

TEST_F(ApiServer, MaySendInvalidData) {
  serve({"{\"items\": 5}"});
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, ErrorCode::kParse);
}

TEST_F(ApiServer, NeedsItsFiles) {
  serve({kOnePod});
  access_.token_file = "/does/not/exist";
  const auto pods = list("n");
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr("API server of Kubernetes: open /does/not/exist"));
  access_.token_file.clear();
  access_.ca = "no certificate";
  access_.server = "https://127.0.0.1:1";
  EXPECT_FALSE(list("n"));
}

}  // namespace
}  // namespace ceems::exporter::k8s
