#include "exporter/k8s/kubelet_client.h"

#include <sys/stat.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/k8s/fake_kubelet.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::k8s {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Kubelet : public ::testing::Test {
 protected:
  [[nodiscard]] Result<std::vector<PodDevices>> ask(
      milliseconds timeout = testing::kPatience) const {
    return list_pod_devices(path_, timeout, {});
  }
  testing::TempDir directory_;
  std::string path_ = directory_.path() / "kubelet.sock";
};

TEST_F(Kubelet, ListsTheDevicesOfPods) {
  const FakeKubelet kubelet(path_,
                            {.body = grpc_frame(proto_pod("a", "n", {"GPU-1", "GPU-2"}) +
                                                proto_pod("b", "n", {std::string(200, 'x')}))});
  const auto pods = ask();
  ASSERT_TRUE(pods) << pods.error().message;
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_THAT((*pods)[0].device_ids, ElementsAre("GPU-1", "GPU-2"));
  EXPECT_EQ(kubelet.calls(), 1);
}

TEST_F(Kubelet, MaySendALargeAnswer) {
  std::string message;
  for (int i = 0; i < 3000; ++i) {
    message += proto_pod("pod" + std::to_string(i), "n", {"GPU-" + std::to_string(i)});
  }
  const FakeKubelet kubelet(path_, {.body = grpc_frame(message)});
  const auto pods = ask();
  ASSERT_TRUE(pods) << pods.error().message;
  EXPECT_EQ(pods->size(), 3000U);
}

TEST_F(Kubelet, MayRefuse) {
  const FakeKubelet kubelet(path_, {.body = "", .status = "12"});
  EXPECT_THAT(ask().error().message, HasSubstr("kubelet at " + path_ + ": gRPC status 12: fake"));
}

TEST_F(Kubelet, MaySendInvalidData) {
  for (const std::string& body : {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"),
                                  std::string(20'000, '\xff'), std::string()}) {
    std::filesystem::remove(path_);
    const FakeKubelet kubelet(path_, {.manner = FakeKubelet::Manner::kBabbles, .body = body});
    const auto pods = ask();
    ASSERT_FALSE(pods);
    EXPECT_THAT(pods.error().message, HasSubstr("kubelet at " + path_ + ": "));
  }
}

TEST_F(Kubelet, MaySendABrokenMessage) {
  const FakeKubelet kubelet(path_, {.body = grpc_frame("garbage")});
  const auto pods = ask();
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, ErrorCode::kParse);
}

TEST_F(Kubelet, MaySendATooLargeAnswer) {
  const FakeKubelet kubelet(path_, {.body = std::string(kMaxKubeletAnswer + 1, 'x')});
  const auto pods = ask();
  ASSERT_FALSE(pods);
  EXPECT_THAT(pods.error().message, HasSubstr("the answer is larger than"));
}

TEST_F(Kubelet, MayHang) {
  const FakeKubelet kubelet(path_, {.manner = FakeKubelet::Manner::kHangs});
  const auto before = std::chrono::steady_clock::now();
  const auto pods = ask(milliseconds(100));
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, ErrorCode::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - before, testing::kPatience);
}

TEST_F(Kubelet, MayBeMissing) {
  const auto pods = ask();
  ASSERT_FALSE(pods);
  EXPECT_EQ(pods.error().code, ErrorCode::kUnavailable);
}

TEST_F(Kubelet, MayBeAccessibleToEveryUserOrNot) {
  const std::filesystem::path below = directory_.path() / "d";
  std::filesystem::create_directory(below);
  const std::string path = below / "k.sock";
  const FakeKubelet kubelet(path, {});
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(below.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_TRUE(accessible_to_every_user(path));
  ASSERT_EQ(::chmod(path.c_str(), 0660), 0);
  EXPECT_FALSE(accessible_to_every_user(path));
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(below.c_str(), 0750), 0);
  EXPECT_FALSE(accessible_to_every_user(path));
  EXPECT_FALSE(accessible_to_every_user(path_));
}

TEST(GrpcMessage, FollowsItsPrefix) {
  EXPECT_EQ(grpc_message(grpc_frame("text")).value(), "text");
  EXPECT_EQ(grpc_message(grpc_frame("")).value(), "");
  EXPECT_FALSE(grpc_message(""));
  EXPECT_FALSE(grpc_message("abcd"));
  EXPECT_FALSE(grpc_message(grpc_frame("text") + "more"));
  EXPECT_FALSE(grpc_message(grpc_frame("text").substr(0, 7)));
  std::string compressed = grpc_frame("text");
  compressed.front() = '\1';
  EXPECT_FALSE(grpc_message(compressed));
}

}  // namespace
}  // namespace ceems::exporter::k8s
