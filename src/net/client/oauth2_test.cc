#include "net/client/oauth2.h"

#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/server.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::net {
namespace {

using ceems::testing::eventually;
using ceems::testing::kPatience;
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
  [[nodiscard]] ClientOptions::OAuth2 options() const {
    ClientOptions::OAuth2 options;
    options.client_id = "id";
    options.token_url = "http://" + server_->addresses()[0] + "/token";
    return options;
  }
  [[nodiscard]] std::unique_ptr<Client> client() const {
    ClientOptions client;
    client.oauth2 = options();
    return *Client::create(client);
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

constexpr const char* kNone = "none came in time";

/// A source of tokens whose callers wait for a moment only, and whose time stands still.
class QuickSource {
 public:
  explicit QuickSource(const TokenServer& server)
      : source_(server.options(), pool_, clock_, {.wait = kWait}) {}
  std::string token() {
    TransferRequest request;
    request.deadline = steady_clock::now() + std::chrono::minutes(10);
    auto own = source_.authorization(request, Haste::kGreat);
    return own ? *std::move(own) : own.error().message;
  }
  void advance(std::chrono::seconds by) { clock_.advance(by); }

  static constexpr milliseconds kWait{200};

 private:
  TransferPool pool_;
  ceems::testing::FakeClock clock_;
  TokenSource source_;
};

TEST(TokenSource, IsNotHeldUpByAServerOfTokensForLong) {
  EXPECT_EQ(TokenTimes().wait, milliseconds(2000));
  TokenServer server(3600);
  QuickSource source(server);
  server.be_slow(true);
  const auto start = steady_clock::now();
  std::vector<std::jthread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] { EXPECT_THAT(source.token(), HasSubstr(kNone)); });
  }
  others.clear();
  EXPECT_GE(steady_clock::now() - start, QuickSource::kWait);
  // The same fetch is still running, and callers no longer wait for it.
  const auto again = steady_clock::now();
  for (auto waits = milliseconds(0); waits < kPatience; waits += QuickSource::kWait) {
    EXPECT_THAT(source.token(), HasSubstr(kNone));
  }
  EXPECT_LT(steady_clock::now() - again, kPatience) << "each has waited";
  EXPECT_EQ(server.asked(), 1);
  server.be_slow(false);
  EXPECT_TRUE(eventually([&] { return source.token() == "Bearer t1"; }));
  EXPECT_EQ(server.asked(), 1);
}

TEST(TokenSource, RenewsATokenWhileItStillCounts) {
  TokenServer server(3600);
  QuickSource source(server);
  EXPECT_TRUE(eventually([&] { return source.token() == "Bearer t1"; }));
  source.advance(std::chrono::seconds(3539));
  EXPECT_EQ(source.token(), "Bearer t1");
  EXPECT_EQ(server.asked(), 1);
  source.advance(std::chrono::seconds(1));  // a minute before its end
  server.be_slow(true);
  EXPECT_EQ(source.token(), "Bearer t1");
  EXPECT_TRUE(eventually([&] { return server.asked() == 2; }));
  source.advance(std::chrono::seconds(49));
  EXPECT_EQ(source.token(), "Bearer t1");
  source.advance(std::chrono::seconds(1));  // ten seconds before its end
  EXPECT_THAT(source.token(), HasSubstr(kNone));
  server.be_slow(false);
  EXPECT_TRUE(eventually([&] { return source.token() == "Bearer t2"; }));
  EXPECT_EQ(server.asked(), 2);
}

TEST(TokenSource, RenewsAShortTokenAfterHalfOfItsLife) {
  const TokenServer server(4);
  QuickSource source(server);
  EXPECT_TRUE(eventually([&] { return source.token() == "Bearer t1"; }));
  source.advance(std::chrono::seconds(1));
  EXPECT_EQ(source.token(), "Bearer t1");
  EXPECT_EQ(server.asked(), 1);
  source.advance(std::chrono::seconds(1));
  EXPECT_EQ(source.token(), "Bearer t1");
  EXPECT_TRUE(eventually([&] { return server.asked() == 2; }));
}

TEST(TokenSource, EndsWhileItFetches) {
  TokenServer server(3600);
  server.be_slow(true);
  steady_clock::time_point start;
  {
    QuickSource source(server);
    EXPECT_THAT(source.token(), HasSubstr(kNone));
    start = steady_clock::now();
  }
  EXPECT_LT(steady_clock::now() - start, kPatience);
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

}  // namespace
}  // namespace ceems::net
