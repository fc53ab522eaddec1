#include "net/server/health.h"

#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/listen.h"
#include "net/server/server.h"
#include "net/testing/test_certificate.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kLong{10000};

class Health : public ::testing::Test {
 protected:
  /// Starts a server and returns where it listens.
  std::string start(const std::string& address, const std::string& web = {}) {
    ServerOptions options;
    options.listen_addresses = {address};
    if (!web.empty()) {
      options.web_config_file = directory_.write("web.yml", web).string();
    }
    auto made = Server::create(options, [this](const Request& request, Response& response) {
      asked_ = request.method + " " + request.path;
      response.status = 503;
    });
    EXPECT_TRUE(made) << made.error().message;
    server_ = *std::move(made);
    server_->start();
    return server_->addresses().front();
  }
  void TearDown() override {
    if (server_) {
      server_->stop();
    }
  }

  ceems::testing::TempDir directory_;
  std::string asked_;
  std::unique_ptr<Server> server_;
};

TEST_F(Health, AnyStatusOfTheServerCounts) {
  const std::string address = start("127.0.0.1:0");
  EXPECT_TRUE(probe(address, kLong));
  EXPECT_TRUE(probe(address, kLong, "/-/healthy"));
  server_->stop();
  EXPECT_EQ(asked_, "probe /-/healthy");
}

TEST_F(Health, AnAddressForAllInterfacesIsAskedOverLoopback) {
  const std::string address = start(":0");
  const std::string port = address.substr(address.rfind(':'));
  EXPECT_TRUE(probe(address, kLong)) << address;
  EXPECT_TRUE(probe(port, kLong));
  EXPECT_TRUE(probe("0.0.0.0" + port, kLong));
  EXPECT_TRUE(probe("localhost" + port, kLong));
  EXPECT_TRUE(all_react({port, address}, kLong));
  EXPECT_EQ(report_health({port}), 0);
}

TEST_F(Health, APasswordIsNotNeeded) {
  const std::string address = start(
      "127.0.0.1:0",
      "basic_auth_users:\n  ada: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW");
  EXPECT_TRUE(probe(address, kLong));
  server_->stop();
  EXPECT_EQ(asked_, "");
}

TEST_F(Health, AServerWithTlsReacts) {
  const TestCertificate certificate = make_certificate("localhost", {"IP:127.0.0.1"});
  directory_.write("server.crt", certificate.cert);
  directory_.write("server.key", certificate.key);
  const std::string address =
      start("127.0.0.1:0", "tls_server_config: {cert_file: server.crt, key_file: server.key}");
  EXPECT_TRUE(probe(address, kLong));
}

TEST_F(Health, UnixSockets) {
  const std::string address = start("unix:" + (directory_.path() / "socket").string());
  EXPECT_TRUE(probe(address, kLong));
}

TEST_F(Health, NobodyListens) {
  auto listener = listen_on(*parse_listen_address("127.0.0.1:0"));
  ASSERT_TRUE(listener) << listener.error().message;
  const std::string address = listener->address;
  listener->fd.reset();
  const auto refused = probe(address, kLong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr(address));
  EXPECT_FALSE(all_react({address}, kLong));
  EXPECT_TRUE(all_react({"vsock://:9010"}, kLong));
  EXPECT_EQ(report_health({address}), 1);
  EXPECT_EQ(probe("unix:/nonexistent/socket", kLong).error().code, ErrorCode::kUnavailable);
}

TEST_F(Health, AServerThatHangsIsNotAlive) {
  // The kernel accepts the connection, and no thread reads from it.
  auto listener = listen_on(*parse_listen_address("127.0.0.1:0"));
  ASSERT_TRUE(listener) << listener.error().message;
  const auto late = probe(listener->address, milliseconds(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(late.error().message, listener->address + ": no reaction in time");
}

TEST_F(Health, BadAddressesAreRefused) {
  for (const std::string& address :
       {std::string("9010"), std::string("::1:9010"), "unix:/" + std::string(200, 'x')}) {
    EXPECT_EQ(probe(address, kLong).error().code, ErrorCode::kInvalidArgument) << address;
  }
}

}  // namespace
}  // namespace ceems::net
