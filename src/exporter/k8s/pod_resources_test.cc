#include "exporter/k8s/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/k8s/fake_kubelet.h"

namespace ceems::exporter::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PodResources, HasDevicesOfAllContainers) {
  const std::string one =
      proto_field(2, proto_field(1, "amd.com/gpu") + proto_field(2, "a::0") + proto_field(2, "b"));
  const std::string two = proto_field(2, proto_field(1, "amd.com/cpx") + proto_field(2, "c"));
  const std::string message = proto_field(1, proto_field(1, "pod1") + proto_field(2, "ns1") +
                                                 proto_field(3, proto_field(1, "x") + one + two) +
                                                 proto_field(3, proto_field(1, "y") + two)) +
                              proto_pod("pod2", "ns2", {"d"}) + proto_pod("without", "ns2", {});
  const auto pods = parse_pod_resources(message);
  ASSERT_TRUE(pods);
  ASSERT_EQ(pods->size(), 2U);
  EXPECT_EQ((*pods)[0].name, "pod1");
  EXPECT_EQ((*pods)[0].name_space, "ns1");
  EXPECT_THAT((*pods)[0].device_ids, ElementsAre("a::0", "b", "c", "c"));
  EXPECT_THAT((*pods)[1].device_ids, ElementsAre("d"));
}

TEST(PodResources, HasTheDevicesOfResourceClaims) {
  const auto device = [](const std::string& name) {
    return proto_field(4, proto_field(1, proto_field(1, "k8s.gpu.nvidia.com/claim=c-" + name)) +
                              proto_field(2, "gpu.nvidia.com") + proto_field(3, "node1") +
                              proto_field(4, name));
  };
  const std::string dynamic =
      proto_field(2, "claim") + proto_field(3, "ns") + device("gpu-0") + device("gpu-1");
  const auto pods = parse_pod_resources(
      proto_field(1, proto_field(1, "pod1") + proto_field(2, "ns1") +
                         proto_field(3, proto_field(1, "x") + proto_field(5, dynamic))));
  ASSERT_TRUE(pods);
  ASSERT_EQ(pods->size(), 1U);
  EXPECT_THAT((*pods)[0].claimed,
              ElementsAre("gpu.nvidia.com/node1/gpu-0", "gpu.nvidia.com/node1/gpu-1"));
  EXPECT_TRUE((*pods)[0].device_ids.empty());
}

TEST(PodResources, SkipsUnknownFields) {
  // Fields 9 as varint, 10 as 64 bits, 11 as 32 bits, 12 with a length.
  std::string unknown("\x48\x96\x01\x51", 4);
  unknown += "12345678";
  unknown += '\x5d';
  unknown += "1234";
  unknown += proto_field(12, "whatever");
  const auto pods = parse_pod_resources(unknown + proto_pod("p", "n", {"d"}) + unknown);
  ASSERT_TRUE(pods);
  ASSERT_EQ(pods->size(), 1U);
  EXPECT_EQ((*pods)[0].name, "p");
}

TEST(PodResources, TreatsAnEmptyAnswerAsNoPods) {
  const auto pods = parse_pod_resources("");
  ASSERT_TRUE(pods);
  EXPECT_TRUE(pods->empty());
}

TEST(PodResources, RefusesBrokenMessages) {
  const std::string good = proto_pod("pod", "ns", {"device"});
  for (std::size_t length = 1; length < good.size(); ++length) {
    EXPECT_FALSE(parse_pod_resources(good.substr(0, length))) << length;
  }
  const std::string inner_lies = proto_field(1, std::string("\x0a\x7f", 2) + "x");
  for (const std::string& text :
       {std::string("\x00", 1), std::string("\x0b"), std::string("\x0f"), std::string(12, '\xff'),
        std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), inner_lies,
        std::string("<html>no</html>")}) {
    const auto pods = parse_pod_resources(text);
    ASSERT_FALSE(pods);
    EXPECT_EQ(pods.error().code, ErrorCode::kParse);
  }
}

TEST(PodResources, LimitsDevices) {
  std::string ids;
  for (int i = 0; i < 200'002; ++i) {
    ids += std::string("\x12\x01x", 3);
  }
  const std::string pod = proto_field(1, proto_field(3, proto_field(2, ids)));
  EXPECT_THAT(parse_pod_resources(pod).error().message, HasSubstr("more than 200000 devices"));
}

}  // namespace
}  // namespace ceems::exporter::k8s
