#include "exporter/ebpf/network_class.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::ebpf {
namespace {

std::string error_of(const std::vector<std::string>& texts) {
  const auto classes = NetworkClasses::parse(texts);
  return classes ? "" : classes.error().message;
}

TEST(NetworkClasses, ReadsNetworksOfBothFamilies) {
  const auto classes =
      NetworkClasses::parse({"storage=10.1.0.0/16,fd00:1::/64", "cluster=10.0.0.7", "storage=::1"});
  ASSERT_TRUE(classes) << classes.error().message;
  const auto& networks = classes->networks();
  ASSERT_EQ(networks.size(), 4U);
  EXPECT_EQ(networks[0].first.prefix, 112U);  // 96 bits before an IPv4 address
  const std::vector<int> bytes(std::begin(networks[0].first.address),
                               std::end(networks[0].first.address));
  EXPECT_EQ(bytes, (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 0}));
  EXPECT_EQ(networks[0].second, 1U);
  EXPECT_EQ(networks[1].first.prefix, 64U);
  EXPECT_EQ(networks[1].first.address[0], 0xfd);
  EXPECT_EQ(networks[2].first.prefix, 128U);
  EXPECT_EQ(networks[2].second, 2U);
  EXPECT_EQ(networks[3].second, 1U);
  EXPECT_EQ(classes->name(1), "storage");
  EXPECT_EQ(classes->name(2), "cluster");
  EXPECT_EQ(classes->name(0), "outside");
  EXPECT_EQ(classes->name(3), "outside");
}

TEST(NetworkClasses, NoneIsEmpty) {
  const auto classes = NetworkClasses::parse({});
  ASSERT_TRUE(classes);
  EXPECT_TRUE(classes->empty());
}

TEST(NetworkClasses, SaysWhatIsWrong) {
  EXPECT_EQ(error_of({"10.0.0.0/8"}),
            "'10.0.0.0/8': expected NAME=NETWORK[,NETWORK...] with a NAME other than 'outside'");
  EXPECT_NE(error_of({"outside=10.0.0.0/8"}), "");
  EXPECT_NE(error_of({"=10.0.0.0/8"}), "");
  EXPECT_EQ(error_of({"a=10.0.0.0/33"}),
            "'a=10.0.0.0/33': '10.0.0.0/33' is not a network like 10.1.0.0/16");
  EXPECT_EQ(error_of({"a=10.0.0.0/8,"}), "'a=10.0.0.0/8,': '' is not a network like 10.1.0.0/16");
  EXPECT_NE(error_of({"a=fd00::/129"}), "");
  EXPECT_NE(error_of({"a=10.0.0.0/x"}), "");
  std::string many = "a=10.0.0.1";
  for (int i = 0; i < 1024; ++i) {
    many += ",10.0.0.1";
  }
  EXPECT_EQ(error_of({many}), "1025 networks are too many, at most 1024 are possible");
}

}  // namespace
}  // namespace ceems::exporter::ebpf
