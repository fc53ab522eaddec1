#include "lb/frontend.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/server.h"

namespace ceems::lb {
namespace {

using gate::BackendType;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// alice owns unit 1, root is an admin.
class FakeOwners final : public gate::Owners {
 public:
  Result<bool> is_admin(const std::string& user) override { return user == "root"; }
  Result<bool> may_see(const std::string& user,
                       const std::string& /*cluster*/,
                       const gate::UnitSet& units) override {
    return user == "alice" && units == gate::UnitSet{"1"};
  }
  Result<gate::UnitSet> units_of(const std::string& /*user*/,
                                 const std::string& /*cluster*/,
                                 const promql::TimeSpan& /*alive*/,
                                 std::size_t /*limit*/) override {
    return gate::UnitSet{"1"};
  }
  Result<gate::SharedIds> shared_ids(const std::string& /*user*/,
                                     const std::string& /*cluster*/,
                                     const gate::UnitSet& /*units*/) override {
    return gate::SharedIds();
  }
  Owners* cached_only() override { return this; }
};

/// A frontend with one server of cluster c, which hides the label `instance`.
class FrontendTest : public ::testing::Test {
 protected:
  explicit FrontendTest(BackendType type = BackendType::kTsdb) : frontend_(type, metrics_) {
    Config config;
    ClusterConfig cluster{.id = "c"};
    const ServerConfig server{.url = "http://192.0.2.1", .filter_labels = {"instance"}};
    (type == BackendType::kTsdb ? cluster.tsdb : cluster.profiles).push_back(server);
    config.clusters.push_back(std::move(cluster));
    auto backends = Backends::create(type, config);
    EXPECT_TRUE(backends);
    gate::GateRules rules;
    rules.clusters = {"c"};
    frontend_.publish(
        std::make_shared<FrontendSnapshot>(type, std::move(rules), owners_, std::move(*backends)));
  }

  static net::Request request_of(const std::string& method,
                                 const std::string& path,
                                 const std::string& user,
                                 const std::string& query) {
    net::Request request;
    request.method = method;
    request.target = query.empty() ? path : path + "?" + query;
    request.path = path;
    request.query = query;
    request.headers = {{"X-Grafana-User", user}, {"X-Ceems-Cluster-Id", "c"}};
    return request;
  }

  net::Response ask(const std::string& method,
                    const std::string& path,
                    const std::string& user = "root",
                    const std::string& query = "") const {
    net::Response response;
    frontend_.handle(request_of(method, path, user, query), response);
    return response;
  }

  /// As a connection does.
  net::Response ask_inline_first(const net::Request& request) const {
    net::Response response;
    if (!frontend_.handle_inline(request, response)) {
      frontend_.handle(request, response);
    }
    return response;
  }

  /// How many requests were decided so.
  [[nodiscard]] std::string decided(const std::string& reason) {
    const std::string page = metrics_.page(frontend_.type(), *frontend_.snapshot()->backends);
    const std::string name =
        R"(ceems_lb_decisions_total{backend_type="tsdb",reason=")" + reason + "\"} ";
    const auto at = page.find(name);
    return at == std::string::npos
               ? "none"
               : page.substr(at + name.size(), page.find('\n', at) - at - name.size());
  }

  [[nodiscard]] net::Upstream& server() const {
    return *frontend_.snapshot()->backends->find("c")->backends()[0].upstream;
  }

  [[nodiscard]] bool repeatable(const std::string& method, const std::string& path) const {
    const auto response = ask(method, path);
    EXPECT_TRUE(response.relay) << method << ' ' << path;
    return response.relay && response.relay->repeatable;
  }

  std::shared_ptr<FakeOwners> owners_ = std::make_shared<FakeOwners>();
  RequestMetrics metrics_;
  Frontend frontend_;
};

class ProfileFrontendTest : public FrontendTest {
 protected:
  ProfileFrontendTest() : FrontendTest(BackendType::kProfiles) {}
};

constexpr const char* kOwn = "query=x%7Buuid%3D%221%22%7D";

TEST_F(FrontendTest, AnswersHealthBehindTheGateOnly) {
  EXPECT_EQ(ask("GET", "/health").body, "CEEMS LB Server is healthy");
  EXPECT_EQ(ask("GET", "/health", "alice").status, 403);
  EXPECT_EQ(ask("GET", "/health", "").status, 401);
}

TEST_F(ProfileFrontendTest, RefusedCallsHaveACodeForClientsOfConnect) {
  const auto call = [&](const std::string& method, const std::string& user,
                        const std::string& query, const net::Headers& headers) {
    net::Request request = request_of(query.empty() ? "POST" : "GET",
                                      "/querier.v1.QuerierService/" + method, user, query);
    request.headers.insert(request.headers.end(), headers.begin(), headers.end());
    net::Response response;
    frontend_.handle(request, response);
    return response;
  };
  const net::Headers version = {{"Connect-Protocol-Version", "1"}};
  const auto refused = call("GetProfileStats", "alice", "", version);
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body,
            R"({"code":"permission_denied",)"
            R"("message":"user do not have permissions to this resource","status":"error",)"
            R"("errorType":"forbidden","error":"user do not have permissions to this resource"})"
            "\n");
  const std::string code = R"("code":"unauthenticated")";
  EXPECT_THAT(call("Series", "", "", version).body, HasSubstr(code));
  EXPECT_THAT(call("Series", "", "", {{"Content-Type", "application/json"}}).body, HasSubstr(code));
  EXPECT_THAT(call("Series", "", "connect=v1&message=%7B%7D", {}).body, HasSubstr(code));
  EXPECT_EQ(call("GetProfileStats", "alice", "", {{"Content-Type", "application/proto"}}).body,
            R"({"status":"error","errorType":"forbidden",)"
            R"("error":"user do not have permissions to this resource"})"
            "\n")
      << "as the reference has it";
  EXPECT_EQ(ask("POST", "/ingest", "alice").body,
            R"({"status":"error","errorType":"forbidden",)"
            R"("error":"user do not have permissions to this resource"})"
            "\n");
}

TEST_F(FrontendTest, RefusedQueriesHaveNoData) {
  EXPECT_EQ(ask("GET", "/api/v1/metadata", "alice").body,
            R"({"status":"error","errorType":"forbidden",)"
            R"("error":"user do not have permissions to this resource"})"
            "\n");
}

TEST_F(FrontendTest, WhatReadsMayBeSentToASecondServer) {
  for (const auto* const path : {"/api/v1/query", "/api/v1/query_range", "/prom/api/v1/series",
                                 "/api/v1/labels/", "/api/v1/query_exemplars"}) {
    EXPECT_TRUE(repeatable("POST", path)) << path;
    EXPECT_FALSE(repeatable("DELETE", path)) << path;
  }
  for (const auto* const path : {"/api/v1/admin/tsdb/delete_series", "/api/v1/write", "/"}) {
    EXPECT_FALSE(repeatable("POST", path)) << path;
    EXPECT_TRUE(repeatable("GET", path)) << path;
  }
}

TEST_F(FrontendTest, AQueryThatBreaksServersTwiceIsRefusedToItsUser) {
  for (int i = 0; i < 2; ++i) {
    const auto response = ask("GET", "/api/v1/query", "alice", kOwn);
    ASSERT_TRUE(response.relay) << i;
    EXPECT_EQ(response.relay->user, "alice");
    response.relay->done({.status = 503, .broken = 1});
  }
  const auto again = ask_inline_first(request_of("GET", "/api/v1/query", "alice", kOwn));
  EXPECT_FALSE(again.relay);
  EXPECT_EQ(again.status, 503);
  EXPECT_THAT(again.body, HasSubstr("refused for 5 minutes"));
  EXPECT_EQ(decided("breaks_servers"), "1");
  EXPECT_TRUE(ask("GET", "/api/v1/query", "root", kOwn).relay) << "another user";
}

TEST_F(ProfileFrontendTest, SettingsAreEmpty) {
  const auto answer = ask("POST", "/settings.v1.SettingsService/Get", "alice");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "{}");
  EXPECT_EQ(ask("GET", "/settings.v1.SettingsService/Get", "alice").status, 403);
  EXPECT_EQ(ask("POST", "/settings.v1.SettingsService/Set", "alice").status, 403);
  EXPECT_EQ(ask("POST", "/settings.v1.SettingsService/Get", "").status, 401);
}

TEST_F(ProfileFrontendTest, WhatReadsMayBeSentToASecondServer) {
  EXPECT_TRUE(repeatable("POST", "/querier.v1.QuerierService/SelectSeries"));
  EXPECT_FALSE(repeatable("POST", "/push.v1.PusherService/Push"));
  EXPECT_FALSE(repeatable("POST", "/api/v1/query"));
}

TEST_F(FrontendTest, CountsARequestOnceWhetherAServerIsThereOrNot) {
  const auto query = request_of("GET", "/api/v1/query", "alice", kOwn);
  EXPECT_TRUE(ask_inline_first(query).relay);
  EXPECT_EQ(decided("allowed"), "1");
  server().set_alive(false);
  const auto refused = ask_inline_first(query);
  EXPECT_FALSE(refused.relay);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(decided("allowed"), "2");
  EXPECT_EQ(decided("no_backend"), "1");
}

TEST_F(FrontendTest, BodiesAreBoundedWhereTheyAreChecked) {
  auto request = request_of("POST", "/api/v1/write", "root", "");
  request.body.assign((1U << 20U) + 1, 'x');
  EXPECT_EQ(ask_inline_first(request).status, 413);
  EXPECT_EQ(decided("size"), "1");
  frontend_.publish(std::make_shared<FrontendSnapshot>(BackendType::kTsdb,
                                                       gate::GateRules{.clusters = {"c"}}, nullptr,
                                                       frontend_.snapshot()->backends));
  net::Response unanswered;
  EXPECT_FALSE(frontend_.handle_inline(request, unanswered)) << "copied while others wait";
  const auto passed = ask_inline_first(request);
  ASSERT_TRUE(passed.relay);
  EXPECT_EQ(passed.relay->body.size(), request.body.size());
  request.body.assign((32U << 20U) + 1, 'x');
  EXPECT_EQ(ask_inline_first(request).status, 413);
}

TEST_F(FrontendTest, TheHeaderTellsWhetherTheBodyIsNeeded) {
  const auto needed = [&](const std::string& method, const std::string& path,
                          const std::string& user, const std::string& cluster = "c") {
    auto request = request_of(method, path, user, "");
    request.headers[1].second = cluster;
    return frontend_.needs_body(request);
  };
  EXPECT_TRUE(needed("POST", "/api/v1/query", "alice"));
  EXPECT_TRUE(needed("POST", "/api/v1/admin/tsdb/delete_series", "root"));
  EXPECT_FALSE(needed("POST", "/api/v1/admin/tsdb/delete_series", "alice"));
  EXPECT_FALSE(needed("PUT", "/api/v1/query", "alice"));
  EXPECT_FALSE(needed("POST", "/api/v1/query", ""));
  EXPECT_FALSE(needed("POST", "/api/v1/query", "ceems-int-svc"));
  EXPECT_FALSE(needed("POST", "/api/v1/query", "alice", "z"));
  net::Request own;
  own.method = "POST";
  own.path = own.target = "/metrics";
  EXPECT_FALSE(frontend_.needs_body(own));
}

TEST_F(FrontendTest, WithoutItsBodyNothingPasses) {
  auto request = request_of("POST", "/api/v1/query", "alice", kOwn);
  request.body_missing = true;
  net::Response response;
  frontend_.handle(request, response);
  EXPECT_FALSE(response.relay);
  EXPECT_EQ(response.status, 503);
}

TEST_F(FrontendTest, ItsOwnPagesAreKnownByPathAndHeader) {
  net::Request request;
  for (const char* const path : {"/-/healthy", "/metrics"}) {
    request.path = path;
    EXPECT_TRUE(is_own_page(request)) << path;
  }
  request.headers = {{"X-Ceems-Cluster-Id", "c"}};
  EXPECT_FALSE(is_own_page(request));
  EXPECT_FALSE(is_own_page(request_of("GET", "/api/v1/query", "alice", "")));
}

TEST_F(FrontendTest, RequestsUnderWayHoldTheirServers) {
  std::weak_ptr<const Backends> servers = frontend_.snapshot()->backends;
  auto response = ask("GET", "/api/v1/query", "alice", kOwn);
  frontend_.publish(nullptr);
  EXPECT_FALSE(servers.expired());
  response = {};
  EXPECT_TRUE(servers.expired());
}

TEST_F(FrontendTest, ATokenThatAServerRefusesIsFetchedAnew) {
  std::atomic<int> fetched = 0;
  net::ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0"};
  auto tokens =
      net::Server::create(std::move(options), [&](const net::Request&, net::Response& response) {
        response.body = R"({"access_token":"t)" + std::to_string(++fetched) + "\"}";
      });
  ASSERT_TRUE(tokens);
  (*tokens)->start();
  Config config;
  ServerConfig server{.url = "http://192.0.2.1"};
  server.client.oauth2 = net::ClientOptions::OAuth2{};
  server.client.oauth2->token_url = "http://" + (*tokens)->addresses()[0];
  config.clusters.push_back({.id = "c", .tsdb = {server}});
  auto backends = Backends::create(BackendType::kTsdb, config);
  ASSERT_TRUE(backends) << backends.error().message;
  frontend_.publish(std::make_shared<FrontendSnapshot>(
      BackendType::kTsdb, gate::GateRules{.clusters = {"c"}}, owners_, std::move(*backends)));
  const auto shown = [&](int status) {
    const auto response = ask("GET", "/api/v1/query", "alice", kOwn);
    EXPECT_TRUE(response.relay && response.relay->attempts.size() == 1);
    const auto& attempt = response.relay->attempts.at(0);
    response.relay->done({.status = status, .upstream = attempt.upstream.get()});
    return *net::find_header(attempt.headers, "Authorization");
  };
  EXPECT_EQ(shown(200), "Bearer t1");
  EXPECT_EQ(shown(401), "Bearer t1");
  EXPECT_EQ(shown(403), "Bearer t2");
  EXPECT_EQ(shown(200), "Bearer t2");
}

/// With a stand-in for VictoriaMetrics, for which alice's 101 units make a long request.
class ManyUnitsTest : public FrontendTest {
 protected:
  class Owners final : public gate::Owners {
   public:
    Result<bool> is_admin(const std::string& /*user*/) override { return false; }
    Result<bool> may_see(const std::string& /*user*/,
                         const std::string& /*cluster*/,
                         const gate::UnitSet& units) override {
      return std::ranges::includes(own, units);
    }
    Result<gate::UnitSet> units_of(const std::string& /*user*/,
                                   const std::string& /*cluster*/,
                                   const promql::TimeSpan& /*alive*/,
                                   std::size_t /*limit*/) override {
      return own;
    }
    Result<gate::SharedIds> shared_ids(const std::string& /*user*/,
                                       const std::string& /*cluster*/,
                                       const gate::UnitSet& /*units*/) override {
      return gate::SharedIds();
    }
    Owners* cached_only() override { return this; }

    gate::UnitSet own = {};
  };

  void SetUp() override {
    auto owners = std::make_shared<Owners>();
    for (int i = 0; i < 101; ++i) {
      owners->own.insert(std::to_string(i));
    }
    many_ = owners;
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    auto made = net::Server::create(
        std::move(options), [&](const net::Request& request, net::Response& answer) {
          ++asked_;
          const bool filtered = (request.query + request.body).contains("extra_filters");
          const bool query = request.path == "/api/v1/query" && request.method == "POST";
          const std::string list = filtered && applies_ ? "[]" : "[\"up\"]";
          answer.body = query ? R"({"data":{"result":)" + list + "}}" : R"({"data":)" + list + "}";
        });
    ASSERT_TRUE(made) << made.error().message;
    server_ = std::move(*made);
    server_->start();
    serve("");
  }

  /// Has the load balancer use the server with this after the address in its URL.
  void serve(const std::string& rest) {
    Config config;
    config.clusters.push_back(
        {.id = "c", .tsdb = {{.url = "http://" + server_->addresses()[0] + rest}}});
    auto backends = Backends::create(BackendType::kTsdb, config);
    ASSERT_TRUE(backends) << backends.error().message;
    frontend_.publish(std::make_shared<FrontendSnapshot>(
        BackendType::kTsdb,
        gate::GateRules{.clusters = {"c"},
                        .servers = {{"c", gate::TsdbServer::kVictoriaMetrics}},
                        .confine = true},
        many_, std::move(*backends)));
  }

  /// What is sent for a request.
  [[nodiscard]] std::string sent(const std::string& path, const std::string& query) const {
    const auto response = ask_inline_first(request_of("GET", path, "alice", query));
    EXPECT_TRUE(response.relay);
    return response.relay ? response.relay->attempts.at(0).target + response.relay->body : "";
  }

  std::shared_ptr<Owners> many_;
  std::atomic<bool> applies_ = true;
  std::atomic<int> asked_ = 0;
  std::unique_ptr<net::Server> server_;
};

TEST_F(ManyUnitsTest, AreInFiltersWhereTheServerAppliesThem) {
  const std::string filters = "&extra_filters%5B%5D=%7Buuid%3D~%220%7C1%7C10%7C100%7C11%7C";
  EXPECT_THAT(sent("/api/v1/query", "query=m"),
              HasSubstr("/api/v1/query?query=WITH%20%28%29%20m%7Buuid%21%3D%22%22%7D" + filters));
  EXPECT_EQ(asked_, 4);
  std::string all;
  for (const std::string& unit : many_->own) {
    all += (all.empty() ? "" : "%7C") + unit;
  }
  EXPECT_THAT(sent("/api/v1/query", "query=m%7Buuid%3D~%22" + all + "%22%7D"), HasSubstr(filters))
      << "which can be decided at once";
  EXPECT_EQ(asked_, 4);
}

TEST_F(ManyUnitsTest, AreInTheTextForOtherServers) {
  applies_ = false;
  const std::string text = "/api/v1/query?query=m%7Buuid%3D~%220%7C1%7C10%7C100%7C11%7C";
  EXPECT_THAT(sent("/api/v1/query", "query=m"), StartsWith(text));
  EXPECT_EQ(asked_, 1);
  applies_ = true;
  serve("?extra_filters[]=%7Btenant%3D%22t%22%7D");
  EXPECT_THAT(sent("/api/v1/query", "query=m"), Not(HasSubstr("WITH")))
      << "they would add to those of the operator";
  EXPECT_EQ(asked_, 1);
}

/// What a user gets of an answer.
std::string filtered(const net::Relay& relay,
                     int status,
                     const net::Headers& headers,
                     std::string_view body) {
  const auto filter = relay.filter(status, headers);
  if (filter == nullptr) {
    return std::string(body);
  }
  std::string out;
  const bool fine = filter->feed(body, out) && filter->finish(out);
  return fine ? out : "no answer";
}

TEST_F(FrontendTest, TakesLabelsOutOfAnswers) {
  const auto users = ask("GET", "/api/v1/query", "alice", kOwn);
  const auto admins = ask("GET", "/api/v1/query", "root", kOwn);
  ASSERT_TRUE(users.relay && admins.relay);
  const net::Headers json = {{"Content-Type", "application/json"}};
  constexpr std::string_view kVector =
      R"({"data":{"result":[{"metric":{"instance":"n","uuid":"1"}}]}})";
  for (const net::Relay* const relay : {users.relay.get(), admins.relay.get()}) {
    EXPECT_EQ(filtered(*relay, 200, json, kVector),
              R"({"data":{"result":[{"metric":{"uuid":"1"}}]}})");
    EXPECT_EQ(filtered(*relay, 200, json, "<html>"), "no answer");
    EXPECT_EQ(filtered(*relay, 200, {{"Content-Encoding", "gzip"}}, kVector), "no answer");
    EXPECT_EQ(filtered(*relay, 204, json, ""), "");
  }
  constexpr std::string_view kError = R"({"errorType":"execution","error":"{instance=\"n\"}"})";
  EXPECT_THAT(filtered(*users.relay, 422, json, kError), HasSubstr("withheld"));
  EXPECT_EQ(filtered(*admins.relay, 422, json, kError), kError);
}

TEST_F(FrontendTest, OfAHiddenLabelThereAreNoValues) {
  constexpr std::string_view kNames = R"({"status":"success","data":["n"]})";
  constexpr std::string_view kNone = R"({"status":"success","data":[]})";
  const std::vector<std::pair<std::string, std::string_view>> cases = {
      {"instance", kNone},       {"U__instance", kNone},  // as Prometheus 3 reads it
      {"U__in_73_tance", kNone}, {"job", kNames},
      {"instances", kNames},     {"U_instance", kNames},
  };
  for (const auto& [label, wanted] : cases) {
    const auto response = ask("GET", "/api/v1/label/" + label + "/values", "root",
                              "match%5B%5D=x%7Buuid%3D%221%22%7D");
    ASSERT_TRUE(response.relay) << label;
    EXPECT_EQ(filtered(*response.relay, 200, {}, kNames), wanted) << label;
  }
  const auto config = ask("GET", "/api/v1/status/config");
  ASSERT_TRUE(config.relay);
  EXPECT_EQ(config.relay->filter(200, {}), nullptr);
}

}  // namespace
}  // namespace ceems::lb
