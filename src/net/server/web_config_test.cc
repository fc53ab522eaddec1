#include "net/server/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/tls.h"
#include "net/testing/test_certificate.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

// bcrypt of "secret" with cost 4, made with crypt(3).
constexpr const char* kConfigHash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

Result<WebConfig> read(std::string_view yaml) {
  CEEMS_TRY(node, config::parse_yaml(yaml, "web.yml"));
  return parse_web_config(node, "/etc/ceems");
}

TEST(WebConfig, EmptyMeansPlainHttpWithoutAuth) {
  for (const char* text : {"", "{}", "tls_server_config:\nbasic_auth_users:\n",
                           "tls_server_config: {}\nbasic_auth_users: {}\nhttp_server_config: {}\n",
                           "tls_server_config:\n  cert_file: ''\n  key_file: ''\n"}) {
    const auto config = read(text);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_FALSE(config->tls.enabled);
    EXPECT_TRUE(config->basic_auth_users.empty());
  }
}

TEST(WebConfig, ReadsEveryKey) {
  const auto config = read(std::string(R"(
tls_server_config:
  cert_file: cert.pem
  key_file: /abs/key.pem
  client_ca_file: sub/../ca.pem
  client_auth_type: RequireAndVerifyClientCert
  client_allowed_sans: [a.example, 10.0.0.1]
  min_version: TLS11
  max_version: TLS12
  cipher_suites:
    - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    - TLS_AES_128_GCM_SHA256
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: false
  headers:
    X-Frame-Options: deny
    Strict-Transport-Security: max-age=1
    Content-Security-Policy: ''
basic_auth_users:
  alice: )") + kConfigHash +
                           "\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->tls.enabled);
  EXPECT_EQ(config->tls.cert_file, "/etc/ceems/cert.pem");
  EXPECT_EQ(config->tls.key_file, "/abs/key.pem");
  EXPECT_EQ(config->tls.client_ca_file, "/etc/ceems/ca.pem");
  EXPECT_EQ(config->tls.client_auth, ClientAuth::kRequireAndVerifyClientCert);
  EXPECT_EQ(config->tls.min_version, TlsVersion::kTls11);
  EXPECT_EQ(config->tls.max_version, TlsVersion::kTls12);
  EXPECT_THAT(config->tls.cipher_suites, ::testing::ElementsAre("ECDHE-RSA-AES128-GCM-SHA256"));
  EXPECT_THAT(config->tls.curve_preferences, ::testing::ElementsAre("X25519", "P-256"));
  EXPECT_THAT(*config->tls.client_allowed_sans, ::testing::ElementsAre("a.example", "10.0.0.1"));
  ASSERT_EQ(config->headers.size(), 2U);
  EXPECT_EQ(config->headers[0].second, "deny");
  ASSERT_EQ(config->basic_auth_users.size(), 1U);
  EXPECT_EQ(config->basic_auth_users[0].first, "alice");
}

struct Wrong {
  std::string yaml;
  std::string message;
};
class WebConfigError : public ::testing::TestWithParam<Wrong> {};

TEST_P(WebConfigError, SaysWhereAndWhat) {
  const auto config = read(GetParam().yaml);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    WebConfig,
    WebConfigError,
    ::testing::Values(
        Wrong{"rate_limit: {}\n", "web.yml:1: rate_limit: unknown key"},
        Wrong{"basic_auth_user: {}\n",
              "web.yml:1: basic_auth_user: unknown key, did you mean 'basic_auth_users'?"},
        Wrong{"basic_auth_users: {}\nbasic_auth_users: {}\n",
              "web.yml:2: basic_auth_users: the key stands here twice"},
        Wrong{"[]", "web.yml:1: expected a mapping"},
        Wrong{"\ntls_server_config:\n  cert_file: a\n",
              "web.yml:3: tls_server_config: key_file or key is missing"},
        Wrong{"tls_server_config: {key: a}\n",
              "web.yml:1: tls_server_config: cert_file or cert is missing"},
        Wrong{"tls_server_config: {client_auth_type: RequestClientCert}\n",
              "web.yml:1: tls_server_config: cert_file or cert is missing"},
        Wrong{"tls_server_config: {cert: a, key: b, client_ca: c}\n",
              "web.yml:1: tls_server_config: a client CA needs a client_auth_type other than "
              "NoClientCert"},
        Wrong{"tls_server_config: {cert: a, key: b, client_auth_type: Maybe}\n",
              "web.yml:1: tls_server_config.client_auth_type: expected one of NoClientCert, "
              "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven, "
              "RequireAndVerifyClientCert, RequireClientCert; got 'Maybe'"},
        Wrong{"tls_server_config: {min_version: SSLv3}\n",
              "web.yml:1: tls_server_config.min_version: expected one of TLS10, TLS11, TLS12, "
              "TLS13; got 'SSLv3'"},
        Wrong{"tls_server_config: {cert: a, key: b, min_version: TLS13, max_version: TLS12}\n",
              "web.yml:1: tls_server_config: min_version is above max_version"},
        Wrong{"tls_server_config:\n  cipher_suites:\n  - TLS_RSA_WITH_RC4_128_SHA\n",
              "web.yml:3: tls_server_config.cipher_suites[0]: unknown or insecure cipher suite "
              "'TLS_RSA_WITH_RC4_128_SHA'"},
        Wrong{"tls_server_config: {curve_preferences: [P256]}\n",
              "web.yml:1: tls_server_config.curve_preferences[0]: unknown or insecure curve "
              "'P256'"},
        Wrong{"http_server_config: {headers: {X-Powered-By: a}}\n",
              "web.yml:1: http_server_config.headers.X-Powered-By: this header cannot be "
              "configured"},
        Wrong{"http_server_config: {headers: {X-Frame-Options: allow}}\n",
              "web.yml:1: http_server_config.headers.X-Frame-Options: expected deny or "
              "sameorigin"},
        Wrong{"http_server_config: {headers: {X-Content-Type-Options: sniff}}\n",
              "web.yml:1: http_server_config.headers.X-Content-Type-Options: expected nosniff"},
        Wrong{"http_server_config: {http2: 7}\n",
              "web.yml:1: http_server_config.http2: expected true or false, got '7'"},
        Wrong{"basic_auth_users:\n  bob: plaintextpassword\n",
              "web.yml:2: basic_auth_users.bob: expected a bcrypt hash, such as $2y$10$… of 60 "
              "characters"}));

TEST(WebConfig, TellsBcryptHashes) {
  EXPECT_TRUE(is_bcrypt_hash(kConfigHash));
  for (std::string bad : {"", "$2x$04$", "$1$abc"}) {
    EXPECT_FALSE(is_bcrypt_hash(bad));
  }
  std::string bad = kConfigHash;
  bad[4] = '9';
  EXPECT_FALSE(is_bcrypt_hash(bad)) << "cost above 31";
  bad = kConfigHash;
  bad[30] = '$';
  EXPECT_FALSE(is_bcrypt_hash(bad));
}

TEST(Tls, SaysWhichFileIsWrong) {
  const ceems::testing::TempDir directory;
  const TestCertificate one = make_certificate("one", {});
  const TestCertificate two = make_certificate("two", {});
  const std::string cert = directory.write("cert.pem", one.cert).string();
  const std::string key = directory.write("key.pem", one.key).string();
  const std::string other = directory.write("other.pem", two.key).string();
  const std::string garbage = directory.write("garbage.pem", "\x00\xff not PEM").string();
  WebConfig::Tls tls;
  tls.cert_file = cert;
  tls.key_file = key;
  EXPECT_TRUE(make_tls_context(tls));

  tls.key_file = other;
  EXPECT_EQ(make_tls_context(tls).error().message,
            other + ": the private key does not match the certificate of " + cert);
  tls.key_file = garbage;
  EXPECT_EQ(make_tls_context(tls).error().message, garbage + ": no PEM private key in it");
  tls.key_file = "/nonexistent/key.pem";
  EXPECT_EQ(make_tls_context(tls).error().message,
            "tls_server_config: open /nonexistent/key.pem: No such file or directory");
  tls.key_file = key;
  tls.cert_file = garbage;
  EXPECT_EQ(make_tls_context(tls).error().message, garbage + ": no PEM certificate in it");
  tls.cert_file = cert;
  tls.client_auth = ClientAuth::kRequireAndVerifyClientCert;
  tls.client_ca_file = garbage;
  EXPECT_EQ(make_tls_context(tls).error().message, garbage + ": no PEM certificate in it");
  tls.client_ca_file.clear();
  tls.cert_file.clear();
  tls.cert = one.cert;
  tls.key_file.clear();
  tls.key = two.key;
  EXPECT_EQ(make_tls_context(tls).error().message,
            "tls_server_config.key: the private key does not match the certificate of "
            "tls_server_config.cert");
}

TEST(Tls, TakesEveryCipherAndCurveItAccepts) {
  const TestCertificate one = make_certificate("one", {});
  const auto config = read(R"(
tls_server_config:
  cert: x
  key: y
  min_version: TLS10
  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
    TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA]
  curve_preferences: [CurveP256, CurveP384, CurveP521, X25519]
)");
  ASSERT_TRUE(config) << config.error().message;
  WebConfig::Tls tls = config->tls;
  tls.cert = one.cert;
  tls.key = one.key;
  const auto context = make_tls_context(tls);
  EXPECT_TRUE(context) << context.error().message;
}

}  // namespace
}  // namespace ceems::net
