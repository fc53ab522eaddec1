#include "net/cidr.h"

#include <gtest/gtest.h>

namespace ceems::net {
namespace {

TrustedPeers peers(std::initializer_list<std::string_view> ranges) {
  TrustedPeers made;
  for (const std::string_view range : ranges) {
    auto parsed = Cidr::parse(range);
    EXPECT_TRUE(parsed) << range;
    if (parsed) {
      made.ranges.push_back(*parsed);
    }
  }
  return made;
}

TEST(Cidr, ContainsOnlyTheAddressesOfTheRange) {
  const auto range = Cidr::parse("192.0.2.64/26");
  ASSERT_TRUE(range);
  EXPECT_TRUE(range->contains("192.0.2.64"));
  EXPECT_TRUE(range->contains("192.0.2.127"));
  EXPECT_FALSE(range->contains("192.0.2.63"));
  EXPECT_FALSE(range->contains("192.0.2.128"));
  EXPECT_TRUE(range->contains("::ffff:192.0.2.65"));
  EXPECT_FALSE(range->contains("::192.0.2.65"));
  EXPECT_FALSE(range->contains("unix"));
  EXPECT_FALSE(range->contains(""));
  EXPECT_FALSE(range->contains(std::string_view("192.0.2.65\0", 11)));
}

TEST(Cidr, AcceptsIpv6AndSingleAddresses) {
  const auto net = Cidr::parse("2001:db8:8000::/33");
  ASSERT_TRUE(net);
  EXPECT_TRUE(net->contains("2001:db8:ffff::1"));
  EXPECT_FALSE(net->contains("2001:db8:7fff::1"));
  const auto one = Cidr::parse("10.0.0.1");
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->contains("10.0.0.1"));
  EXPECT_FALSE(one->contains("10.0.0.2"));
  const auto all = Cidr::parse("0.0.0.0/0");
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->contains("203.0.113.9"));
  EXPECT_FALSE(all->contains("2001:db8::1"));
}

TEST(Cidr, RejectsOtherText) {
  for (const std::string_view text :
       {"", "/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/ 8",
        "10.0.0.1/8", "2001:db8::/129", "example.org", "10.0.0", "010.0.0.1", "[::1]"}) {
    const auto parsed = Cidr::parse(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(CanonicalAddress, HasOneSpellingForEachAddress) {
  EXPECT_EQ(canonical_address("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(canonical_address("::FFFF:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(canonical_address("2001:0DB8:0:0::1"), "2001:db8::1");
  EXPECT_EQ(canonical_address("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(canonical_address("::"), "::");
  for (const std::string_view text : {"", "%", "1.2.3", "0x7f.1", "2130706433", "[::1]", "unix"}) {
    EXPECT_EQ(canonical_address(text), std::nullopt) << text;
  }
}

TEST(TrustedPeers, OnlyUnixSocketsAreTrustedByDefault) {
  EXPECT_TRUE(TrustedPeers{}.contains("unix"));
  EXPECT_FALSE(TrustedPeers{}.contains("127.0.0.1"));
  EXPECT_TRUE(peers({"10.0.0.0/8", "::1"}).contains("::1"));
}

TEST(TrustedPeers, TheClientIsTheLastAddressThatIsNotAProxy) {
  const TrustedPeers proxies = peers({"10.0.0.0/8"});
  EXPECT_EQ(client_address(proxies, "10.0.0.1", "198.51.100.7"), "198.51.100.7");
  // What the client itself wrote comes first.
  EXPECT_EQ(client_address(proxies, "10.0.0.1", "1.1.1.1, 198.51.100.7,10.0.0.9"), "198.51.100.7");
  EXPECT_EQ(client_address(proxies, "203.0.113.5", "198.51.100.7"), "203.0.113.5");
  EXPECT_EQ(client_address(proxies, "10.0.0.1", ""), "10.0.0.1");
  EXPECT_EQ(client_address(proxies, "10.0.0.1", "unknown"), "10.0.0.1");
  EXPECT_EQ(client_address(proxies, "10.0.0.1", ",,,"), "10.0.0.1");
}

}  // namespace
}  // namespace ceems::net
