#include "redfish_proxy/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::redfish_proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Config> read(std::string_view text) {
  auto document = config::parse_yaml(text, "p.yml");
  EXPECT_TRUE(document);
  return parse_config(*document, "/etc/ceems");
}

std::string refusal(std::string_view text) {
  const auto config = read(text);
  return config ? "accepted" : config.error().message;
}

TEST(RedfishProxyConfig, ReadsTargets) {
  const auto config = read(R"(
redfish_proxy:
  targets:
    - host_ip_addrs: [192.0.2.1, "2001:DB8::1"]
      url: https://bmc1/base
    - host_ip_addrs: [192.0.2.2]
      url: http://bmc2:8080
      tls_config: {ca_file: ca.pem}
  tls_config: {insecure_skip_verify: true}
  allowed_targets: ["https://*.example.org"]
  trusted_proxies: [10.0.0.0/8]
  remember: 5m
  timeout: 20s
  max_requests_per_client: 8
  max_request_rate_per_client: 0
)");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->targets.size(), 2U);
  EXPECT_EQ(config->targets[0].url.origin(), "https://bmc1:443");
  EXPECT_EQ(config->targets[0].url.base_path, "/base");
  EXPECT_THAT(config->targets[0].addresses, ElementsAre("192.0.2.1", "2001:db8::1"));
  EXPECT_FALSE(config->targets[0].tls);
  ASSERT_TRUE(config->targets[1].tls);
  EXPECT_EQ(config->targets[1].tls->ca_file, "/etc/ceems/ca.pem");
  EXPECT_TRUE(config->client.tls.insecure_skip_verify);
  EXPECT_EQ(config->allowed_targets.size(), 1U);
  EXPECT_FALSE(config->trusted_proxies.contains("127.0.0.1"));
  EXPECT_EQ(config->remember, std::chrono::minutes(5));
  EXPECT_EQ(config->timeout, std::chrono::seconds(20));
  EXPECT_EQ(config->max_requests_per_client, 8);
  EXPECT_EQ(config->max_request_rate_per_client, 0);
  EXPECT_FALSE(config->follows_all_headers());
}

TEST(RedfishProxyConfig, WithoutAFileFollowsHeadersAndTrustsTheLoopbackInterface) {
  const auto config = parse_config({}, {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->follows_all_headers());
  EXPECT_TRUE(config->trusted_proxies.contains("127.0.0.1"));
  EXPECT_TRUE(config->trusted_proxies.contains("::1"));
  EXPECT_FALSE(config->trusted_proxies.contains("10.0.0.1"));
  ASSERT_TRUE(config->policy);
  EXPECT_EQ(config->policy->check("GET", "/redfish/v1/Systems"),
            ResourcePolicy::Verdict::kPathRefused);
  // The list of resources also holds with a file that has none.
  EXPECT_EQ(read("ceems_lb: {}")->policy->check("GET", "/redfish/v1/Systems"),
            ResourcePolicy::Verdict::kPathRefused);
}

TEST(RedfishProxyConfig, ReadsTheOldSectionAndTheOldSwitch) {
  const auto config = read(R"(
redfish_config:
  web: {url: "http://ignored"}
  insecure_skip_verify: true
  tls_config: {ca_file: /nowhere}
  targets: [{host_ip_addrs: [192.0.2.1], url: "https://bmc1"}]
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->targets.size(), 1U);
  EXPECT_TRUE(config->client.tls.insecure_skip_verify);
  EXPECT_EQ(config->client.tls.ca_file, "");
  const auto both = read("redfish_proxy: {remember: 1m}\nredfish_config: {remember: 2m}\n");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->remember, std::chrono::minutes(1));
}

TEST(RedfishProxyConfig, NamesTheLineOfAMistake) {
  const auto target = [](const std::string& text) {
    return refusal("redfish_proxy:\n  targets:\n    - " + text + "\n");
  };
  EXPECT_THAT(target("{host_ip_addrs: [192.0.2.1], url: 'http:1.2.3.4:80'}"),
              HasSubstr("p.yml:3: redfish_proxy.targets[0].url: invalid url string: expected"));
  EXPECT_THAT(target("{host_ip_addrs: [192.0.2.1], url: 'http://u:secret@'}"),
              ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(target("{host_ip_addrs: [192.0.2.1]}"), HasSubstr("url is missing"));
  EXPECT_THAT(target("{host_ip_addrs: [node1], url: 'http://bmc1'}"),
              HasSubstr("expected an IP address, got 'node1'"));
  EXPECT_THAT(target("{host_ips: [192.0.2.1], url: 'http://bmc1'}"), HasSubstr("host_ip"));
  EXPECT_THAT(refusal("redfish_proxy:\n  targets:\n"
                      "    - {host_ip_addrs: [192.0.2.1], url: 'http://a'}\n"
                      "    - {host_ip_addrs: ['::ffff:192.0.2.1'], url: 'http://b'}\n"),
              HasSubstr("p.yml:4: redfish_proxy.targets[1].host_ip_addrs: 192.0.2.1 is already"));
  EXPECT_THAT(refusal("redfish_proxy: {target: []}"), HasSubstr("targets"));
  EXPECT_THAT(refusal("redfish_proxies: {}"), HasSubstr("redfish_proxy"));
  EXPECT_THAT(refusal("redfish_proxy: {allowed_api_resources: ['(']}"),
              HasSubstr("invalid regular expression"));
  EXPECT_THAT(refusal("redfish_proxy: {allowed_targets: ['ftp://x']}"),
              HasSubstr("allowed_targets[0]: expected http:// or https://"));
  EXPECT_THAT(refusal("redfish_proxy: {trusted_proxies: [proxy]}"),
              HasSubstr("trusted_proxies[0]"));
  EXPECT_THAT(refusal("redfish_proxy: {timeout: 0s}"), HasSubstr("expected 1s to 10m"));
  EXPECT_THAT(refusal("redfish_proxy: {remember: 8d}"), HasSubstr("expected 0s (off) to 7d"));
  EXPECT_THAT(refusal("redfish_proxy: {max_requests_per_client: 0}"), HasSubstr("1 to 10000"));
  EXPECT_THAT(refusal("redfish_proxy: {max_request_rate_per_client: -1}"),
              HasSubstr("0 (no limit) to 1000000"));
  EXPECT_THAT(refusal("redfish_proxy: {proxy_url: 'http://p'}"), HasSubstr("another proxy"));
  EXPECT_THAT(refusal("redfish_proxy: []"), HasSubstr("expected a mapping"));
}

}  // namespace
}  // namespace ceems::redfish_proxy
