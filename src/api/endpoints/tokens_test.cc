// Personal API tokens: what people can do with them, and what attackers cannot.
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/endpoints/endpoint.h"
#include "api/server_test_support.h"
#include "audit/log.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGoodWish = R"({"name":"laptop","scope":"read-own"})";

class TokensEndpoint : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto log = audit::Log::open({.file = audit_file()}, "ceems_api_server", clock_);
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    start({.roles = {
               .project_leads = {{.cluster_id = "hpc-a", .project = "optics", .users = {"ada"}}}}});
  }
  void start(login::LoginOptions options) {
    tokens_ = make_tokens(std::move(options));
    make({.tokens = tokens_.get(), .audit = log_.get()});
  }

  [[nodiscard]] std::string audit_file() const { return (dir_.path() / "audit.log").string(); }
  [[nodiscard]] std::string audited() const {
    std::ifstream in(audit_file());
    return {std::istreambuf_iterator<char>(in), {}};
  }

  net::Response post(std::string_view body, net::Headers headers) {
    headers.emplace_back("Content-Type", "application/json");
    net::Request asked = request_for("POST", "/api/v1/tokens", std::move(headers));
    asked.body = body;
    net::Response response;
    server_->handle(asked, response);
    return response;
  }
  net::Response post(std::string_view body, const std::string& user = "ada") {
    return post(body, net::Headers{{"X-Grafana-User", user}});
  }
  json::value made(std::string_view body, const std::string& user = "ada") {
    const net::Response response = post(body, user);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body).at("data");
  }
  std::string secret(std::string_view body = kGoodWish, const std::string& user = "ada") {
    return std::string(made(body, user).at("token").as_string());
  }
  json::array listed(const std::string& user = "ada", const std::string& path = "tokens") {
    return json::parse(body(path, user)).at("data").as_array();
  }
  net::Response with(const std::string& token,
                     const std::string& target,
                     net::Headers headers = {},
                     const std::string& method = "GET") {
    headers.emplace_back("Authorization", "Bearer " + token);
    return request(method, "/api/v1/" + target, std::move(headers));
  }
  net::Response revoke(const std::string& target, const std::string& user) {
    return request("DELETE", "/api/v1/" + target, {{"X-Grafana-User", user}});
  }
  static std::set<std::string> owners(const net::Response& response) {
    std::set<std::string> names;
    for (const json::value& row : json::parse(response.body).at("data").as_array()) {
      names.emplace(row.at("username").as_string());
    }
    return names;
  }

  std::unique_ptr<audit::Log> log_;
};

TEST_F(TokensEndpoint, ShowsTheSecretOnceAndStoresItsHash) {
  const json::value token = made(R"({"name":"my laptop","scope":"read-led","days":7})");
  const std::string secret(token.at("token").as_string());
  EXPECT_THAT(secret, StartsWith("ceems_pat_"));
  EXPECT_EQ(secret.size(), 53U);
  EXPECT_EQ(token.at("user"), "ada");
  EXPECT_EQ(token.at("name"), "my laptop");
  EXPECT_EQ(token.at("scope"), "read-led");
  EXPECT_EQ(token.at("created_ts"), clock_.now_ms());
  EXPECT_EQ(token.at("expires_ts"), clock_.now_ms() + 7 * store::kDay);
  EXPECT_TRUE(token.at("used_ts").is_null());
  const std::string list = body("tokens", "ada");
  EXPECT_THAT(list, HasSubstr(R"("name":"my laptop")"));
  EXPECT_THAT(list, Not(HasSubstr("ceems_pat_")));
  EXPECT_EQ(text("SELECT hash FROM ceems_tokens").find(secret.substr(10)), std::string::npos);
  EXPECT_EQ(text("SELECT hash FROM ceems_tokens").size(), 43U);
  EXPECT_NE(secret, std::string(made(kGoodWish).at("token").as_string()));
}

TEST_F(TokensEndpoint, ReadsAsItsOwner) {
  const std::string token = secret();
  const auto units = with(token, "units");
  EXPECT_EQ(units.status, 200);
  EXPECT_EQ(owners(units), std::set<std::string>{"ada"});
  EXPECT_EQ(header(units, "Cache-Control").find("public"), std::string::npos);
  EXPECT_THAT(with(token, "whoami").body,
              HasSubstr(R"({"user":"ada","admin":false,"role":"user","via":"token","led":[]})"));
  const std::string led = secret(R"({"name":"x","scope":"read-led"})");
  EXPECT_EQ(owners(with(led, "units")), (std::set<std::string>{"ada", "eve"}));
  EXPECT_THAT(with(led, "whoami").body,
              HasSubstr(R"("led":[{"cluster_id":"hpc-a","project":"optics"}])"));
  // Schemes are written in any case (RFC 9110 §11.1).
  EXPECT_EQ(request("GET", "/api/v1/units", {{"authorization", "bearer  " + token}}).status, 200);
}

TEST_F(TokensEndpoint, NotesTheLastUseToTheHour) {
  const std::string token = secret();
  clock_.advance(std::chrono::minutes(5));
  const std::int64_t first = clock_.now_ms();
  EXPECT_EQ(with(token, "whoami").status, 200);
  EXPECT_EQ(listed().at(0).at("used_ts"), first);
  clock_.advance(std::chrono::minutes(59));
  EXPECT_EQ(with(token, "whoami").status, 200);
  EXPECT_EQ(listed().at(0).at("used_ts"), first);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(with(token, "whoami").status, 200);
  EXPECT_EQ(listed().at(0).at("used_ts"), first + store::kHour);
}

TEST_F(TokensEndpoint, EndsWithItsTime) {
  const std::string token = secret(R"({"name":"x","scope":"read-own","days":1})");
  clock_.advance(std::chrono::hours(24) - std::chrono::milliseconds(1));
  EXPECT_EQ(with(token, "units").status, 200);
  clock_.advance(std::chrono::milliseconds(1));
  const auto response = with(token, "units");
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(header(response, "WWW-Authenticate"), R"(Bearer error="invalid_token")");
  EXPECT_EQ(listed().size(), 1U);  // its owner sees why
  clock_.advance(std::chrono::days(31));
  static_cast<void>(secret());
  EXPECT_EQ(listed().size(), 1U);
}

TEST_F(TokensEndpoint, CannotBeUsedAgainAfterItIsRevoked) {
  const json::value token = made(kGoodWish);
  const std::string secret(token.at("token").as_string());
  const std::string id(token.at("id").as_string());
  EXPECT_EQ(with(secret, "units").status, 200);
  EXPECT_EQ(revoke("tokens?id=" + id, "bob").status, 404);
  EXPECT_EQ(revoke("tokens?id=", "ada").status, 400);
  EXPECT_EQ(revoke("tokens?id=' OR 1=1 --", "ada").status, 404);
  EXPECT_EQ(with(secret, "units").status, 200);
  EXPECT_EQ(revoke("tokens?id=" + id, "ada").status, 200);
  EXPECT_EQ(with(secret, "units").status, 401);
  EXPECT_EQ(revoke("tokens?id=" + id, "ada").status, 404);
}

TEST_F(TokensEndpoint, AdminsSeeAndRevokeAllButSupportDoesNot) {
  const std::string id(made(kGoodWish).at("id").as_string());
  static_cast<void>(made(kGoodWish, "bob"));
  EXPECT_EQ(listed("root", "tokens/admin").size(), 2U);
  EXPECT_THAT(listed("root"), IsEmpty());
  EXPECT_EQ(get("/api/v1/tokens/admin", "ada").status, 403);
  make({.roles = {.support = {"sue"}}, .tokens = tokens_.get()});
  EXPECT_EQ(get("/api/v1/tokens/admin", "sue").status, 403);
  EXPECT_EQ(revoke("tokens/admin?id=" + id, "sue").status, 403);
  EXPECT_EQ(revoke("tokens/admin?id=" + id, "bob").status, 403);
  EXPECT_EQ(revoke("tokens/admin?id=" + id, "root").status, 200);
  EXPECT_EQ(listed("root", "tokens/admin").size(), 1U);
}

TEST_F(TokensEndpoint, NeverDoesMoreThanRead) {
  const std::string admin = secret(R"({"name":"x","scope":"read-led"})", "root");
  EXPECT_THAT(with(admin, "whoami").body, HasSubstr(R"("admin":false,"role":"user")"));
  for (const Endpoint& endpoint : all_endpoints()) {
    const std::string path(endpoint.path);
    const int status = with(admin, path, {}, std::string(endpoint.method())).status;
    if (endpoint.caller == Caller::kAdmin || path == "tokens") {
      EXPECT_EQ(status, 403) << endpoint.method() << " " << path;
    } else {
      EXPECT_TRUE(status == 200 || status == 400 || status == 403 || status == 404)
          << endpoint.method() << " " << path << " " << status;
    }
  }
  EXPECT_EQ(with(admin, "units?user=ada").body.find("\"ada\""), std::string::npos);
  EXPECT_EQ(text("SELECT username FROM ceems_tokens"), "root");
  EXPECT_THAT(audited(), HasSubstr(R"("status":403,"reason":"token_scope","endpoint":["tokens"])"));
}

TEST_F(TokensEndpoint, CannotBeCombinedWithAnotherIdentity) {
  const std::string token = secret();
  EXPECT_EQ(with(token, "units", {{"X-Grafana-User", "ada"}}).status, 200);
  for (const std::string name : {"root", "ADA", "ada ", "ceems-int-svc"}) {
    const auto response = with(token, "units/admin", {{"X-Grafana-User", name}});
    EXPECT_EQ(response.status, 401) << name;
    EXPECT_THAT(response.body, HasSubstr("names another user"));
  }
  // A name twice, a bad token beside a good name, a second token, the credential of ceems_lb.
  EXPECT_EQ(with(token, "units", {{"X-Grafana-User", "ada"}, {"x-grafana-user", "root"}}).status,
            401);
  EXPECT_EQ(with("ceems_pat_x", "units", {{"X-Grafana-User", "ada"}}).status, 401);
  EXPECT_EQ(with(token, "units", {{"Authorization", "Bearer " + token}}).status, 401);
  EXPECT_EQ(with(token, "units", {{"Authorization", "Basic YTpi"}}).status, 401);
  EXPECT_EQ(with(token, "units", {{"X-Ceems-Service-Token", "x"}}).status, 401);
  // With a token, the owner's other roles do not count, either.
  EXPECT_EQ(with(secret(kGoodWish, "root"), "units/admin", {{"X-Grafana-User", "root"}}).status,
            403);
  // Other schemes and tokens are of the web configuration or of a proxy.
  EXPECT_EQ(
      request("GET", "/api/v1/units", {{"X-Grafana-User", "ada"}, {"Authorization", "Bearer abc"}})
          .status,
      200);
}

TEST_F(TokensEndpoint, TakesTheHeaderBesideAPassword) {
  const std::string token = secret();
  const auto asked = [this](const std::string& value, net::Headers headers = {}) {
    headers.emplace_back("x-ceems-token", value);
    return request("GET", "/api/v1/units", std::move(headers));
  };
  // "a:b" is the password of the web configuration, which does not name a user.
  const net::Headers password{{"Authorization", "Basic YTpi"}};
  EXPECT_EQ(owners(asked(token, password)), std::set<std::string>{"ada"});
  EXPECT_EQ(owners(asked(" " + token)), std::set<std::string>{"ada"});
  EXPECT_EQ(asked(token, {{"Authorization", "Bearer abc"}}).status, 200);
  EXPECT_EQ(asked(token, {{"X-Grafana-User", "ada"}}).status, 200);
  EXPECT_EQ(asked(token, {{"X-Grafana-User", "root"}}).status, 401);
  EXPECT_EQ(request("DELETE", "/api/v1/tokens?id=x", {{"X-Ceems-Token", token}}).status, 403);
  // Two tokens, two passwords, and malformed ones: never the identity of the other header.
  EXPECT_EQ(asked(token, {{"Authorization", "Bearer " + token}}).status, 401);
  EXPECT_EQ(asked(token, {{"X-Ceems-Token", token}}).status, 401);
  EXPECT_EQ(asked(token, {{"Authorization", "Basic YTpi"}, {"Authorization", "Basic YTpi"}}).status,
            401);
  for (const std::string& value : {std::string(), "Bearer " + token, token + "," + token}) {
    const int status = asked(value, {{"X-Grafana-User", "ada"}}).status;
    EXPECT_TRUE(status == 401 || status == 429) << value << " " << status;
  }
}

TEST_F(TokensEndpoint, IsRefusedBesideThePasswordOfTheServiceAccount) {
  start({.service_account = login::ServiceAccountOptions{.web_user = "lb"}});
  const std::string token = secret();
  for (const auto& [user, status] : std::map<std::string, int>{{"lb", 401}, {"scripts", 200}}) {
    net::Request asked = request_for("GET", "/api/v1/units", {{"X-Ceems-Token", token}});
    asked.authenticated_user = user;
    net::Response response;
    server_->handle(asked, response);
    EXPECT_EQ(response.status, status) << user;
  }
}

TEST_F(TokensEndpoint, RefusesWhatIsNotAToken) {
  const std::string token = secret();
  std::vector<std::string> wrong{"ceems_pat_",
                                 token + "A",
                                 token.substr(0, 52),
                                 token + " " + token,
                                 "ceems_pat_" + std::string(43, 'A'),
                                 "ceems_pat_" + std::string(42, 'A') + "'",
                                 "ceems_pat_" + std::string(42, 'A') + "\n",
                                 "ceems_pat_" + std::string(std::size_t{64} << 10U, 'A')};
  for (std::size_t at = 10; at < token.size(); at += 7) {  // each differs in one place
    std::string other = token;
    other[at] = other[at] == 'A' ? 'B' : 'A';
    wrong.push_back(other);
  }
  for (const std::string& one : wrong) {
    const int status = with(one, "units?anonymous").status;
    EXPECT_TRUE(status == 401 || status == 429) << one.substr(0, 80) << status;
  }
  EXPECT_EQ(with(token, "units").status, 200);
}

TEST_F(TokensEndpoint, IsRefusedInAnAddress) {
  const std::string token = secret();
  for (const std::string& query : {"access_token=" + token, "token=" + token, token}) {
    const auto response = request("GET", "/api/v1/units?" + query, {{"X-Grafana-User", "ada"}});
    EXPECT_EQ(response.status, 401) << query;
    EXPECT_THAT(response.body, HasSubstr("revoke the one in the address"));
    EXPECT_THAT(response.body, Not(HasSubstr(token)));
  }
  EXPECT_EQ(with(token, "units?token=" + token).status, 401);
  EXPECT_EQ(request("GET", "/api/v1/units?access_token=%63eems_pat_" + token.substr(10)).status,
            401);  // without identity
  EXPECT_THAT(audited(), Not(HasSubstr(token.substr(0, 20))));
}

TEST_F(TokensEndpoint, SlowsDownGuessingButNotGoodTokens) {
  const std::string token = secret();
  const std::string bad = "ceems_pat_" + std::string(43, 'A');
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(with(bad, "units").status, 401);
  }
  const auto limited = with(bad, "units");
  EXPECT_EQ(limited.status, 429);
  EXPECT_EQ(header(limited, "Retry-After"), "900");
  std::set<int> statuses;
  for (int i = 0; i < 60; ++i) {
    const std::string number = std::to_string(100 + i);
    statuses.insert(with("ceems_pat_" + number + std::string(40, 'B'), "units").status);
  }
  EXPECT_EQ(statuses, (std::set<int>{401, 429}));
  EXPECT_EQ(with(token, "units").status, 200);
  clock_.advance(std::chrono::minutes(15));
  EXPECT_EQ(with(bad, "units").status, 401);
  EXPECT_THAT(audited(), HasSubstr(R"("status":429,"reason":"token")"));
}

TEST_F(TokensEndpoint, RefusesBadRequests) {
  const std::string long_name(101, 'x');
  for (const std::string& wish :
       std::vector<std::string>{"",
                                "[]",
                                "null",
                                "{",
                                R"({"scope":"read-own"})",
                                R"({"name":"","scope":"read-own"})",
                                R"({"name":" x","scope":"read-own"})",
                                R"({"name":"a\nb","scope":"read-own"})",
                                R"({"name":"a\u0000b","scope":"read-own"})",
                                R"({"name":"a\u001b[31m","scope":"read-own"})",
                                R"({"name":7,"scope":"read-own"})",
                                "{\"name\":\"\xff\",\"scope\":\"read-own\"}",
                                R"({"name":")" + long_name + R"(","scope":"read-own"})",
                                R"({"name":"x"})",
                                R"({"name":"x","scope":"admin"})",
                                R"({"name":"x","scope":""})",
                                R"({"name":"x","scope":["read-own"]})",
                                R"({"name":"x","scope":"read-own","days":0})",
                                R"({"name":"x","scope":"read-own","days":-1})",
                                R"({"name":"x","scope":"read-own","days":366})",
                                R"({"name":"x","scope":"read-own","days":1.5})",
                                R"({"name":"x","scope":"read-own","days":"9"})",
                                R"({"name":"x","scope":"read-own","days":1e300})",
                                R"({"name":"x","scope":"read-own","days":99999999999999999999})",
                                R"({"name":"x","scope":"read-own","user":"root"})",
                                std::string(5000, ' ') + R"({"name":"x","scope":"read-own"})"}) {
    const auto response = post(wish);
    EXPECT_EQ(response.status, 400) << wish.substr(0, 100) << response.body;
  }
  EXPECT_EQ(text("SELECT id FROM ceems_tokens"), "");
  EXPECT_EQ(made(R"({"name":"<b>'\"é","scope":"read-own","days":365})").at("name"), "<b>'\"é");
}

TEST_F(TokensEndpoint, AreMadeByPagesOfThisServerAndProgramsOnly) {
  EXPECT_EQ(
      post(kGoodWish, net::Headers{{"X-Grafana-User", "ada"}, {"Sec-Fetch-Site", "cross-site"}})
          .status,
      403);
  EXPECT_EQ(
      post(kGoodWish, net::Headers{{"X-Grafana-User", "ada"}, {"Origin", "https://evil.example"}})
          .status,
      403);
  EXPECT_EQ(
      post(kGoodWish, net::Headers{{"X-Grafana-User", "ada"}, {"Sec-Fetch-Site", "same-origin"}})
          .status,
      200);
  net::Request form = request_for("POST", "/api/v1/tokens",
                                  {{"X-Grafana-User", "ada"}, {"Content-Type", "text/plain"}});
  form.body = kGoodWish;
  net::Response response;
  server_->handle(form, response);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(post(kGoodWish, "ceems-int-svc").status, 403);
  EXPECT_EQ(post(kGoodWish, net::Headers{}).status, 401);
}

TEST_F(TokensEndpoint, AreLimitedInNumberAndTime) {
  for (std::size_t i = 0; i < login::Tokens::kMaxPerUser; ++i) {
    static_cast<void>(made(kGoodWish));
  }
  const auto refused = post(kGoodWish);
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(post(kGoodWish, "bob").status, 200);
  start({.tokens = {.max_lifetime = std::chrono::days(30)}});
  EXPECT_EQ(post(R"({"name":"x","scope":"read-own","days":31})", "eve").status, 400);
  EXPECT_EQ(made(kGoodWish, "eve").at("expires_ts"), clock_.now_ms() + 30 * store::kDay);
}

TEST_F(TokensEndpoint, CanBeSwitchedOff) {
  const std::string token = secret();
  make({});
  EXPECT_EQ(post(kGoodWish).status, 404);
  EXPECT_EQ(get("/api/v1/tokens", "ada").status, 404);
  EXPECT_EQ(with(token, "units").status, 401);
  EXPECT_EQ(with(token, "units", {{"X-Grafana-User", "ada"}}).status, 401);
}

TEST_F(TokensEndpoint, LeavesALineInTheAuditForEachChange) {
  const json::value token = made(kGoodWish);
  const std::string id(token.at("id").as_string());
  EXPECT_THAT(audited(), HasSubstr(R"("event":"changed","user":"ada","role":"user")"));
  EXPECT_THAT(audited(), HasSubstr(R"("method":"POST","path":"/api/v1/tokens","status":200,)"
                                   R"("reason":"token_made","endpoint":["tokens"],)"
                                   R"("of_user":["ada"],"token":[")" +
                                   id + R"("])"));
  EXPECT_EQ(revoke("tokens/admin?id=" + id, "root").status, 200);
  EXPECT_THAT(audited(), HasSubstr(R"("event":"changed","user":"root","role":"admin")"));
  EXPECT_THAT(audited(), HasSubstr(R"("reason":"token_revoked","endpoint":["tokens/admin"],)"
                                   R"("of_user":["ada"])"));
  EXPECT_EQ(with(std::string(token.at("token").as_string()), "units").status, 401);
  EXPECT_THAT(audited(), HasSubstr(R"("event":"denied","user":"")"));
  EXPECT_THAT(audited(), HasSubstr(R"("status":401,"reason":"token","endpoint":["units"])"));
  EXPECT_THAT(audited(), Not(HasSubstr("ceems_pat_")));
}

}  // namespace
}  // namespace ceems::api
