#include "net/client/oauth2.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/server.h"

namespace ceems::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

TEST(Token, IsReadFromAnAnswer) {
  EXPECT_EQ(parse_token(R"({"access_token":"x"})")->type, "Bearer");
  EXPECT_EQ(parse_token(R"({"access_token":"x","expires_in":"60"})")->lifetime.count(), 60);
  EXPECT_EQ(parse_token(R"({"access_token":"x","expires_in":-5})")->lifetime.count(), 0);
  EXPECT_EQ(parse_token(R"({"access_token":"x","token_type":"MAC"})")->type, "MAC");
  for (const char* text : {"", "[]", "{}", R"({"access_token":7})", "{"}) {
    EXPECT_FALSE(parse_token(text)) << text;
  }
}

/// A token server that can be made to fail or to hang.
class TokenServer {
 public:
  explicit TokenServer(int lifetime)
      : server_(*Server::create(loopback(), [this, lifetime](const Request&, Response& response) {
          const int number = ++asked_;
          while (slow_) {
            std::this_thread::sleep_for(milliseconds(1));
          }
          response.status = broken_ ? 500 : 200;
          response.body =
              fmt::format(R"({{"access_token":"t{}","expires_in":{}}})", number, lifetime);
        })) {
    server_->start();
  }
  ~TokenServer() { slow_ = false; }
  TokenServer(const TokenServer&) = delete;
  TokenServer& operator=(const TokenServer&) = delete;
  [[nodiscard]] std::unique_ptr<Client> client() const {
    ClientOptions options;
    options.oauth2 = ClientOptions::OAuth2{};
    options.oauth2->client_id = "id";
    options.oauth2->token_url = "http://" + server_->addresses()[0] + "/token";
    return *Client::create(options);
  }
  [[nodiscard]] int asked() const { return asked_; }
  void be_slow(bool slow) { slow_ = slow; }
  void be_broken(bool broken) { broken_ = broken; }

 private:
  static ServerOptions loopback() {
    ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    return options;
  }

  std::atomic<int> asked_ = 0;
  std::atomic<bool> slow_ = false;
  std::atomic<bool> broken_ = false;
  std::unique_ptr<Server> server_;
};

std::string token_of(Client& client) {
  const auto own = client.own_headers("http://192.0.2.1");
  return own ? *find_header(*own, "Authorization") : own.error().message;
}

TEST(OwnHeaders, AreNotHeldUpByAServerOfTokensForLong) {
  TokenServer server(3600);
  const auto client = server.client();
  server.be_slow(true);
  const auto start = steady_clock::now();
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] { EXPECT_THAT(token_of(*client), HasSubstr("none came in time")); });
  }
  others.clear();
  const auto first = steady_clock::now() - start;
  EXPECT_GE(first, milliseconds(1900));
  EXPECT_LT(first, milliseconds(8000));
  // The same fetch is still running, and callers no longer wait for it.
  const auto again = steady_clock::now();
  EXPECT_THAT(token_of(*client), HasSubstr("none came in time"));
  EXPECT_LT(steady_clock::now() - again, milliseconds(1000));
  EXPECT_EQ(server.asked(), 1);
  server.be_slow(false);
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (token_of(*client) != "Bearer t1" && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(token_of(*client), "Bearer t1");
  EXPECT_EQ(server.asked(), 1);
}

TEST(OwnHeaders, AFailureIsRememberedByThoseInHaste) {
  TokenServer server(3600);
  const auto client = server.client();
  server.be_broken(true);
  EXPECT_THAT(token_of(*client), HasSubstr("status 500"));
  EXPECT_THAT(token_of(*client), HasSubstr("status 500"));
  EXPECT_EQ(server.asked(), 1);
  // A request that may wait until its deadline fetches again.
  server.be_broken(false);
  EXPECT_FALSE(client->get("http://127.0.0.1:1/"));
  EXPECT_EQ(server.asked(), 2);
  EXPECT_EQ(token_of(*client), "Bearer t2");
}

TEST(OwnHeaders, ATokenIsRenewedWhileItStillCounts) {
  TokenServer server(4);  // seconds: it is renewed after two and used for three
  const auto client = server.client();
  EXPECT_EQ(token_of(*client), "Bearer t1");
  std::this_thread::sleep_for(milliseconds(2020));
  server.be_slow(true);
  EXPECT_EQ(token_of(*client), "Bearer t1") << "or the machine stood still for a second";
  const auto end = steady_clock::now() + std::chrono::seconds(30);
  while (server.asked() < 2 && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(server.asked(), 2);
  server.be_slow(false);
  EXPECT_THAT(token_of(*client), HasSubstr("Bearer t"));
}

TEST(OwnHeaders, ARefusedTokenIsFetchedAnewButNotForEveryRefusal) {
  const TokenServer server(3600);
  const auto client = server.client();
  EXPECT_EQ(token_of(*client), "Bearer t1");
  client->refused({{"Authorization", "Bearer other"}});
  client->refused({});
  EXPECT_EQ(token_of(*client), "Bearer t1");
  client->refused({{"Authorization", "Bearer t1"}});
  EXPECT_EQ(token_of(*client), "Bearer t2");
  client->refused({{"Authorization", "Bearer t1"}});  // from a slow request, with an outdated token
  client->refused({{"Authorization", "Bearer t2"}});
  EXPECT_EQ(token_of(*client), "Bearer t2");
}

TEST(OwnHeaders, EndWithTheClient) {
  TokenServer server(3600);
  auto client = server.client();
  server.be_slow(true);
  EXPECT_THAT(token_of(*client), HasSubstr("none came in time"));
  const auto start = steady_clock::now();
  client.reset();
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));
}

}  // namespace
}  // namespace ceems::net
