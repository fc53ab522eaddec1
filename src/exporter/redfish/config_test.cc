#include "exporter/redfish/config.h"

#include <map>

#include <gtest/gtest.h>

namespace ceems::exporter::redfish {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Config> parse(std::string_view text, const Variables& variables = {}) {
  return parse_config(text, "redfish.yml",
                      {.node_name = "n1", .environment = [variables](const std::string& name) {
                         const auto found = variables.find(name);
                         return found == variables.end() ? std::string() : found->second;
                       }});
}
std::string error_of(std::string_view text) {
  const auto config = parse(text);
  return config ? "no error" : config.error().message;
}

constexpr const char* kFull = R"(redfish_collector:
  protocol: https
  hostname: bmc-{hostname}.{hostname}
  port: 8443
  username: admin
  password: "s3cret"
  use_session_token: false
  timeout: 1500
  external_url: http://proxy:5000/
  node_chassis: [Self, GPU]
  tls_config:
    insecure_skip_verify: true
    server_name: bmc
  basic_auth:
    username: proxy
    password: pw
  proxy_url: http://forward:3128
  follow_redirects: false
  enable_http2: false
  http_headers:
    X-One:
      values: [a]
    x-redfish-URL:
      values: [elsewhere]
)";

TEST(RedfishConfig, AcceptsEveryKey) {
  const auto config = parse(kFull);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->bmc_url(), "https://bmc-n1.n1:8443");
  EXPECT_EQ(config->base_url(), "http://proxy:5000");
  EXPECT_EQ(config->username, "admin");
  EXPECT_EQ(config->password, "s3cret");
  EXPECT_FALSE(config->use_session_token);
  EXPECT_EQ(config->timeout.count(), 1500);
  EXPECT_EQ(config->node_chassis, (std::vector<std::string>{"Self", "GPU"}));
  EXPECT_TRUE(config->http.tls.insecure_skip_verify);
  EXPECT_EQ(config->http.tls.server_name, "bmc");
  EXPECT_EQ(config->http.basic_auth->username, "proxy");
  EXPECT_EQ(config->http.proxy_url, "http://forward:3128");
  EXPECT_FALSE(config->http.follow_redirects);
  EXPECT_FALSE(config->http.enable_http2);
  EXPECT_EQ(config->http.headers.size(), 1U) << "X-Redfish-Url is not overridden";
}

TEST(RedfishConfig, HasTheDefaultsOfTheReference) {
  const auto config = parse("redfish_collector:\n  protocol: http\n  timeout: -1\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->hostname, "");
  EXPECT_EQ(config->port, std::nullopt);
  EXPECT_TRUE(config->use_session_token);
  EXPECT_EQ(config->timeout.count(), 5000);
  EXPECT_TRUE(config->http.follow_redirects);
}

TEST(RedfishConfig, ADefaultPortIsLeftOut) {
  EXPECT_EQ(parse("redfish_collector: {protocol: https, hostname: b}")->bmc_url(), "https://b");
  EXPECT_EQ(parse("redfish_collector: {protocol: https, hostname: b, port: 0}")->bmc_url(),
            "https://b");
  EXPECT_EQ(parse("redfish_collector: {protocol: https, hostname: 'fe80::1', port: 1}")->bmc_url(),
            "https://[fe80::1]:1");
}

TEST(RedfishConfig, TheEnvironmentOverridesCredentials) {
  const auto config =
      parse(kFull, {{"REDFISH_WEB_USERNAME", "u2"}, {"REDFISH_WEB_PASSWORD", "p2"}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->username, "u2");
  EXPECT_EQ(config->password, "p2");
  EXPECT_EQ(parse(kFull, {{"REDFISH_WEB_PASSWORD", ""}})->password, "s3cret");
}

TEST(RedfishConfig, UsesTheOldSectionWithoutTheNewOne) {
  EXPECT_EQ(parse("redfish_web_config: {protocol: http, hostname: old}")->hostname, "old");
  EXPECT_EQ(parse("redfish_web_config: {protocol: http, hostname: old}\n"
                  "redfish_collector: {protocol: http, hostname: new}")
                ->hostname,
            "new");
}

TEST(RedfishConfig, InsecureSkipVerifyReplacesTheTlsSection) {
  const auto config = parse(R"(redfish_collector:
  protocol: https
  insecure_skip_verify: true
  tls_config: {server_name: x}
)");
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->http.tls.insecure_skip_verify);
  EXPECT_EQ(config->http.tls.server_name, "");
}

TEST(RedfishConfig, ReportsThePlaceOfAnError) {
  EXPECT_EQ(error_of(""), "redfish.yml: the section redfish_collector is missing or empty");
  EXPECT_EQ(error_of("redfish_collector:\n"),
            "redfish.yml: the section redfish_collector is missing or empty");
  EXPECT_NE(error_of("redfish_collector: 5").find("redfish.yml:1"), std::string::npos);
  EXPECT_NE(error_of("redfish_collector:\n  hostname: x\n").find("protocol is missing"),
            std::string::npos);
  for (const char* line :
       {"protocol: ftp", "port: 70000", "port: many", "timeout: [1]", "hostname: a/b",
        "external_url: proxy:5000", "external_url: http://p/?a=b", "use_session_token: perhaps",
        "usrname: admin", "tls_config: {ca_flie: x}", "http_headers: {Host: {values: [x]}}",
        "timeout: 600001", "node_chassis: {a: b}"}) {
    std::string text = "redfish_collector:\n  ";
    text += std::string(line).starts_with("protocol") ? "" : "protocol: http\n  ";
    text += line;
    const std::string message = error_of(text);
    EXPECT_TRUE(message.starts_with("redfish.yml:2") || message.starts_with("redfish.yml:3"))
        << line << ": " << message;
  }
}

TEST(RedfishConfig, MessagesContainNoSecrets) {
  for (const char* text :
       {"redfish_collector:\n  protocol: http\n  password: [s3cret]\n",
        "redfish_collector:\n  protocol: http\n  password: s3cret\n  basic_auth:\n    password: "
        "s3cret\n    password_file: x\n",
        "redfish_collector:\n  protocol: http\n  password: s3cret\n  bearer_token: s3cret\n  "
        "authorization: {credentials: s3cret}\n"}) {
    const std::string message = error_of(text);
    EXPECT_NE(message, "no error");
    EXPECT_EQ(message.find("s3cret"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace ceems::exporter::redfish
