#include "redfish_proxy/address_rules.h"

#include <gtest/gtest.h>

namespace ceems::redfish_proxy {
namespace {

/// What the list says about a BMC: "refused", or whether it allows the address.
std::string decide(const std::vector<std::string>& entries,
                   const std::string& url,
                   std::string_view address) {
  std::vector<AllowedTarget> allowed;
  for (const std::string& text : entries) {
    auto entry = AllowedTarget::parse(text);
    EXPECT_TRUE(entry) << text;
    allowed.push_back(std::move(*entry));
  }
  const auto bmc = parse_bmc_url(url);
  EXPECT_TRUE(bmc) << url;
  const auto rules = rules_for(allowed, *bmc);
  return !rules ? "refused" : rules->permit(address) ? "permitted" : "address refused";
}

TEST(AllowedTarget, ChecksSchemePortAndName) {
  const std::vector<std::string> good{"https://*.bmc.example.org:443", "bmc7"};
  EXPECT_EQ(decide(good, "https://n1.bmc.example.org", "10.0.0.1"), "permitted");
  EXPECT_EQ(decide(good, "http://n1.bmc.example.org", "10.0.0.1"), "refused");
  EXPECT_EQ(decide(good, "https://n1.bmc.example.org:8443", "10.0.0.1"), "refused");
  EXPECT_EQ(decide(good, "https://n1.bmc.example.org.evil.net", "10.0.0.1"), "refused");
  EXPECT_EQ(decide(good, "https://bmc.example.org", "10.0.0.1"), "refused");
  EXPECT_EQ(decide(good, "http://BMC7:8080", "10.0.0.1"), "permitted");
  EXPECT_EQ(decide(good, "http://bmc77", "10.0.0.1"), "refused");
  EXPECT_EQ(decide({"n*-bmc*"}, "http://n12-bmc-b", "10.0.0.1"), "permitted");
  EXPECT_EQ(decide({}, "http://bmc7", "10.0.0.1"), "refused");
}

TEST(AllowedTarget, ChecksTheAddressesThatANameHas) {
  // A name that points to this machine, or to the metadata service of a cloud.
  EXPECT_EQ(decide({"*"}, "http://evil.example.org", "127.0.0.1"), "address refused");
  EXPECT_EQ(decide({"*"}, "http://localhost", "127.0.0.1"), "address refused");
  EXPECT_EQ(decide({"localhost"}, "http://localhost", "127.0.0.1"), "permitted");
  EXPECT_EQ(decide({"localhost"}, "http://localhost", "169.254.169.254"), "address refused");
  EXPECT_EQ(decide({"10.2.0.0/16"}, "http://anything", "10.2.3.4"), "permitted");
  EXPECT_EQ(decide({"10.2.0.0/16"}, "http://anything", "10.3.3.4"), "address refused");
  EXPECT_EQ(decide({"https://10.2.0.0/16:8443"}, "https://a:8443", "10.2.3.4"), "permitted");
  EXPECT_EQ(decide({"https://10.2.0.0/16:8443"}, "https://a", "10.2.3.4"), "refused");
  EXPECT_EQ(decide({"127.0.0.1"}, "http://127.0.0.1:9020", "127.0.0.1"), "permitted");
  EXPECT_EQ(decide({"[2001:db8::]/64"}, "http://[2001:db8::7]", "2001:db8::7"), "permitted");
  EXPECT_EQ(decide({"2001:db8::/64"}, "http://[2001:db8::7]", "2001:db8:1::7"), "address refused");
  EXPECT_EQ(decide({"[2001:db8::7]:443"}, "https://[2001:db8::7]", "2001:db8::7"), "permitted");
}

TEST(AllowedTarget, RefusesOtherTexts) {
  for (const std::string_view text : {"", "https://", "ftp://bmc1", "bmc1:", "bmc1:0", "bmc1:70000",
                                      "bmc1:x", "10.2.0.1/16", "bmc 1", "bmc1/redfish", "u@bmc1"}) {
    const auto entry = AllowedTarget::parse(text);
    ASSERT_FALSE(entry) << text;
    EXPECT_EQ(entry.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(AddressRules, RefuseSpecialAddresses) {
  const AddressRules remote = AddressRules::all(false);
  const AddressRules local = AddressRules::all(true);
  for (const std::string_view address :
       {"0.0.0.0", "0.1.2.3", "169.254.169.254", "::", "fe80::1", "fe80::1%eth0", "ff02::1",
        "224.0.0.1", "255.255.255.255", "::ffff:169.254.169.254", "fd00:ec2::254",
        "100.100.100.200", "localhost", ""}) {
    EXPECT_FALSE(remote.permit(address)) << address;
    EXPECT_FALSE(local.permit(address)) << address;
  }
  for (const std::string_view address : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_FALSE(remote.permit(address)) << address;
    EXPECT_TRUE(local.permit(address)) << address;
  }
  for (const std::string_view address : {"10.0.0.1", "192.168.1.1", "2001:db8::1", "fd00::1"}) {
    EXPECT_TRUE(remote.permit(address)) << address;
  }
}

}  // namespace
}  // namespace ceems::redfish_proxy
