#include "net/server/web_access.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/base64.h"
#include "net/client/client.h"
#include "net/server/server.h"
#include "net/testing/test_certificate.h"
#include "net/testing/test_client.h"
#include "testing/eventually.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// bcrypt of "secret" with cost 4.
constexpr const char* kHash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

class WebServer : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Server>> create(const std::string& yaml) {
    ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    options.web_config_file = directory_.write("web.yml", yaml).string();
    options.header_timeout = header_timeout_;
    options.on_certificate = [this](std::int64_t end) { certificate_end_ = end; };
    return Server::create(options, [this](const Request& request, Response& response) {
      ++handled_;
      response.set_header("X-Frame-Options", "handler");
      response.body = "user=" + request.authenticated_user + (request.tls ? " tls" : "");
    });
  }
  void start(const std::string& yaml) {
    auto server = create(yaml);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
    address_ = server_->addresses()[0];
  }
  [[nodiscard]] RawAnswer ask(const std::string& user, const std::string& password) const {
    return raw_get(address_, "/",
                   {{"Authorization", "Basic " + crypto::base64_encode(user + ":" + password)}});
  }
  /// Sends one GET over TLS on a new connection.
  [[nodiscard]] Result<ClientResponse> get(TlsOptions tls) const {
    ClientOptions options;
    options.tls = std::move(tls);
    options.timeout = ceems::testing::kPatience;
    const std::string port = address_.substr(address_.rfind(':'));
    return (*Client::create(options))->get("https://localhost" + port + "/");
  }
  void write_pair(const TestCertificate& pair) {
    directory_.write("cert.pem", pair.cert);
    directory_.write("key.pem", pair.key);
  }

  ceems::testing::TempDir directory_;
  milliseconds header_timeout_ = ceems::testing::kPatience;
  std::atomic<int> handled_ = 0;
  std::atomic<std::int64_t> certificate_end_ = 0;  ///< the latest that was reported
  std::unique_ptr<Server> server_;
  std::string address_;
};

const std::string kUsers = std::string("basic_auth_users:\n  alice: ") + kHash + "\n";
const std::string kTls = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n";

TEST_F(WebServer, AsksForAPasswordOnEveryPath) {
  start(kUsers);
  for (const char* path : {"/", "/health", "/nowhere"}) {
    const RawAnswer answer = raw_get(address_, path);
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.header("WWW-Authenticate"), "Basic");
    EXPECT_EQ(answer.header("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(answer.body, "Unauthorized\n");
  }
  EXPECT_EQ(handled_, 0);
  for (int i = 0; i < 3; ++i) {  // hashed first, then from the cache
    const RawAnswer good = ask("alice", "secret");
    EXPECT_EQ(good.status, 200);
    EXPECT_EQ(good.body, "user=alice");
    EXPECT_EQ(ask("alice", "wrong").status, 401);
    EXPECT_EQ(ask("mallory", "secret").status, 401);
    EXPECT_EQ(ask("", "").status, 401);
  }
  EXPECT_EQ(handled_, 3);
  for (const char* field : {"Basic", "Basic !!!!", "Basic YWxpY2U=", "Bearer YWxpY2U6c2VjcmV0",
                            "Basic YWxpY2U6c2VjcmV0AA=="}) {
    EXPECT_EQ(raw_get(address_, "/", {{"Authorization", field}}).status, 401) << field;
  }
  EXPECT_EQ(raw_get(address_, "/", {{"Authorization", "bAsIc YWxpY2U6c2VjcmV0"}}).status, 200);
}

TEST_F(WebServer, ManyGuessesAtOnceLeaveThoseWhoAreKnownServed) {
  start(kUsers);
  EXPECT_EQ(ask("alice", "secret").status, 200);
  std::vector<std::unique_ptr<RawConnection>> guesses;
  for (int i = 0; i < 50; ++i) {
    guesses.push_back(std::make_unique<RawConnection>(address_));
    guesses.back()->send(fmt::format("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {}\r\n\r\n",
                                     crypto::base64_encode(fmt::format("u{}:{}", i, i))));
  }
  EXPECT_EQ(ask("alice", "secret").status, 200);
  for (const auto& guess : guesses) {
    EXPECT_EQ(guess->answer().status, 401);
  }
}

TEST_F(WebServer, SetsItsHeadersOnEveryAnswer) {
  start(kUsers +
        "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"
        "    X-Content-Type-Options: nosniff\n");
  for (const RawAnswer& answer : {raw_get(address_, "/"), ask("alice", "secret")}) {
    EXPECT_EQ(answer.header("X-Frame-Options"), "deny");
    int count = 0;
    for (const auto& [name, value] : answer.headers) {
      count += name == "X-Content-Type-Options" ? 1 : 0;
    }
    EXPECT_EQ(count, 1);
  }
}

TEST_F(WebServer, FollowsItsFileAndAnswers500WhileThatIsBroken) {
  start("{}");
  EXPECT_EQ(raw_get(address_, "/").status, 200);
  directory_.write("web.yml", kUsers);
  EXPECT_EQ(raw_get(address_, "/").status, 401);
  directory_.write("web.yml", "basic_auth_users: [");
  const RawAnswer broken = ask("alice", "secret");
  EXPECT_EQ(broken.status, 500);
  EXPECT_EQ(broken.body, "Internal Server Error\n");
  std::filesystem::remove(directory_.path() / "web.yml");
  EXPECT_EQ(ask("alice", "secret").status, 500);
  directory_.write("web.yml", kUsers);
  EXPECT_EQ(ask("alice", "secret").status, 200);
}

TEST_F(WebServer, RefusesToStartWithABrokenFile) {
  const auto typo = create("basic_auth_usrs: {}\n");
  ASSERT_FALSE(typo);
  EXPECT_THAT(typo.error().message,
              HasSubstr("web.yml:1: basic_auth_usrs: unknown key, did you mean"));
  const TestCertificate one = make_certificate("one", {});
  directory_.write("cert.pem", one.cert);
  directory_.write("key.pem", make_certificate("two", {}).key);
  const auto mismatch = create(kTls);
  ASSERT_FALSE(mismatch);
  EXPECT_EQ(mismatch.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(mismatch.error().message, HasSubstr("the private key does not match"));
  ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  options.web_config_file = "/nonexistent/web.yml";
  const auto missing = Server::create(options, [](const Request&, Response&) {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/nonexistent/web.yml"));
}

TEST_F(WebServer, ServesTls) {
  const TestCertificate pair = make_certificate("server", {"DNS:localhost"});
  write_pair(pair);
  start(kTls + kUsers);
  EXPECT_EQ(get({.ca = pair.cert})->status, 401);
  EXPECT_FALSE(get({})) << "the certificate is unknown";
  EXPECT_FALSE(get({.ca = pair.cert, .server_name = "elsewhere"}));
  EXPECT_EQ(get({.insecure_skip_verify = true, .max_version = "TLS12"})->status, 401);
  EXPECT_FALSE(get({.ca = pair.cert, .min_version = "TLS10", .max_version = "TLS11"}));
}

TEST_F(WebServer, ATlsClientNamesAndVerifiesAnotherServerName) {
  const TestCertificate pair = make_certificate("server", {"DNS:metrics.example"});
  write_pair(pair);
  start(kTls);
  EXPECT_FALSE(get({.ca = pair.cert}));
  const auto got = get({.ca = pair.cert, .server_name = "metrics.example"});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "user= tls");
}

TEST_F(WebServer, TellsAPlainHttpClientThatThisIsATlsPort) {
  write_pair(make_certificate("server", {"DNS:localhost"}));
  start(kTls);
  const RawAnswer answer = raw_get(address_, "/");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, "Client sent an HTTP request to an HTTPS server.\n");
  RawConnection garbage(address_);
  garbage.send("\x16\x03\x01garbage that is no handshake at all");
  EXPECT_TRUE(garbage.ended_within(ceems::testing::kPatience));
  header_timeout_ = milliseconds(200);
  start(kTls);
  RawConnection silent(address_);
  silent.send("\x16");
  EXPECT_TRUE(silent.ended_within(ceems::testing::kPatience));
}

TEST_F(WebServer, TakesARenewedCertificateWithoutRestart) {
  const TestCertificate first = make_certificate("server", {"DNS:localhost"});
  write_pair(first);
  start(kTls);
  EXPECT_TRUE(get({.ca = first.cert}));
  const TestCertificate second = make_certificate("server", {"DNS:localhost"});
  directory_.write("cert.pem", second.cert);  // half of a rotation: the old pair stays
  EXPECT_TRUE(get({.ca = first.cert}));
  directory_.write("key.pem", second.key);
  EXPECT_FALSE(get({.ca = first.cert}));
  const auto renewed = get({.ca = second.cert});
  ASSERT_TRUE(renewed) << renewed.error().message;
  EXPECT_EQ(renewed->status, 200);
}

TEST_F(WebServer, ReportsWhenTheFirstOfItsCertificatesEnds) {
  const auto left = [this] {
    return static_cast<double>(
        certificate_end_ - std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()));
  };
  const TestCertificate first = make_certificate("server", {"DNS:localhost"});
  write_pair(first);
  start(kTls);
  EXPECT_NEAR(left(), 3600, 600) << "at the start, before anybody connects";

  const TestCertificate ca = make_certificate("ca", {}, nullptr, 20'000);
  TestCertificate second = make_certificate("server", {"DNS:localhost"}, &ca, 40'000);
  second.cert += ca.cert;
  directory_.write("cert.pem", second.cert);  // half of a rotation: the old pair stays
  EXPECT_TRUE(get({.ca = first.cert}));
  EXPECT_NEAR(left(), 3600, 600);
  directory_.write("key.pem", second.key);
  EXPECT_TRUE(get({.ca = ca.cert}));
  EXPECT_NEAR(left(), 20'000, 600) << "the authority in the chain ends before the server";
}

TEST_F(WebServer, KeepsAskingForThePasswordWhenTheConfigurationNamesABadKey) {
  const TestCertificate pair = make_certificate("server", {"DNS:localhost"});
  write_pair(pair);
  start(kTls);
  EXPECT_EQ(get({.ca = pair.cert})->status, 200);
  directory_.write("web.yml", kTls + "  client_ca_file: missing.pem\n" +
                                  "  client_auth_type: RequireAndVerifyClientCert\n");
  EXPECT_EQ(get({.ca = pair.cert})->status, 500);
  directory_.write("missing.pem", pair.cert);
  EXPECT_FALSE(get({.ca = pair.cert})) << "now a client certificate is required";
}

struct ClientCertCase {
  std::string policy;
  bool without, unknown, good;
};
class ClientCertificates : public WebServer,
                           public ::testing::WithParamInterface<ClientCertCase> {};

TEST_P(ClientCertificates, AreAskedForByPolicy) {
  const TestCertificate server = make_certificate("server", {"DNS:localhost"});
  const TestCertificate ca = make_certificate("ca", {});
  const TestCertificate good = make_certificate("good", {"DNS:prometheus.example"}, &ca);
  const TestCertificate unknown = make_certificate("unknown", {"DNS:prometheus.example"});
  write_pair(server);
  directory_.write("ca.pem", ca.cert);
  start(kTls + "  client_ca_file: ca.pem\n  client_auth_type: " + GetParam().policy + "\n");
  const auto expect = [&](const TestCertificate& pair, bool is_let_in) {
    const auto answer = get({.ca = server.cert, .cert = pair.cert, .key = pair.key});
    EXPECT_EQ(answer.has_value(), is_let_in) << (answer ? "let in" : answer.error().message);
  };
  expect({}, GetParam().without);
  expect(unknown, GetParam().unknown);
  expect(good, GetParam().good);
}

INSTANTIATE_TEST_SUITE_P(
    WebServer,
    ClientCertificates,
    ::testing::Values(ClientCertCase{"RequestClientCert", true, true, true},
                      ClientCertCase{"RequireAnyClientCert", false, true, true},
                      ClientCertCase{"RequireClientCert", false, true, true},
                      ClientCertCase{"VerifyClientCertIfGiven", true, false, true},
                      ClientCertCase{"RequireAndVerifyClientCert", false, false, true}));

TEST_F(WebServer, LetsInOnlyClientsWithAnAllowedName) {
  const TestCertificate server = make_certificate("server", {"DNS:localhost"});
  const TestCertificate ca = make_certificate("ca", {});
  write_pair(server);
  directory_.write("ca.pem", ca.cert);
  start(kTls +
        "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
        "  client_allowed_sans: [prometheus.example, 10.1.2.3, 'a@b', 'spiffe://x/y']\n");
  const auto ok = [&](const std::vector<std::string>& sans) {
    const TestCertificate pair = make_certificate("client", sans, &ca);
    return get({.ca = server.cert, .cert = pair.cert, .key = pair.key}).has_value();
  };
  EXPECT_TRUE(ok({"DNS:other", "DNS:prometheus.example"}));
  EXPECT_TRUE(ok({"IP:10.1.2.3"}));
  EXPECT_TRUE(ok({"email:a@b"}));
  EXPECT_TRUE(ok({"URI:spiffe://x/y"}));
  EXPECT_FALSE(ok({"DNS:other"}));
  EXPECT_FALSE(ok({}));
}

}  // namespace
}  // namespace ceems::net
