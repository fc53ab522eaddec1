#include "net/client/client.h"

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/client/client_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

using ceems::testing::kPatience;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Client, GetsAndPosts) {
  const Peer peer(show);
  const auto client = client_with();
  const auto got = client->get(peer.url() + "/a?b=c", {{"X-One", "1"}, {"X-Empty", ""}});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "GET /a?b=c ");
  EXPECT_EQ(*find_header(got->headers, "x-kind"), "echo");
  EXPECT_EQ(peer.header(0, "X-One"), "1");
  EXPECT_EQ(peer.header(0, "X-Empty"), "");
  EXPECT_EQ(peer.header(0, "User-Agent"), "ceems");
  EXPECT_EQ(peer.header(0, "Authorization"), "-");

  const auto posted = client->post(peer.url() + "/p", "text/x", std::string(100000, 'z'));
  ASSERT_TRUE(posted) << posted.error().message;
  EXPECT_EQ(posted->body, "POST /p? " + std::string(100000, 'z'));
  EXPECT_EQ(peer.header(1, "Content-Type"), "text/x");
  EXPECT_EQ(peer.header(1, "Expect"), "-");
  const auto empty = client->post(peer.url() + "/e", "", "");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->body, "POST /e? ");
  const auto removed = client->send_delete(peer.url() + "/d", {{"X-One", "1"}});
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->body, "DELETE /d? ");
  EXPECT_EQ(peer.header(3, "X-One"), "1");
  EXPECT_EQ(client->get(peer.url() + "/g")->body, "GET /g? ") << "the method does not stick";
}

TEST(Client, KeepsItsConnection) {
  ServerOptions options;
  options.max_connections = 1;  // a second connection would never be served
  const Peer peer(show, options);
  ClientOptions client_options;
  client_options.timeout = kPatience;
  const auto client = client_with(client_options);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(client->get(peer.url() + "/"));
  }
}

TEST(Client, AStatusIsNoError) {
  const Peer peer([](const Request&, Response& response) { plain_text(response, 503, "later"); });
  const auto got = client_with()->get(peer.url() + "/");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 503);
  EXPECT_EQ(got->body, "later\n");
}

TEST(Client, TimesOutOnAServerThatNeverAnswers) {
  const LyingPeer peer("");
  ClientOptions options;
  options.timeout = milliseconds(200);
  const auto start = steady_clock::now();
  const auto got = client_with(options)->get(peer.url() + "/x?token=secret");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(got.error().message, "GET " + peer.url() + "/x: no answer within the time limit");
  EXPECT_LT(steady_clock::now() - start, kPatience);
}

TEST(Client, SaysWhyThereIsNoAnswer) {
  std::string url;
  {
    const LyingPeer gone("x");
    url = gone.url();
  }
  ClientOptions options;
  options.timeout = kPatience;
  const auto client = client_with(options);
  const auto refused = client->get(url + "/");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("Connection refused"));
  for (const char* bytes : {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "garbage",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc"}) {
    const LyingPeer peer(bytes);
    const auto got = client->get(peer.url() + "/");
    ASSERT_FALSE(got) << bytes;
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable) << bytes;
  }
}

TEST(Client, CutsAnAnswerThatIsTooLarge) {
  const Peer peer([](const Request&, Response& response) {
    response.next_chunk = [](std::string& out) {
      out.append(100000, 'x');
      return true;
    };
  });
  ClientOptions options;
  options.max_response_bytes = 1000000;
  const auto got = client_with(options)->get(peer.url() + "/");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("the answer is larger than 1000000 bytes"));
}

TEST(Client, RefusesWhatIsNoHttpUrlWithoutRepeatingIt) {
  const auto client = client_with();
  for (const char* url : {"", "file:///etc/passwd", "127.0.0.1:80/x", "http://u:secret@",
                          "ftp://x/", "http://bad host/?secret"}) {
    const auto got = client->get(url);
    ASSERT_FALSE(got) << url;
    EXPECT_EQ(got.error().code, ErrorCode::kInvalidArgument) << url;
    EXPECT_THAT(got.error().message, Not(HasSubstr("secret")));
  }
  const auto injected = client->get("http://127.0.0.1:1/", {{"X", "a\r\nY: b"}});
  ASSERT_FALSE(injected);
  EXPECT_EQ(injected.error().code, ErrorCode::kInvalidArgument);
}

TEST(Client, CancelEndsACallUnderWayAtOnce) {
  const LyingPeer peer("");
  ClientOptions options;
  options.timeout = std::chrono::minutes(10);
  const auto client = client_with(options);
  const auto start = steady_clock::now();
  std::jthread canceller([&] {
    EXPECT_TRUE(peer.has_client());
    client->cancel();
  });
  const auto got = client->get(peer.url() + "/");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_LT(steady_clock::now() - start, kPatience);
  EXPECT_FALSE(client->get(peer.url() + "/"));
}

TEST(Client, AStopEndsTheCallItBelongsToAtOnce) {
  ClientOptions options;
  options.timeout = std::chrono::minutes(10);
  const auto client = client_with(options);
  const auto start = steady_clock::now();
  for (const bool post : {false, true}) {
    const LyingPeer peer("");
    std::stop_source stop;
    const std::jthread stopper([&] {
      EXPECT_TRUE(peer.has_client());
      stop.request_stop();
    });
    const auto got = post ? client->post(peer.url() + "/", "text/plain", "x", {}, stop.get_token())
                          : client->get(peer.url() + "/", {}, stop.get_token());
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(got.error().message, HasSubstr("cancelled"));
    EXPECT_FALSE(client->get(peer.url() + "/", {}, stop.get_token()));
  }
  EXPECT_LT(steady_clock::now() - start, kPatience);
  const Peer other(show);
  EXPECT_TRUE(client->get(other.url() + "/"));
}

TEST(Client, IsUsedByManyThreads) {
  const Peer peer(show);
  const auto client = client_with();
  std::atomic<int> good = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 20; ++n) {
          const auto got = client->get(peer.url() + "/");
          good += got && got->status == 200 ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(good, 160);
}

TEST(Client, SendsEachKindOfCredentials) {
  const ceems::testing::TempDir directory;
  const std::string file = directory.write("token", "  from file\n").string();
  const Peer peer(show);
  ClientOptions basic;
  basic.basic_auth = {.username = "Aladdin", .password = "open sesame"};
  EXPECT_TRUE(client_with(basic)->get(peer.url() + "/"));
  EXPECT_EQ(peer.header(0, "Authorization"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  ClientOptions bearer;
  bearer.authorization = {.credentials_file = file};
  const auto client = client_with(bearer);
  EXPECT_TRUE(client->get(peer.url() + "/"));
  EXPECT_EQ(peer.header(1, "Authorization"), "Bearer from file");
  directory.write("token", "changed");
  EXPECT_TRUE(client->get(peer.url() + "/"));
  EXPECT_EQ(peer.header(2, "Authorization"), "Bearer changed");
  std::filesystem::remove(file);
  const auto missing = client->get(peer.url() + "/");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("open " + file));

  std::string url = peer.url();
  url.insert(7, "us%40er:pa%3Ass@");
  EXPECT_TRUE(client_with()->get(url));
  EXPECT_EQ(peer.header(3, "Authorization"), "Basic dXNAZXI6cGE6c3M=");
  ClientOptions extra;
  extra.headers["X-Two"] = {.values = {"a"}, .secrets = {"b"}, .files = {}};
  EXPECT_TRUE(client_with(extra)->get(peer.url() + "/", {{"Authorization", "mine"}}));
  std::vector<std::string> values;
  const auto requests = peer.requests();
  for (const auto& [name, value] : requests.at(4).headers) {
    if (name == "X-Two") {
      values.push_back(value);
    }
  }
  EXPECT_THAT(values, ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(peer.header(4, "Authorization"), "mine");
}

TEST(Client, FollowsRedirectsButTakesNoCredentialsToAnotherHost) {
  const Peer other(show);
  const Peer peer([&other](const Request& request, Response& response) {
    if (request.path == "/there") {
      response.status = 302;
      response.set_header("Location", other.url() + "/end");
    } else if (request.path == "/here") {
      response.status = 307;
      response.set_header("Location", "end?x=1");
    } else if (request.path == "/loop") {
      response.status = 301;
      response.set_header("Location", "/loop");
    } else if (request.path == "/file") {
      response.status = 301;
      response.set_header("Location", "file:///etc/passwd");
    } else {
      show(request, response);
    }
  });
  ClientOptions options;
  options.basic_auth = {.username = "u", .password = "p"};
  options.headers["X-Key"] = {.values = {}, .secrets = {"k"}, .files = {}};
  const auto client = client_with(options);
  const auto here = client->post(peer.url() + "/here", "text/x", "body");
  ASSERT_TRUE(here);
  EXPECT_EQ(here->body, "POST /end?x=1 body");
  EXPECT_EQ(peer.header(1, "Authorization"), "Basic dTpw");
  EXPECT_EQ(peer.header(1, "X-Key"), "k");
  const auto there = client->post(peer.url() + "/there", "text/x", "body", {{"Cookie", "c"}});
  ASSERT_TRUE(there);
  EXPECT_EQ(there->body, "GET /end? ");
  for (const char* name : {"Authorization", "X-Key", "Cookie", "Content-Type"}) {
    EXPECT_EQ(other.header(0, name), "-") << name;
  }
  const auto loop = client->get(peer.url() + "/loop");
  ASSERT_FALSE(loop);
  EXPECT_THAT(loop.error().message, HasSubstr("more than 10 redirects"));
  EXPECT_FALSE(client->get(peer.url() + "/file"));
  options.follow_redirects = false;
  EXPECT_EQ(client_with(options)->get(peer.url() + "/there")->status, 302);
}

TEST(Client, SpeaksThroughAUnixSocket) {
  const ceems::testing::TempDir directory;
  const std::string path = (directory.path() / "s").string();
  ServerOptions server;
  server.listen_addresses = {"unix:" + path};
  const Peer peer(show, server);
  ClientOptions options;
  options.unix_socket = path;
  const auto got = client_with(options)->get("http://kubelet/pods");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "GET /pods? ");
  EXPECT_EQ(peer.header(0, "Host"), "kubelet");
}

TEST(Client, LooksUpNoNameWhoseAddressesItIsTold) {
  std::atomic<bool> away = false;
  const Peer other([](const Request&, Response& response) { response.body = "other"; });
  const Peer peer([&](const Request& request, Response& response) {
    show(request, response);
    if (away) {
      response.status = 302;
      response.set_header("Location", other.url() + "/");
    }
  });
  const std::string port = peer.url().substr(peer.url().rfind(':'));
  std::atomic<int> asked = 0;
  ClientOptions options;
  options.addresses = [&]() -> std::vector<std::string> {
    ++asked;
    return {"::1", "127.0.0.1"};  // nothing listens on the first
  };
  const auto client = client_with(options);
  const auto got = client->get("http://name.invalid" + port + "/a");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->body, "GET /a? ");
  EXPECT_EQ(peer.header(0, "Host"), "name.invalid" + port);
  away = true;
  EXPECT_EQ(client->get("http://name.invalid" + port + "/b")->body, "other");
  EXPECT_EQ(asked, 2) << "not for the other host";
}

TEST(Client, TakesUrlsOfUnixSockets) {
  const ceems::testing::TempDir directory;
  const std::string path = (directory.path() / "s").string();
  const Peer other([](const Request&, Response& response) { response.body = "other"; });
  ServerOptions server;
  server.listen_addresses = {"unix:" + path};
  const Peer peer(
      [&](const Request& request, Response& response) {
        show(request, response);
        if (request.path == "/there" || request.path == "/away") {
          response.status = 302;
          response.set_header("Location", request.path == "/there" ? "/end" : other.url() + "/");
        }
      },
      server);
  ClientOptions options;
  options.authorization = ClientOptions::Authorization{.credentials = "secret"};
  const auto client = client_with(options);
  EXPECT_EQ(client->get("unix://" + path + ":/a?b=c")->body, "GET /a?b=c ");
  EXPECT_EQ(peer.header(0, "Host"), "localhost");
  EXPECT_EQ(peer.header(0, "Authorization"), "Bearer secret");
  // Redirects stay on the socket, except those to another host.
  EXPECT_EQ(client->get("unix://" + path + ":/there")->body, "GET /end? ");
  EXPECT_EQ(peer.header(2, "Authorization"), "Bearer secret");
  EXPECT_EQ(client->get("unix://" + path + ":/away")->body, "other");
  EXPECT_EQ(other.header(0, "Authorization"), "-");
  const auto none = client->get("unix://" + path + ".none:/a?q=hidden");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("GET unix://" + path + ".none:/a: "));
  EXPECT_EQ(client->get("unix://host" + path).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->own_headers("unix:").error().code, ErrorCode::kInvalidArgument);
  // If the socket is known, a path needs no colon, so programs can append to the URL.
  options.unix_socket = path;
  EXPECT_EQ(client_with(options)->get("unix://" + path + "/api/x?y")->body, "GET /api/x?y ");
}

TEST(Client, FetchesAnOAuth2TokenOnceAndAgainWhenItIsRefused) {
  std::atomic<int> tokens = 0;
  std::atomic<bool> refuse = false;
  const Peer peer([&](const Request& request, Response& response) {
    if (request.path == "/token") {
      if (find_header(request.headers, "Authorization") != nullptr) {
        plain_text(response, 401, "in the form, please");
        return;
      }
      response.body = fmt::format(
          R"({{"access_token":"t{}","token_type":"bearer","expires_in":3600}})", ++tokens);
      return;
    }
    response.status = refuse ? 401 : 200;
  });
  ClientOptions options;
  options.oauth2 = ClientOptions::OAuth2{};
  options.oauth2->client_id = "id &1";
  options.oauth2->client_secret = "s/1";
  options.oauth2->scopes = {"a", "b"};
  options.oauth2->endpoint_params = {{"audience", "x y"}};
  options.oauth2->token_url = peer.url() + "/token";
  const auto client = client_with(options);
  EXPECT_EQ(client->get(peer.url() + "/1")->status, 200);
  EXPECT_EQ(client->get(peer.url() + "/2")->status, 200);
  EXPECT_EQ(tokens, 1);
  const auto requests = peer.requests();
  EXPECT_EQ(requests[1].body,
            "grant_type=client_credentials&scope=a%20b&audience=x%20y&client_id=id%20%261&"
            "client_secret=s%2F1");
  EXPECT_EQ(peer.header(2, "Authorization"), "Bearer t1");
  refuse = true;
  EXPECT_EQ(client->get(peer.url() + "/3")->status, 401);
  refuse = false;
  EXPECT_EQ(client->get(peer.url() + "/4")->status, 200);
  EXPECT_EQ(tokens, 2);
}

TEST(Client, RefusesOptionsThatCannotWork) {
  ClientOptions two;
  two.basic_auth = ClientOptions::BasicAuth{};
  two.authorization = ClientOptions::Authorization{};
  EXPECT_FALSE(Client::create(two));
  ClientOptions missing;
  missing.tls.ca_file = "/nonexistent/ca.pem";
  const auto client = Client::create(missing);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client.error().message,
            "TLS file: open /nonexistent/ca.pem: No such file or directory");
  ClientOptions half;
  half.tls.key = "x";
  EXPECT_FALSE(Client::create(half));
  ClientOptions version;
  version.tls.min_version = "SSL3";
  EXPECT_FALSE(Client::create(version));
}

}  // namespace
}  // namespace ceems::net
