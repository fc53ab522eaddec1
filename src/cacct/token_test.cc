#include "cacct/token.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::cacct {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CallersToken : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1), 0);
    ::unsetenv("CEEMS_TOKEN");
    ::unsetenv("CEEMS_TOKEN_FILE");
  }
  void TearDown() override {
    for (const char* name : {"XDG_CONFIG_HOME", "CEEMS_TOKEN", "CEEMS_TOKEN_FILE"}) {
      ::unsetenv(name);
    }
  }
  std::string put(const std::string& name, const std::string& text, mode_t mode = 0600) {
    directory_.write(name, text);
    const std::string file = (directory_.path() / name).string();
    EXPECT_EQ(::chmod(file.c_str(), mode), 0);
    return file;
  }
  static std::string complaint(uid_t uid = ::getuid()) {
    const auto found = find_token(uid);
    return found ? "none" : found.error().message;
  }

  testing::TempDir directory_;
  const std::string token_ = "ceems_pat_" + std::string(43, 'x');
};

TEST_F(CallersToken, IsFoundInTheEnvironmentAndInFiles) {
  EXPECT_EQ(find_token(::getuid()), "");
  put("ceems/token", token_ + "\n");
  EXPECT_EQ(find_token(::getuid()), token_);
  const std::string other = "ceems_pat_" + std::string(43, 'y');
  ::setenv("CEEMS_TOKEN_FILE", put("other", other).c_str(), 1);
  EXPECT_EQ(find_token(::getuid()), other);
  ::setenv("CEEMS_TOKEN", ("ceems_pat_" + std::string(43, 'z')).c_str(), 1);
  EXPECT_EQ(find_token(::getuid()), "ceems_pat_" + std::string(43, 'z'));
}

TEST_F(CallersToken, IsNotTakenFromAFileOfOthers) {
  for (const mode_t mode : {0640, 0604, 0660, 0602, 0610}) {
    put("ceems/token", token_, mode);
    EXPECT_THAT(complaint(), HasSubstr("chmod 600")) << mode;
  }
  put("ceems/token", token_, 0400);
  EXPECT_EQ(complaint(), "none");
  EXPECT_THAT(complaint(::getuid() + 1), HasSubstr("chown"));
}

TEST_F(CallersToken, IsRefusedWithoutBeingShown) {
  const std::string file = put("token", "");
  ::setenv("CEEMS_TOKEN_FILE", file.c_str(), 1);
  for (const std::string& text :
       {std::string("secret"), token_ + "x", token_.substr(1), token_ + " x",
        "ceems_pat_" + std::string(42, 'x') + "\"", std::string()}) {
    put("token", text);
    EXPECT_THAT(complaint(), HasSubstr("expected a personal token")) << text;
    EXPECT_THAT(complaint(), Not(HasSubstr("xxx")));
    EXPECT_THAT(complaint(), Not(HasSubstr("secret")));
  }
  ::setenv("CEEMS_TOKEN_FILE", directory_.path().c_str(), 1);
  EXPECT_THAT(complaint(), HasSubstr("expected a file"));
  ::setenv("CEEMS_TOKEN_FILE", (file + "x").c_str(), 1);
  EXPECT_THAT(complaint(), HasSubstr("No such file"));
}

TEST_F(CallersToken, ReplacesEveryOtherCredential) {
  Config config;
  config.api_client.oauth2 = net::ClientOptions::OAuth2();
  config.api_client.headers["x-grafana-user"].values = {"root"};
  config.api_client.headers["x-ceems-token"].values = {"another"};
  config.api_client.headers["X-Other"].values = {"1"};
  use_token(token_, config);
  EXPECT_FALSE(config.api_client.oauth2);
  EXPECT_EQ(config.api_client.authorization->type, "Bearer");
  EXPECT_EQ(config.api_client.authorization->credentials, token_);
  EXPECT_EQ(config.api_client.headers.size(), 1U);
  EXPECT_TRUE(config.api_client.headers.contains("X-Other"));
  EXPECT_EQ(config.user_header, "");
  EXPECT_FALSE(config.tsdb_client.authorization);
}

TEST_F(CallersToken, GoesBesideThePasswordOfTheServer) {
  Config config;
  config.api_client.basic_auth = net::ClientOptions::BasicAuth{.username = "u", .password = "p"};
  config.api_client.headers["X-Grafana-User"].values = {"root"};
  config.api_client.headers["x-ceems-token"].values = {"another"};
  use_token(token_, config);
  EXPECT_EQ(config.api_client.basic_auth->password, "p");
  EXPECT_FALSE(config.api_client.authorization);
  ASSERT_EQ(config.api_client.headers.size(), 1U);
  EXPECT_EQ(config.api_client.headers.at("X-Ceems-Token").secrets,
            std::vector<std::string>{token_});
  EXPECT_EQ(config.user_header, "");
  EXPECT_TRUE(config.tsdb_client.headers.empty());
}

}  // namespace
}  // namespace ceems::cacct
