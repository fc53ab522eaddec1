#include "net/client/client_config.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml.h"

namespace ceems::net {
namespace {

using ::testing::HasSubstr;

Result<ClientOptions> read(std::string_view yaml) {
  auto node = config::parse_yaml(yaml, "c.yml");
  EXPECT_TRUE(node);
  return client_options(*node, "/etc/ceems");
}

TEST(ClientConfig, ReadsEveryKey) {
  const auto options = read(R"(
oauth2:
  client_id: id
  client_secret_file: secret
  token_url: https://idp/token
  scopes: [a, b]
  endpoint_params: {audience: x}
  tls_config: {ca_file: ca.pem}
tls_config:
  ca_file: /abs/ca.pem
  cert_file: c.pem
  key_file: k.pem
  server_name: name
  insecure_skip_verify: true
  min_version: TLS12
  max_version: TLS13
follow_redirects: false
enable_http2: false
proxy_url: http://proxy:3128
no_proxy: localhost
proxy_connect_header: {X-A: [b]}
http_headers:
  X-Scope: {values: [v], secrets: [s], files: [f]}
)");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->oauth2->client_secret_file, "/etc/ceems/secret");
  EXPECT_EQ(options->oauth2->tls.ca_file, "/etc/ceems/ca.pem");
  EXPECT_THAT(options->oauth2->scopes, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(options->oauth2->endpoint_params.at("audience"), "x");
  EXPECT_EQ(options->tls.ca_file, "/abs/ca.pem");
  EXPECT_EQ(options->tls.key_file, "/etc/ceems/k.pem");
  EXPECT_EQ(options->tls.server_name, "name");
  EXPECT_TRUE(options->tls.insecure_skip_verify);
  EXPECT_EQ(options->tls.max_version, "TLS13");
  EXPECT_FALSE(options->follow_redirects);
  EXPECT_FALSE(options->enable_http2);
  EXPECT_EQ(options->no_proxy, "localhost");
  EXPECT_EQ(options->proxy_connect_header.at("X-A").at(0), "b");
  EXPECT_EQ(options->headers.at("X-Scope").files.at(0), "/etc/ceems/f");
}

TEST(ClientConfig, KeysOfOthersAreNamedByTheCaller) {
  const auto read_beside = [](std::string_view yaml) {
    return client_options(config::parse_yaml(yaml, "c.yml").value(), "/etc/ceems", {"url"});
  };
  EXPECT_EQ(read_beside("url: http://x\nno_proxy: a\nproxy_url: b\n")->no_proxy, "a");
  EXPECT_EQ(read_beside("ur: x\n").error().message,
            "c.yml:1: ur: unknown key, did you mean 'url'?");
  EXPECT_EQ(read_beside("basic_aut: {}\n").error().message,
            "c.yml:1: basic_aut: unknown key, did you mean 'basic_auth'?");
  EXPECT_TRUE(client_options(config::Node(), "/", {}));
}

TEST(ClientConfig, HasTheDefaultsOfTheReference) {
  const auto options = read("url: http://x\nbearer_token: t\n");
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->follow_redirects);
  EXPECT_TRUE(options->enable_http2);
  EXPECT_EQ(options->authorization->type, "Bearer");
  EXPECT_EQ(options->authorization->credentials, "t");
}

struct BadBlock {
  std::string yaml;
  std::string message;
};
class ClientConfigError : public ::testing::TestWithParam<BadBlock> {};

TEST_P(ClientConfigError, SaysWhereAndWhat) {
  const auto options = read(GetParam().yaml);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(options.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    ClientConfig,
    ClientConfigError,
    ::testing::Values(
        BadBlock{
            "http_headers:\n  content-type: {values: [a]}\n",
            R"(c.yml:2: http_headers.content-type: setting header "content-type" is not allowed)"},
        BadBlock{"http_headers:\n  'a b': {values: [a]}\n",
                 "c.yml:2: http_headers.a b: invalid header name"},
        BadBlock{"authorization:\n  type: BASIC\n",
                 "c.yml:2: authorization.type: cannot be basic: use basic_auth instead"},
        BadBlock{"basic_auth: {username: u}\nbearer_token: t\n",
                 "c.yml:1: at most one of basic_auth, authorization, oauth2, bearer_token and "
                 "bearer_token_file"},
        BadBlock{"basic_auth:\n  password: SECRET\n  password_file: f\n",
                 "c.yml:2: basic_auth: at most one of password and password_file"},
        BadBlock{"basic_auth:\n  pasword: SECRET\n",
                 "c.yml:2: basic_auth.pasword: unknown key, did you mean 'password'?"},
        BadBlock{"oauth2: {token_url: u}\n", "c.yml:1: oauth2: client_id is missing"},
        BadBlock{"oauth2: {client_id: u}\n", "c.yml:1: oauth2: token_url is missing"},
        BadBlock{"tls_config: {min_version: SSL3}\n",
                 "c.yml:1: tls_config.min_version: expected one of TLS10, TLS11, TLS12, TLS13; got "
                 "'SSL3'"},
        BadBlock{"tls_config: {key: k}\n", "c.yml:1: tls_config: a key needs cert or cert_file"},
        BadBlock{"enable_http2: maybe\n",
                 "c.yml:1: enable_http2: expected true or false, got 'maybe'"},
        BadBlock{"basic_auth: [SECRET]\n", "c.yml:1: basic_auth: expected a mapping"},
        BadBlock{"no_proxy: x\n", "c.yml:1: no_proxy: needs proxy_url"}));

TEST(ClientConfig, ReadsTheSocketOfTheUrlBesideIt) {
  EXPECT_EQ(read("url: unix:///run/p.sock:/base")->unix_socket, "/run/p.sock");
  EXPECT_EQ(read("url: http://a")->unix_socket, "");
  EXPECT_EQ(read("url: [a, b]")->unix_socket, "") << "not ours to refuse";
  EXPECT_THAT(read("follow_redirects: false\nurl: unix://run/p.sock").error().message,
              HasSubstr("c.yml:2: url: a unix socket has no host"));
  EXPECT_THAT(read("url: unix:///run/p.sock\ntls_config: {ca_file: /ca}").error().message,
              HasSubstr("c.yml:2: tls_config: TLS is not spoken over a unix socket"));
  EXPECT_THAT(read("url: unix:///run/p.sock\nproxy_from_environment: true").error().message,
              HasSubstr("not reached through a proxy"));
}

}  // namespace
}  // namespace ceems::net
