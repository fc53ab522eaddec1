#include "kube/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::kube {
namespace {

Result<std::string> read(const std::string& path) {
  if (path == "/missing") {
    return fail(ErrorCode::kNotFound, "open {}", path);
  }
  return "content of " + path + "\n";
}

TEST(KubeConnection, PrefersFilesToValuesAndTokensToPasswords) {
  ApiAccess access{.server = "https://h", .ca_file = "/ca", .token = "old", .token_file = "/token"};
  access.username = "me";
  const auto options = client_options(access, read);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->tls.ca, "content of /ca\n");
  ASSERT_TRUE(options->authorization);
  EXPECT_EQ(options->authorization->credentials, "content of /token");
  EXPECT_FALSE(options->basic_auth);
  EXPECT_TRUE(options->proxy_from_environment);
  EXPECT_FALSE(options->follow_redirects);
}

TEST(KubeConnection, UsesUserAndPasswordWithoutToken) {
  ApiAccess access{.server = "https://h"};
  access.username = "me";
  access.password = "secret";
  access.proxy_url = "http://p";
  const auto options = client_options(access, read);
  ASSERT_TRUE(options && options->basic_auth);
  EXPECT_EQ(options->basic_auth->password, "secret");
  EXPECT_FALSE(options->proxy_from_environment);
}

TEST(KubeConnection, FailsWithoutItsFiles) {
  const auto options = client_options({.server = "https://h", .client_key_file = "/missing"}, read);
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().message, "open /missing");
}

TEST(KubeConnection, EncodesValuesOfQueries) {
  EXPECT_EQ(percent_encode("a+b/=&\xFF~"), "a%2Bb%2F%3D%26%FF~");
}

TEST(KubeConnection, ReportsTheReasonOfARefusal) {
  const Error error = refusal({.status = 403,
                               .headers = {},
                               .body = R"({"kind": "Status", "message": "pods is forbidden"})"});
  EXPECT_EQ(error.message, "HTTP status 403: pods is forbidden");
  EXPECT_EQ(refusal({.status = 502, .headers = {}, .body = "<html>"}).message, "HTTP status 502");
}

}  // namespace
}  // namespace ceems::kube
