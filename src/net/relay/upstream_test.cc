#include "net/relay/upstream.h"

#include <gtest/gtest.h>

#include "net/testing/test_certificate.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

TEST(Upstream, GoesOnWithTheOldCertificateUntilTheNewOneIsWhole) {
  const testing::TempDir dir;
  const auto first = make_certificate("first", {"DNS:a"});
  const auto second = make_certificate("second one", {"DNS:a"});
  UpstreamOptions options{.host = "a", .port = "443", .use_tls = true};
  options.tls.cert_file = dir.write("cert.pem", first.cert).string();
  options.tls.key_file = dir.write("key.pem", first.key).string();
  const auto upstream = Upstream::create(options);
  ASSERT_TRUE(upstream) << upstream.error().message;
  const auto old = (*upstream)->tls_context();
  ASSERT_TRUE(old);
  EXPECT_EQ(*(*upstream)->tls_context(), *old);

  dir.write("cert.pem", second.cert);  // its key is not there yet
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    const auto between = (*upstream)->tls_context();
    ASSERT_TRUE(between) << between.error().message;
    EXPECT_EQ(*between, *old);
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto told = log.find("the old ones stay in use");
  EXPECT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("the old ones stay in use", told + 1), std::string::npos) << log;

  dir.write("key.pem", second.key);
  const auto whole = (*upstream)->tls_context();
  ASSERT_TRUE(whole);
  EXPECT_NE(*whole, *old);

  dir.write("key.pem", "half");
  EXPECT_FALSE(Upstream::create(options)) << "where there is no old one";
}

TEST(Upstream, IsTheSameServerWhereAllOptionsAre) {
  const UpstreamOptions one{.host = "a", .port = "443", .use_tls = true};
  UpstreamOptions other = one;
  other.lookup = [](const std::string&, const std::string&) -> Result<SocketAddresses> {
    return fail(ErrorCode::kUnavailable, "no such name");
  };
  EXPECT_TRUE(one.same_server(other));
  other.tls.server_name = "b";
  EXPECT_FALSE(one.same_server(other));
  other = one;
  other.port = "444";
  EXPECT_FALSE(one.same_server(other));
}

}  // namespace
}  // namespace ceems::net
