#include "api/login/sign_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server.h"
#include "api/test_request.h"
#include "crypto/base64.h"
#include "store/test_database.h"

namespace ceems::api::login {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Of "correct horse" and "other", at the lowest cost.
constexpr std::string_view kHash = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e";
constexpr std::string_view kOtherHash =
    "$2b$04$zbcdefghijklmnopqrstuuh0YGVY8iawwcMGvF8QMhjZ4kINk7Yyi";
constexpr std::string_view kKey = "0123456789abcdef0123456789abcdef";

class SignInTest : public store::AnyDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root", "ceems-int-svc"}));
    write_users({{"ada", kHash}, {"root", kHash}, {"ceems-int-svc", kHash}});
    std::filesystem::permissions(dir_.write("key", kKey), std::filesystem::perms(0600));
    options_.session_key_file = (dir_.path() / "key").string();
    options_.local = LocalOptions{.users_file = (dir_.path() / "users.yml").string()};
    options_.trusted_proxies = net::TrustedPeers{};
    options_.trusted_proxies->ranges.push_back(*net::Cidr::parse("10.0.0.0/8"));
    make();
  }

  void write_users(const std::vector<std::pair<std::string_view, std::string_view>>& users) {
    std::string text = "basic_auth_users:\n";
    for (const auto& [name, hash] : users) {
      text += fmt::format("  {}: {}\n", name, hash);
    }
    dir_.write("users.yml", text);
  }

  void make(Deployment deployment = {}) {
    server_.reset();
    auto made = SignIn::create(options_, std::move(deployment), db_->reader(), clock_);
    ASSERT_TRUE(made) << made.error().message;
    sign_in_ = std::move(*made);
    auto server =
        ApiServer::create({.sign_in = sign_in_.get()}, db_->reader(), nullptr, registry_, clock_);
    ASSERT_TRUE(server);
    server_ = std::move(*server);
  }

  net::Response ask(const std::string& method,
                    const std::string& target,
                    net::Headers headers = {},
                    const std::string& body = {}) {
    net::Request request = request_for(method, target, std::move(headers));
    send_cookies(cookies_, request);
    request.body = body;
    request.remote_address = peer_;
    net::Response response;
    server_->handle(request, response);
    keep_cookies(response, cookies_);
    return response;
  }

  std::string token() {
    const std::string body = ask("GET", "/api/v1/whoami").body;
    const std::string key = R"("token":")";
    const auto at = body.find(key);
    EXPECT_NE(at, std::string::npos) << body;
    return body.substr(at + key.size(), body.find('"', at + key.size()) - at - key.size());
  }

  net::Response log_in(const std::string& user,
                       const std::string& password,
                       const std::string& next = "",
                       net::Headers headers = {}) {
    headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    return ask("POST", "/login", std::move(headers),
               "token=" + token() + "&user=" + net::url_encode(user) +
                   "&password=" + net::url_encode(password) + "&next=" + net::url_encode(next));
  }

  static std::string header(const net::Response& response, std::string_view name) {
    const std::string* value = net::find_header(response.headers, name);
    return value == nullptr ? "(none)" : *value;
  }
  std::string me() { return ask("GET", "/api/v1/whoami").body; }

  LoginOptions options_;
  std::unique_ptr<SignIn> sign_in_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
  std::unique_ptr<ApiServer> server_;
  Cookies cookies_;
  std::string peer_ = "192.0.2.1";
};

TEST_F(SignInTest, AnonymousCallersGetTheLoginMethods) {
  const auto response = ask("GET", "/api/v1/whoami");
  EXPECT_EQ(response.status, 401);
  EXPECT_THAT(response.body,
              StartsWith(R"({"status":"error","errorType":"unauthorized",)"
                         R"("error":"no user identified","login":{"header":null,"local":true,)"
                         R"("oidc":null,"token":")"));
  EXPECT_THAT(response.body, EndsWith("\"},\"data\":null}\n"));
  EXPECT_EQ(ask("GET", "/api/v1/units").body, R"({"status":"error","errorType":"unauthorized",)"
                                              R"("error":"no user identified","data":null})"
                                              "\n");
}

TEST_F(SignInTest, ALoginGivesASessionAndLogoutEndsIt) {
  const auto response = log_in("ada", "correct horse", "/ui/#/unit/a/1");
  EXPECT_EQ(response.status, 303);
  EXPECT_EQ(header(response, "Location"), "/ui/#/unit/a/1");
  EXPECT_THAT(header(response, "Set-Cookie"),
              AllOf(StartsWith("ceems_session="), HasSubstr("; Path=/;"), HasSubstr("HttpOnly"),
                    HasSubstr("SameSite=Lax"), Not(HasSubstr("Secure"))));
  EXPECT_THAT(me(), HasSubstr(R"("user":"ada","admin":false,"role":"user","via":"local")"));
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/units/admin").status, 403);

  const std::string stolen = cookies_["ceems_session"];
  const auto out = ask("POST", "/logout", {{"Content-Type", "application/x-www-form-urlencoded"}},
                       "token=" + token());
  EXPECT_EQ(out.status, 303);
  EXPECT_FALSE(cookies_.contains("ceems_session"));
  cookies_["ceems_session"] = stolen;
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
}

TEST_F(SignInTest, AdminsAreAdminsWithEveryLoginMethod) {
  log_in("root", "correct horse");
  EXPECT_THAT(me(), HasSubstr(R"("admin":true,"role":"admin")"));
  EXPECT_EQ(ask("GET", "/api/v1/units/admin").status, 200);
}

TEST_F(SignInTest, WrongNamesAndPasswordsLookTheSame) {
  const auto wrong = log_in("ada", "wrong");
  const auto unknown = log_in("nobody", "correct horse");
  const auto empty = log_in("", "");
  for (const auto& response : {wrong, unknown, empty}) {
    EXPECT_EQ(response.status, 401);
    EXPECT_THAT(response.body, HasSubstr("User name or password is wrong."));
    EXPECT_FALSE(cookies_.contains("ceems_session"));
  }
  EXPECT_EQ(log_in("ada", std::string("correct horse\0x", 15)).status, 401);
  EXPECT_EQ(log_in("ada ", "correct horse").status, 401);
  // The account of other programs is not for people.
  EXPECT_EQ(log_in("ceems-int-svc", "correct horse").status, 401);
}

TEST_F(SignInTest, GuessingIsSlowedDownPerUserAndAddress) {
  for (int i = 0; i < Attempts::kPerUser; ++i) {
    EXPECT_EQ(log_in("ada", "wrong").status, 401);
  }
  const auto late = log_in("ada", "correct horse");
  EXPECT_EQ(late.status, 429);
  EXPECT_EQ(header(late, "Retry-After"), "900");
  peer_ = "192.0.2.2";
  EXPECT_EQ(log_in("ada", "correct horse").status, 303);
}

TEST_F(SignInTest, InvalidNamesAreCountedTogether) {
  for (int i = 0; i < Attempts::kPerUser; ++i) {
    EXPECT_EQ(log_in(std::string(300, static_cast<char>('a' + i)), "wrong").status, 401);
  }
  EXPECT_EQ(log_in(std::string(300, 'z'), "wrong").status, 429);
  EXPECT_EQ(log_in("ada", "correct horse").status, 303);
}

TEST_F(SignInTest, TheLoginMethodsNameTheSite) {
  make({.site_name = "\"<Centre>\""});
  EXPECT_THAT(ask("GET", "/api/v1/whoami").body,
              HasSubstr(R"("oidc":null,"site":"\"\u003cCentre\u003e\"","token":")"));
}

TEST_F(SignInTest, BehindATrustedProxyTheClientIsCountedNotTheProxy) {
  peer_ = "10.0.0.1";
  for (int i = 0; i < Attempts::kPerUser; ++i) {
    log_in("ada", "wrong", "", {{"X-Forwarded-For", "1.2.3.4, 198.51.100.7"}});
  }
  EXPECT_EQ(log_in("ada", "x", "", {{"X-Forwarded-For", "9.9.9.9, 198.51.100.7"}}).status, 429);
  EXPECT_EQ(log_in("ada", "correct horse", "", {{"X-Forwarded-For", "198.51.100.8"}}).status, 303);
}

TEST_F(SignInTest, NextStaysOnThisServer) {
  for (const std::string next : {"//evil.example", "https://evil.example", "/\\evil", "/a\r\nX: y",
                                 "javascript:alert(1)", ""}) {
    cookies_.clear();
    const auto response = log_in("ada", "correct horse", next);
    EXPECT_EQ(response.status, 303);
    EXPECT_EQ(header(response, "Location"), "/") << next;
  }
  const auto page = ask("GET", "/login?next=%2F%2Fevil.example%22%3E%3Cscript%3E");
  EXPECT_THAT(page.body, Not(HasSubstr("evil")));
}

TEST_F(SignInTest, TheLoginPageIsAFormWithAToken) {
  const auto page = ask("GET", "/login?next=/ui/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(HasSubstr(R"(<label for="user">)"), HasSubstr(R"(value="/ui/")"),
                               HasSubstr(token()), HasSubstr(R"(action="/login")")));
  EXPECT_THAT(header(page, "Content-Security-Policy"),
              AllOf(HasSubstr("default-src 'none'"), HasSubstr("frame-ancestors 'none'")));
  EXPECT_EQ(header(page, "Cache-Control"), "no-store");
}

TEST_F(SignInTest, FormsOfOtherSitesAndBrowsersAreRefused) {
  const std::string good = token();
  const std::string form = "&user=ada&password=correct+horse";
  const net::Headers type{{"Content-Type", "application/x-www-form-urlencoded"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    net::Headers headers = type;
    headers.emplace_back(name, value);
    return ask("POST", "/login", headers, "token=" + good + form).status;
  };
  EXPECT_EQ(with("Sec-Fetch-Site", "cross-site"), 403);
  EXPECT_EQ(with("Origin", "https://evil.example"), 403);
  EXPECT_EQ(ask("POST", "/login", type, "token=" + form).status, 403);
  EXPECT_EQ(ask("POST", "/login", type, "token=AAAA" + form).status, 403);
  EXPECT_EQ(ask("POST", "/login", {}, "token=" + good + form).status, 400);
  EXPECT_EQ(ask("POST", "/login", {{"Content-Type", "text/plain"}}, "token=" + good + form).status,
            400);
  EXPECT_EQ(ask("POST", "/login", type, "token=" + good + form + std::string(9000, 'x')).status,
            400);
  cookies_.clear();  // another browser
  EXPECT_EQ(ask("POST", "/login", type, "token=" + good + form).status, 403);
  EXPECT_EQ(ask("POST", "/logout", type, "token=" + good).status, 403);
}

TEST_F(SignInTest, ScriptsGetJson) {
  const auto bad = log_in("ada", "wrong", "", {{"Accept", "application/json"}});
  EXPECT_EQ(bad.status, 401);
  EXPECT_EQ(bad.body, R"({"status":"error","errorType":"unauthorized",)"
                      R"("error":"User name or password is wrong.","data":null})"
                      "\n");
  const auto good = log_in("ada", "correct horse", "", {{"Accept", "application/json"}});
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.body, "{\"status\":\"success\",\"data\":null}\n");
  EXPECT_TRUE(cookies_.contains("ceems_session"));
}

TEST_F(SignInTest, TamperedSessionsAreRejected) {
  log_in("ada", "correct horse");
  const std::string good = cookies_["ceems_session"];
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  const auto dot = good.find('.');
  const std::string as_root = good.substr(0, dot + 1) + crypto::base64url_encode("root") +
                              good.substr(good.find('.', dot + 1));
  for (const std::string& bad : {as_root, good + "A", good.substr(1), std::string("x"),
                                 std::string(), std::string(5000, 'A')}) {
    cookies_["ceems_session"] = bad;
    EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
  }
  // A cookie of the same name that a neighbour put in front does no harm.
  cookies_.clear();
  EXPECT_EQ(
      ask("GET", "/api/v1/units", {{"Cookie", "ceems_session=x; ceems_session=" + good}}).status,
      200);
}

TEST_F(SignInTest, ManyBadCookiesDoNotShutOutTheGoodOne) {
  log_in("ada", "correct horse");
  const std::string good = cookies_["ceems_session"];
  cookies_.clear();
  std::string line;
  for (int i = 0; i < 9; ++i) {
    line += "ceems_session=" + good + "x; ";
  }
  for (int i = 0; i < 1000; ++i) {
    line += "ceems_session=x; ";
  }
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"Cookie", line + "ceems_session=" + good}}).status, 200);
}

TEST_F(SignInTest, CookiesOfAnHttpsSiteCannotComeFromNeighbours) {
  make({.external_url = "https://h.example"});
  const auto response = log_in("ada", "correct horse");
  EXPECT_THAT(header(response, "Set-Cookie"), AllOf(StartsWith("__Host-ceems_session="),
                                                    HasSubstr("; Path=/;"), EndsWith("; Secure")));
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  const std::string good = cookies_["__Host-ceems_session"];
  cookies_.clear();
  // A neighbour below the same domain may set a cookie without the prefix.
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"Cookie", "ceems_session=" + good}}).status, 401);
}

TEST_F(SignInTest, TwoUserHeadersAreRefusedEvenWithASession) {
  log_in("ada", "correct horse");
  peer_ = "10.0.0.1";
  const net::Headers twice{{"X-Grafana-User", "ada"}, {"x-grafana-user", "root"}};
  EXPECT_EQ(ask("GET", "/api/v1/units", twice).status, 401);
  EXPECT_EQ(
      ask("GET", "/api/v1/units", {{"X-Grafana-User", ""}, {"X-Grafana-User", "root"}}).status,
      401);
  EXPECT_EQ(ask("GET", "/api/v1/whoami", twice).status, 401);
}

TEST_F(SignInTest, NamesInTheHeaderAreMapped) {
  const auto named = [this](const std::string& login) {
    return ask("GET", "/api/v1/whoami", {{"X-Grafana-User", login}}).body;
  };
  peer_ = "10.0.0.1";
  EXPECT_THAT(named("Ada@uni.example"), HasSubstr(R"("user":"Ada@uni.example")"));
  options_.names =
      config::NameMap::read(
          config::parse_yaml("{lower_case: true, strip_mail: [uni.example]}", "c.yml").value(), "",
          "ceems-int-svc")
          .value();
  make();
  EXPECT_THAT(named("Ada@uni.example"), HasSubstr(R"("user":"ada")"));
  EXPECT_THAT(named("ROOT"), HasSubstr(R"("user":"root","admin":true)"));
  EXPECT_THAT(named("CEEMS-INT-SVC"), HasSubstr(R"("admin":false)"));
}

TEST_F(SignInTest, TheServiceAccountNeedsACredentialOfItsOwn) {
  const net::Headers named{{"X-Grafana-User", "ceems-int-svc"}};
  const std::string token = "0123456789abcdef0123456789abcdef";
  const auto with = [&](const std::string& text, const std::string& user) {
    net::Headers headers{{"X-Ceems-Service-Token", text}};
    if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", user);
    }
    return ask("GET", "/api/v1/users/admin?role=admin", headers).status;
  };
  peer_ = "10.0.0.1";  // Grafana, where people choose their names
  EXPECT_EQ(ask("GET", "/api/v1/users/admin?role=admin", named).status, 401);
  EXPECT_EQ(with(token, "ceems-int-svc"), 401);
  EXPECT_EQ(with("", ""), 401);

  std::filesystem::permissions(dir_.write("token", token + "\n"), std::filesystem::perms(0600));
  options_.service_account =
      ServiceAccountOptions{.web_user = "lb", .token_file = (dir_.path() / "token").string()};
  make();
  peer_ = "192.0.2.1";
  EXPECT_EQ(with(token, ""), 200);
  EXPECT_EQ(with(token, "root"), 200);
  EXPECT_EQ(with(token, "ada"), 403);
  EXPECT_EQ(with(token, "ceems-int-svc"), 401);
  EXPECT_EQ(with(token + "x", ""), 401);
  EXPECT_EQ(with("", ""), 401);
  EXPECT_THAT(
      ask("GET", "/api/v1/whoami", {{"X-Ceems-Service-Token", token}}).body,
      HasSubstr(R"("user":"ceems-int-svc","admin":true,"role":"admin","via":"service_acc)"));
  net::Request request = request_for("GET", "/api/v1/users/admin?role=admin", {});
  request.authenticated_user = "lb";
  net::Response response;
  server_->handle(request, response);
  EXPECT_EQ(response.status, 200);
  // By default the name alone is enough, as in the reference.
  options_ = {};
  make();
  EXPECT_EQ(ask("GET", "/api/v1/users/admin?role=admin", named).status, 200);
  dir_.write("token", "short");
  options_.service_account = ServiceAccountOptions{.token_file = (dir_.path() / "token").string()};
  EXPECT_FALSE(SignIn::create(options_, {}, db_->reader(), clock_));
}

TEST_F(SignInTest, ThePageLearnsTheWaysToLogInWithoutAnError) {
  const auto response = ask("GET", "/api/v1/whoami?anonymous=true");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body,
              StartsWith(R"({"status":"success","data":[],"login":{"header":null,"local":true,)"));
}

TEST_F(SignInTest, SessionsEndByTimeAndAreRenewedInUse) {
  options_.session = {.idle = std::chrono::hours(1), .absolute = std::chrono::hours(3)};
  make();
  log_in("ada", "correct horse");
  const std::string first = cookies_["ceems_session"];
  clock_.advance(std::chrono::minutes(5));
  ask("GET", "/api/v1/units");
  EXPECT_EQ(cookies_["ceems_session"], first);
  for (int i = 0; i < 3; ++i) {
    clock_.advance(std::chrono::minutes(50));
    EXPECT_EQ(ask("GET", "/api/v1/units").status, 200) << i;
  }
  EXPECT_NE(cookies_["ceems_session"], first);
  clock_.advance(std::chrono::minutes(30));  // in use all the time, but too old
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
  cookies_["ceems_session"] = first;
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
}

TEST_F(SignInTest, AClockThatIsSetBackEndsSessions) {
  log_in("ada", "correct horse");
  clock_.step_to(clock_.now() - std::chrono::hours(2));
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
}

TEST_F(SignInTest, RemovalOrANewPasswordEndsSessions) {
  log_in("ada", "correct horse");
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  write_users({{"ada", kHash}, {"bob", kOtherHash}});
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  write_users({{"ada", kOtherHash}});
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
  EXPECT_EQ(log_in("ada", "other").status, 303);
  write_users({{"bob", kOtherHash}});
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
}

TEST_F(SignInTest, ABrokenUsersFileRevokesNobody) {
  log_in("ada", "correct horse");
  dir_.write("users.yml", "basic_auth_users: [");
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  std::filesystem::remove(dir_.path() / "users.yml");
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
}

TEST_F(SignInTest, ServersWithTheSameKeyShareSessions) {
  log_in("ada", "correct horse");
  make();  // another process
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 200);
  std::filesystem::permissions(dir_.write("key2", std::string(32, 'x')),
                               std::filesystem::perms(0600));
  options_.session_key_file = (dir_.path() / "key2").string();
  make();
  EXPECT_EQ(ask("GET", "/api/v1/units").status, 401);
}

TEST_F(SignInTest, AHeaderCountsFromTrustedPeersOnly) {
  const net::Headers named{{"X-Grafana-User", "root"}};
  EXPECT_EQ(ask("GET", "/api/v1/units/admin", named).status, 401);
  peer_ = "10.1.2.3";
  EXPECT_EQ(ask("GET", "/api/v1/units/admin", named).status, 200);
  peer_ = "unix";
  EXPECT_EQ(ask("GET", "/api/v1/units/admin", named).status, 200);
  peer_ = "::ffff:10.1.2.3";
  EXPECT_EQ(ask("GET", "/api/v1/units/admin", named).status, 200);
}

TEST_F(SignInTest, AnUntrustedHeaderIsRefusedEvenWithASession) {
  log_in("ada", "correct horse");
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"X-Grafana-User", "root"}}).status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"X-Grafana-User", ""}}).status, 200);
  peer_ = "10.0.0.1";  // a trusted peer's word comes before a session
  EXPECT_THAT(ask("GET", "/api/v1/whoami", {{"X-Grafana-User", "bob"}}).body,
              HasSubstr(R"("user":"bob","admin":false,"role":"user","via":"header")"));
}

TEST_F(SignInTest, AProxyThatSharesItsHostProvesItselfByAToken) {
  const std::string token = "0123456789abcdef0123456789abcdef";
  std::filesystem::permissions(dir_.write("proxy", token + "\n"), std::filesystem::perms(0600));
  options_.proxy_token_file = (dir_.path() / "proxy").string();
  make();
  const auto as_root = [&](const std::string& peer, const net::Headers& more) {
    peer_ = peer;
    net::Headers headers{{"X-Grafana-User", "root"}};
    headers.insert(headers.end(), more.begin(), more.end());
    return ask("GET", "/api/v1/units/admin", headers).status;
  };
  EXPECT_EQ(as_root("10.0.0.1", {{"x-ceems-proxy-token", token}}), 200);
  EXPECT_EQ(as_root("unix", {{"X-Ceems-Proxy-Token", token}}), 200);
  // The peer or the token alone is not enough, and a token alone names no user.
  EXPECT_EQ(as_root("10.0.0.1", {}), 401);
  EXPECT_EQ(as_root("unix", {}), 401);
  EXPECT_EQ(as_root("192.0.2.1", {{"X-Ceems-Proxy-Token", token}}), 401);
  for (const std::string& wrong : {std::string(), token + "x", token.substr(1)}) {
    EXPECT_EQ(as_root("10.0.0.1", {{"X-Ceems-Proxy-Token", wrong}}), 401) << wrong;
  }
  EXPECT_EQ(as_root("10.0.0.1", {{"X-Ceems-Proxy-Token", "x"}, {"X-Ceems-Proxy-Token", token}}),
            401);
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"X-Ceems-Proxy-Token", token}}).status, 401);
  dir_.write("proxy", "short");
  EXPECT_FALSE(SignIn::create(options_, {}, db_->reader(), clock_));
}

TEST_F(SignInTest, ADisabledHeaderIsIgnored) {
  options_.header = false;
  make();
  peer_ = "10.0.0.1";
  EXPECT_EQ(ask("GET", "/api/v1/units", {{"X-Grafana-User", "root"}}).status, 401);
  log_in("ada", "correct horse");
  EXPECT_THAT(ask("GET", "/api/v1/whoami", {{"X-Grafana-User", "root"}}).body,
              HasSubstr(R"("user":"ada")"));
}

TEST_F(SignInTest, WithoutConfigurationHeadersNameUsers) {
  options_ = {};
  make();
  EXPECT_EQ(ask("GET", "/login").status, 404);
  EXPECT_EQ(ask("POST", "/logout").status, 404);
  EXPECT_EQ(ask("GET", "/login/oidc").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/units/admin", {{"X-Grafana-User", "root"}}).status, 200);
  EXPECT_THAT(me(), HasSubstr(R"("login":{"header":"X-Grafana-User","local":false,"oidc":null)"));
  EXPECT_TRUE(cookies_.empty());
  // And no key lies about.
  EXPECT_FALSE(std::filesystem::exists(dir_.path() / "ceems-session.key"));
}

TEST_F(SignInTest, CookiesBelongToTheAddressThatBrowsersSee) {
  make({.route_prefix = "/", .external_url = "https://h.example/ceems/"});
  const auto response = log_in("ada", "correct horse");
  EXPECT_THAT(header(response, "Set-Cookie"),
              AllOf(HasSubstr("Path=/ceems/;"), EndsWith("; Secure")));
  EXPECT_EQ(header(response, "Location"), "/ceems/");
}

TEST_F(SignInTest, RemovedPagesAndMethodsAre404) {
  EXPECT_EQ(ask("GET", "/logout").status, 404);
  EXPECT_EQ(ask("PUT", "/login").status, 404);
  EXPECT_EQ(ask("GET", "/login/callback").status, 404);
  EXPECT_EQ(ask("GET", "/login/").status, 404);
}

TEST(ExpiringSetTest, IsBoundedAndDropsWhatExpiresFirst) {
  ExpiringSet remembered(3);
  EXPECT_TRUE(remembered.add("a", 10, 0));
  EXPECT_FALSE(remembered.add("a", 10, 0));
  EXPECT_TRUE(remembered.add("b", 5, 0));
  EXPECT_TRUE(remembered.add("c", 20, 0));
  EXPECT_TRUE(remembered.add("d", 20, 0));
  EXPECT_FALSE(remembered.contains("b"));
  EXPECT_TRUE(remembered.contains("a"));
  EXPECT_TRUE(remembered.add("e", 30, 15));
  EXPECT_FALSE(remembered.contains("a"));
  EXPECT_TRUE(remembered.contains("d"));
}

}  // namespace
}  // namespace ceems::api::login
