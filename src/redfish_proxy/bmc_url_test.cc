#include <gtest/gtest.h>

#include "redfish_proxy/address_rules.h"

namespace ceems::redfish_proxy {
namespace {

TEST(BmcUrl, HasOneOriginForAllSpellings) {
  for (const char* const text :
       {"https://BMC1", "https://bmc1:443", "HTTPS://bmc1/", "https://user:secret@bmc1:443"}) {
    const auto url = parse_bmc_url(text);
    ASSERT_TRUE(url) << text;
    EXPECT_EQ(url->origin(), "https://bmc1:443") << text;
    EXPECT_EQ(url->host_field(), "bmc1");
  }
  const auto v6 = parse_bmc_url("http://[2001:DB8::1]:8080/base/?a=b");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "2001:db8::1");
  EXPECT_EQ(v6->origin(), "http://[2001:db8::1]:8080");
  EXPECT_EQ(v6->host_field(), "[2001:db8::1]:8080");
  EXPECT_EQ(v6->base_path, "/base");
  EXPECT_EQ(v6->query, "a=b");
}

TEST(BmcUrl, RefusesWhatIsNotTheUrlOfAServer) {
  for (const char* const text :
       {"", "bmc1", "http:1.2.3.4:80", "http:/bmc1", "http:///bmc1", "ftp://bmc1", "unix:///run/x",
        "http://", "http://bmc 1", "http://bmc1\\@evil", " http://bmc1", "http://bmc1:99999",
        "http://bmc1:x", "file:///etc/passwd", "gopher://bmc1"}) {
    const auto url = parse_bmc_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(url.error().message.starts_with("invalid url string: ")) << url.error().message;
  }
  EXPECT_FALSE(parse_bmc_url("http://" + std::string(3000, 'a')));
}

TEST(BmcUrl, OfAHeaderNamesOnlyAServer) {
  EXPECT_TRUE(parse_bmc_header("http://bmc1:80"));
  EXPECT_TRUE(parse_bmc_header("http://bmc1/"));
  for (const char* const text :
       {"http://bmc1/redfish", "http://bmc1?x", "http://bmc1#x", "http://u@bmc1"}) {
    EXPECT_FALSE(parse_bmc_header(text)) << text;
  }
}

}  // namespace
}  // namespace ceems::redfish_proxy
