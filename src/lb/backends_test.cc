#include "lb/backends.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lb/frontend.h"
#include "net/server/server.h"
#include "testing/temp_dir.h"

namespace ceems::lb {
namespace {

using ::testing::HasSubstr;

Config config_of(Strategy strategy, std::vector<std::string> urls) {
  Config config;
  config.strategy = strategy;
  ClusterConfig cluster{.id = "c"};
  for (std::string& url : urls) {
    cluster.tsdb.push_back({.url = std::move(url)});
  }
  config.clusters.push_back(std::move(cluster));
  return config;
}

std::unique_ptr<Backends> made(const Config& config) {
  auto backends = Backends::create(gate::BackendType::kTsdb, config);
  EXPECT_TRUE(backends) << backends.error().message;
  return std::move(*backends);
}

std::string names(const std::vector<const Backend*>& chosen) {
  std::string text;
  for (const Backend* const backend : chosen) {
    text += backend->upstream->options().host;
  }
  return text;
}

TEST(Backends, GoOnWithServersThatStayAsTheyAre) {
  const auto before = made(config_of(Strategy::kRoundRobin, {"http://a", "http://b:1"}));
  const auto& old = before->find("c")->backends();
  const net::Upstream::Flight flight(*old[0].upstream);
  const auto config = config_of(Strategy::kRoundRobin, {"http://b:2", "http://a/x", "http://b:1"});
  const auto after = Backends::create(gate::BackendType::kTsdb, config, before.get());
  ASSERT_TRUE(after);
  const auto& now = (*after)->find("c")->backends();
  EXPECT_EQ(now[1].upstream, old[0].upstream);
  EXPECT_EQ(now[1].upstream->in_flight(), 1);
  EXPECT_EQ(now[2].upstream, old[1].upstream);
  EXPECT_NE(&now[0].upstream->addresses(), &old[1].upstream->addresses()) << "another port";
}

TEST(Backends, OfAServerWithOtherOptionsWhatIsKnownOfItsPlaceStaysKnown) {
  Config config = config_of(Strategy::kRoundRobin, {"https://a", "https://b", "https://d"});
  const auto before = made(config);
  const auto& old = before->find("c")->backends();
  old[0].upstream->set_alive(false);
  old[1].upstream->set_alive(false);
  old[1].upstream->set_hangs(true);
  for (ServerConfig& server : config.clusters[0].tsdb) {
    server.client.tls.server_name = "n";
  }
  const auto after = Backends::create(gate::BackendType::kTsdb, config, before.get());
  ASSERT_TRUE(after);
  const auto& now = (*after)->find("c")->backends();
  for (std::size_t i = 0; i < old.size(); ++i) {
    EXPECT_NE(now[i].upstream, old[i].upstream);
    EXPECT_EQ(&now[i].upstream->addresses(), &old[i].upstream->addresses());
    EXPECT_EQ(now[i].upstream->alive(), i == 2) << i;
    EXPECT_EQ(now[i].upstream->hangs(), i == 1) << i;
  }
}

TEST(Backends, AServerThatStandsTwiceIsCountedTwice) {
  Config config = config_of(Strategy::kRoundRobin, {"http://a", "http://a"});
  config.clusters.push_back({.id = "d", .tsdb = {{.url = "http://a"}}});
  const auto before = made(config);
  const auto after = Backends::create(gate::BackendType::kTsdb, config, before.get());
  ASSERT_TRUE(after);
  const auto& now = (*after)->find("c")->backends();
  EXPECT_EQ(now[0].upstream, before->find("c")->backends()[0].upstream);
  EXPECT_EQ(now[1].upstream, before->find("c")->backends()[1].upstream);
  EXPECT_NE(now[0].upstream, now[1].upstream);
  EXPECT_EQ((*after)->find("d")->backends()[0].upstream, before->find("d")->backends()[0].upstream);
}

TEST(Pool, TakesTurns) {
  const auto backends =
      made(config_of(Strategy::kRoundRobin, {"http://a", "http://b", "http://c"}));
  const Pool& pool = *backends->find("c");
  EXPECT_EQ(names(pool.pick()), "bc");
  EXPECT_EQ(names(pool.pick()), "ca");
  EXPECT_EQ(names(pool.pick()), "ab");
  pool.backends()[1].upstream->set_alive(false);
  EXPECT_EQ(names(pool.pick()), "ca");
  EXPECT_EQ(names(pool.pick()), "ca");
  EXPECT_EQ(names(pool.pick()), "ac");
}

TEST(Pool, TakesTheLeastBusy) {
  const auto backends = made(config_of(Strategy::kLeastConnection, {"http://a", "http://b"}));
  const Pool& pool = *backends->find("c");
  EXPECT_EQ(names(pool.pick()), "ab");
  {
    const net::Upstream::Flight flight(*pool.backends()[0].upstream);
    EXPECT_EQ(names(pool.pick()), "ba");
  }
  EXPECT_EQ(names(pool.pick()), "ab");
}

TEST(Pool, ChoosesWhileRequestsComeAndGo) {
  std::vector<std::string> urls;
  for (int i = 0; i < 24; ++i) {
    urls.push_back("http://h" + std::to_string(i));
  }
  const auto backends = made(config_of(Strategy::kLeastConnection, urls));
  const Pool& pool = *backends->find("c");
  std::vector<std::jthread> busy;
  for (std::size_t first : {0U, 7U}) {
    busy.emplace_back([&pool, first](const std::stop_token& stop) {
      for (std::size_t turn = first; !stop.stop_requested(); ++turn) {
        const auto& all = pool.backends();
        const net::Upstream::Flight one(*all[turn % all.size()].upstream);
        const net::Upstream::Flight two(*all[(turn * 5) % all.size()].upstream);
      }
    });
  }
  for (int i = 0; i < 20'000; ++i) {
    const auto chosen = pool.pick();
    ASSERT_EQ(chosen.size(), 2U);
    ASSERT_NE(chosen[0], nullptr);
    ASSERT_NE(chosen[0], chosen[1]);
  }
}

TEST(Pool, OfDeadServersNoneIsChosen) {
  const auto backends = made(config_of(Strategy::kRoundRobin, {"http://a"}));
  const Pool& pool = *backends->find("c");
  pool.backends()[0].upstream->set_alive(false);
  EXPECT_TRUE(pool.pick().empty());
  EXPECT_EQ(backends->find("other"), nullptr);
}

TEST(Backends, ReadUrls) {
  const auto backends = made(
      config_of(Strategy::kRoundRobin, {"http://a", "https://[::1]:9/base/?x=1", "https://b/"}));
  const auto& all = backends->find("c")->backends();
  EXPECT_EQ(all[0].upstream->address(), "a:80");
  EXPECT_EQ(all[1].upstream->address(), "[::1]:9");
  EXPECT_TRUE(all[1].upstream->options().use_tls);
  EXPECT_EQ(all[1].base_path, "/base");
  EXPECT_EQ(all[1].base_query, "x=1");
  EXPECT_EQ(all[2].upstream->address(), "b:443");
  EXPECT_EQ(all[2].base_path, "");
  EXPECT_FALSE(
      Backends::create(gate::BackendType::kTsdb, config_of(Strategy::kRoundRobin, {"ftp://a"})));
}

std::string header(const net::Relay::Attempt& attempt, std::string_view name) {
  std::string all;
  for (const auto& [key, value] : attempt.headers) {
    if (key == name) {
      all += value + ";";
    }
  }
  return all;
}

TEST(Backends, MayBeBehindUnixSockets) {
  const ceems::testing::TempDir directory;
  const std::string path = (directory.path() / "p.sock").string();
  std::atomic<int> asked = 0;
  net::ServerOptions options;
  options.listen_addresses = {"unix:" + path};
  auto server = net::Server::create(
      std::move(options), [&](const net::Request& request, net::Response& answer) {
        const std::string* const host = net::find_header(request.headers, "Host");
        asked += request.path == "/base/-/healthy" && *host == "localhost" ? 1 : 100;
        answer.status = 401;
      });
  ASSERT_TRUE(server) << server.error().message;
  (*server)->start();
  Config config = config_of(Strategy::kRoundRobin, {"unix://" + path + ":/base/?k=v"});
  config.clusters[0].tsdb[0].client.basic_auth =
      net::ClientOptions::BasicAuth{.username = "u", .password = "p"};
  const auto backends = made(config);
  const Backend& backend = backends->find("c")->backends()[0];
  EXPECT_EQ(backend.upstream->address(), path);
  EXPECT_EQ(backend.base_path, "/base");
  EXPECT_EQ(backend.base_query, "k=v");
  EXPECT_TRUE(responds(backend));
  EXPECT_EQ(asked, 1);

  net::Request request;
  request.method = "GET";
  request.target = "/api/v1/query?q=1";
  request.query = "q=1";
  request.remote_address = "192.0.2.7";
  request.headers = {{"Host", "lb"}};
  const auto attempt =
      attempt_for(backend, request, {.user = "root", .cluster = "c", .admin = true});
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->host, "localhost");
  EXPECT_EQ(attempt->target, "/base/api/v1/query?k=v&q=1");
  EXPECT_EQ(header(*attempt, "User-Agent"), "ceems_lb/localhost;");
  EXPECT_EQ(header(*attempt, "Authorization"), "Basic dTpw;");
  EXPECT_EQ(header(*attempt, "X-Forwarded-For"), "192.0.2.7;");
}

TEST(Backends, SayWhatIsWrongWithASocket) {
  for (const auto& [url, part] : {
           std::pair{"unix://run/p.sock", "backend of c: a unix socket has no host"},
           {"unix:", "backend of c: a unix socket needs an absolute path"},
           {"unix:///run/p.sock:9090", "begins with '/'"},
       }) {
    const auto refused =
        Backends::create(gate::BackendType::kTsdb, config_of(Strategy::kRoundRobin, {url}));
    ASSERT_FALSE(refused) << url;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr(part));
  }
}

TEST(Attempt, OfAdminsGoesOnAsItCame) {
  Config config = config_of(Strategy::kRoundRobin, {"http://u:p@a/base?k=v"});
  config.clusters[0].tsdb[0].client.headers["X-Scope"].values = {"s1", "s2"};
  const auto backends = made(config);
  net::Request request;
  request.method = "POST";
  request.target = "/api/v1/x%20y?q=1";
  request.query = "q=1";
  request.remote_address = "192.0.2.7";
  request.headers = {{"Host", "lb"},
                     {"Authorization", "Basic secret"},
                     {"X-Other", "kept"},
                     {"X-Forwarded-For", "10.0.0.1"},
                     {"Connection", "close"},
                     {"X-Ceems-Admin-User", "forged"},
                     {"X-Ceems-Token", "s"},
                     {"X-Ceems-Proxy-Token", "s"},
                     {"X-CEEMS-Service-Token", "s"}};
  const auto attempt = attempt_for(backends->find("c")->backends()[0], request,
                                   {.user = "root", .cluster = "c", .admin = true});
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->method, "POST");
  EXPECT_EQ(attempt->target, "/base/api/v1/x%20y?k=v&q=1");
  EXPECT_EQ(attempt->host, "lb");
  EXPECT_EQ(header(*attempt, "Authorization"), "Basic dTpw;");
  EXPECT_EQ(header(*attempt, "X-Other"), "kept;");
  EXPECT_EQ(header(*attempt, "X-Scope"), "s1;s2;");
  EXPECT_EQ(header(*attempt, "X-Forwarded-For"), "10.0.0.1, 192.0.2.7;");
  EXPECT_EQ(header(*attempt, "X-Ceems-Logged-User"), "root;");
  EXPECT_EQ(header(*attempt, "X-Ceems-Admin-User"), "");
  for (const auto* const token :
       {"X-Ceems-Token", "X-Ceems-Proxy-Token", "X-Ceems-Service-Token"}) {
    EXPECT_EQ(header(*attempt, token), "") << token;
  }
  EXPECT_EQ(header(*attempt, "Connection"), "");
  EXPECT_EQ(header(*attempt, "User-Agent"), "ceems_lb/a:80;");
}

TEST(Attempt, OfUsersNamesNoTenantCookieOrMethodToABackend) {
  Config config = config_of(Strategy::kRoundRobin, {"http://a"});
  config.clusters[0].tsdb[0].client.headers["X-Scope-OrgID"].values = {"ours"};
  const auto backends = made(config);
  net::Request request;
  request.method = "GET";
  request.target = "http://lb/api/v1/query?query=1";
  request.headers = {
      {"X-Grafana-User", "alice"},     {"X-Scope-OrgID", "theirs"}, {"Cookie", "a=b"},
      {"X_Grafana_User", "root"},      {"X-HTTP-Method", "DELETE"}, {"Range", "bytes=0-3"},
      {"X-Ceems-Logged-User", "root"}, {"X-Dashboard-Uid", "d"}};
  gate::Decision decision{.user = "alice", .cluster = "c"};
  decision.forward = {.method = "GET", .path = "/api/v1/query", .query = "query=1"};
  const auto& backend = backends->find("c")->backends()[0];
  const auto attempt = attempt_for(backend, request, decision);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(header(*attempt, "X-Grafana-User"), "alice;");
  EXPECT_EQ(header(*attempt, "X-Dashboard-Uid"), "d;");
  EXPECT_EQ(header(*attempt, "X-Ceems-Logged-User"), "alice;");
  EXPECT_EQ(header(*attempt, "X-Scope-OrgID"), "ours;");
  for (const char* const name : {"Cookie", "X_Grafana_User", "X-HTTP-Method", "Range"}) {
    EXPECT_EQ(header(*attempt, name), "") << name;
  }
  // What the configuration says wins over an admin's own, too; and the host of a target is none.
  const auto admins =
      attempt_for(backend, request, {.user = "root", .cluster = "c", .admin = true});
  ASSERT_TRUE(admins);
  EXPECT_EQ(header(*admins, "X-Scope-OrgID"), "ours;");
  EXPECT_EQ(admins->target, "/api/v1/query");
}

TEST(Attempt, OfUsersNamesTheBackendAsHost) {
  const auto backends = made(config_of(
      Strategy::kRoundRobin, {"http://a", "http://a:81", "https://[::1]/x", "https://b:80"}));
  net::Request request;
  request.method = "GET";
  request.target = "/api/v1/query";
  request.headers = {{"Host", "other.example"}};
  gate::Decision decision{.user = "alice", .cluster = "c"};
  decision.forward = {.method = "GET", .path = "/api/v1/query", .query = "query=1"};
  std::vector<std::string> hosts;
  for (const Backend& backend : backends->find("c")->backends()) {
    const auto attempt = attempt_for(backend, request, decision);
    ASSERT_TRUE(attempt);
    hosts.push_back(attempt->host);
    const auto admins =
        attempt_for(backend, request, {.user = "root", .cluster = "c", .admin = true});
    ASSERT_TRUE(admins);
    EXPECT_EQ(admins->host, "other.example");
  }
  EXPECT_EQ(hosts, (std::vector<std::string>{"a", "a:81", "[::1]", "b:80"}));
}

TEST(Attempt, OfUsersIsWhatWasChecked) {
  Config config = config_of(Strategy::kRoundRobin, {"http://a"});
  config.clusters[0].tsdb[0].filter_labels = {"instance"};
  const auto backends = made(config);
  net::Request request;
  request.method = "POST";
  request.target = "/api/v1/query?evil=1";
  request.query = "evil=1";
  request.headers = {{"Content-Type", "text/evil"}, {"Accept-Encoding", "gzip"}};
  gate::Decision decision{.user = "alice", .cluster = "c"};
  decision.forward = {.method = "POST",
                      .path = "/api/v1/query",
                      .query = "",
                      .content_type = "application/x-www-form-urlencoded",
                      .body = "query=1"};
  const auto attempt = attempt_for(backends->find("c")->backends()[0], request, decision);
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->target, "/api/v1/query");
  EXPECT_EQ(header(*attempt, "Content-Type"), "application/x-www-form-urlencoded;");
  EXPECT_EQ(header(*attempt, "Accept-Encoding"), "identity;");
  EXPECT_EQ(hidden_labels(*backends), std::vector<std::string>{"instance"});
}

}  // namespace
}  // namespace ceems::lb
