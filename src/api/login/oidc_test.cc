#include "api/login/oidc.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/login/fake_provider.h"
#include "api/login/sign_in.h"
#include "api/test_request.h"
#include "crypto/base64.h"
#include "store/test_database.h"

namespace ceems::api::login {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::int64_t kLoginTime = store::kNow / 1000;
constexpr std::string_view kCallback = "https://ceems.example/login/callback";
const std::string kDiscovery = "/.well-known/openid-configuration";

/// A browser between a SignIn and a provider.
class OidcTest : public store::AnyDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(AnyDatabase::SetUp());
    options_.header = false;
    options_.oidc = OidcOptions{.name = "Example <SSO>",
                                .issuer = provider_.issuer(),
                                .client_id = "ceems",
                                .groups_claim = "groups",
                                .admin_groups = {"ops"},
                                .support_groups = {"desk"}};
    make();
  }

  void make() {
    auto made = SignIn::create(
        options_, {.external_url = "https://ceems.example", .data_directory = dir_.path().string()},
        db_->reader(), clock_);
    ASSERT_TRUE(made) << made.error().message;
    sign_in_ = std::move(*made);
  }

  net::Request request(const std::string& target) {
    net::Request made = request_for("GET", target);
    send_cookies(cookies_, made);
    return made;
  }

  net::Response visit(const std::string& target) {
    const net::Request asked = request(target);
    EXPECT_TRUE(sign_in_->has_page("GET", asked.path));
    net::Response response;
    sign_in_->answer_page(asked.path, asked, response);
    keep_cookies(response, cookies_);
    return response;
  }

  static std::string location(const net::Response& response) {
    const std::string* value = net::find_header(response.headers, "Location");
    return value == nullptr ? "" : *value;
  }
  static std::string state_in(const std::string& url) {
    for (const auto& [name, value] : net::parse_query(url.substr(url.find('?') + 1))) {
      if (name == "state") {
        return value;
      }
    }
    return {};
  }

  /// Goes to the provider; gives the address that leads back.
  std::string come_back(const std::string& next = "") {
    const auto away = visit("/login/oidc" + (next.empty() ? "" : "?next=" + net::url_encode(next)));
    EXPECT_EQ(away.status, 303) << away.body;
    const std::string url = location(away);
    return "/login/callback?state=" + state_in(url) + "&code=" + provider_.code_for(url);
  }

  net::Response log_in() { return visit(come_back()); }

  access::Identity who() {
    net::Response response;
    return sign_in_->identify(request("/api/v1/units"), response).value();
  }

  FakeProvider provider_{kLoginTime};
  LoginOptions options_;
  std::unique_ptr<SignIn> sign_in_;
  Cookies cookies_;
};

TEST_F(OidcTest, ALoginGoesToTheProviderAndComesBackAsTheUser) {
  const auto away = visit("/login/oidc?next=/ui/");
  EXPECT_THAT(location(away),
              AllOf(StartsWith(provider_.issuer() + "/authorize?tenant=a&response_type=code"),
                    HasSubstr("code_challenge_method=S256"), HasSubstr("scope=openid%20profile"),
                    HasSubstr("redirect_uri=" + net::url_encode(kCallback))));
  const auto back = visit("/login/callback?state=" + state_in(location(away)) +
                          "&code=" + provider_.code_for(location(away)));
  EXPECT_EQ(back.status, 303) << back.body;
  EXPECT_EQ(location(back), "/ui/");
  EXPECT_TRUE(cookies_.contains("__Host-ceems_session"));
  EXPECT_FALSE(cookies_.contains("__Host-ceems_oidc"));
  EXPECT_EQ(who().user, "ada");
  EXPECT_EQ(who().role, access::Role::kUser);
}

TEST_F(OidcTest, GroupsGiveRoles) {
  provider_.set_claim("groups", R"(["x","desk"])");
  log_in();
  EXPECT_EQ(who().role, access::Role::kSupport);
  provider_.set_claim("groups", R"(["ops","desk"])");
  log_in();
  EXPECT_EQ(who().role, access::Role::kAdmin);
  // What groups mean has changed: sessions from before are over.
  options_.oidc->admin_groups = {"other"};
  make();
  EXPECT_EQ(who().role, access::Role::kNobody);
}

TEST_F(OidcTest, TheSecretGoesIntoTheHeader) {
  options_.oidc->client_secret_file = dir_.write("secret", "p:w%\n").string();
  make();
  EXPECT_EQ(log_in().status, 303);
  EXPECT_EQ(provider_.last_authorization(), "Basic " + crypto::base64_encode("ceems:p%3Aw%25"));
}

TEST_F(OidcTest, AStateIsValidOnceInTheBrowserThatStarted) {
  const std::string back = come_back();
  const auto kept = cookies_;
  EXPECT_EQ(visit(back).status, 303);
  // The same address again, with the cookie restored.
  cookies_ = kept;
  EXPECT_EQ(visit(back).status, 403);
  // In another browser, and with another login's state (login CSRF).
  const std::string victim = come_back();
  cookies_.clear();
  EXPECT_EQ(visit(victim).status, 403);
  come_back();
  EXPECT_EQ(visit(victim).status, 403);
  EXPECT_FALSE(cookies_.contains("__Host-ceems_session"));
  EXPECT_EQ(who().role, access::Role::kNobody);
}

TEST_F(OidcTest, AStateExpiresWithTimeAndWhenTheClockStepsBack) {
  const std::string late = come_back();
  clock_.advance(std::chrono::minutes(11));
  EXPECT_EQ(visit(late).status, 403);
  const std::string early = come_back();
  clock_.step_to(clock_.now() - std::chrono::hours(1));
  EXPECT_EQ(visit(early).status, 403);
  EXPECT_EQ(who().role, access::Role::kNobody);
}

TEST_F(OidcTest, BadTokensAreRefused) {
  // Claim, wrong value, right value.
  const std::vector<std::array<std::string, 3>> claims{
      {"iss", R"("https://evil.example")", "\"" + provider_.issuer() + "\""},
      {"aud", R"("other")", R"("ceems")"},
      {"exp", std::to_string(kLoginTime - 600), ""},
      {"exp", "", std::to_string(kLoginTime + 300)},
      {"preferred_username", R"("ceems-int-svc")", R"("ada")"},
      {"nonce", R"("x")", ""}};
  for (const auto& [name, wrong, right] : claims) {
    provider_.set_claim(name, wrong);
    const auto response = log_in();
    EXPECT_EQ(response.status, 403) << name;
    EXPECT_THAT(response.body, AllOf(HasSubstr("The login was refused."), Not(HasSubstr("evil"))));
    EXPECT_EQ(who().role, access::Role::kNobody);
    provider_.set_claim(name, right);
  }
  provider_.forget_claim("nonce");
  EXPECT_EQ(log_in().status, 303);
  cookies_.clear();
  provider_.sign_wrongly(true);
  EXPECT_EQ(log_in().status, 403);
  provider_.sign_wrongly(false);
  provider_.set_header(R"({"alg":"none"})");
  EXPECT_EQ(log_in().status, 403);
  provider_.set_header(R"({"alg":"HS256","kid":"k0"})");
  EXPECT_EQ(log_in().status, 403);
  EXPECT_EQ(who().role, access::Role::kNobody);
}

TEST_F(OidcTest, NewKeysAreFetchedButNotForEveryUnknownId) {
  EXPECT_EQ(log_in().status, 303);
  EXPECT_EQ(provider_.asked("/keys"), 1);
  provider_.rotate();
  clock_.advance(std::chrono::seconds(40));
  EXPECT_EQ(log_in().status, 303);
  EXPECT_EQ(provider_.asked("/keys"), 2);
  provider_.set_header(R"({"alg":"RS256","kid":"strange"})");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(log_in().status, 403);
  }
  EXPECT_EQ(provider_.asked("/keys"), 2);
  EXPECT_EQ(provider_.asked(kDiscovery), 1);
}

TEST_F(OidcTest, AFailedProviderIsNotAskedAgainAtOnce) {
  provider_.break_path(kDiscovery, 500);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(visit("/login/oidc").status, 503);
  }
  EXPECT_EQ(provider_.asked(kDiscovery), 1);
  clock_.advance(std::chrono::seconds(11));
  provider_.break_path(kDiscovery, 0);
  EXPECT_EQ(log_in().status, 303);
}

TEST_F(OidcTest, RefusalsDoNotShowTheTextOfTheProvider) {
  const auto away = visit("/login/oidc");
  const auto back = visit("/login/callback?state=" + state_in(location(away)) +
                          "&error=access_denied&error_description=%3Cscript%3E");
  EXPECT_EQ(back.status, 403);
  EXPECT_THAT(back.body, Not(HasSubstr("script")));
  const auto again = visit("/login/oidc");
  EXPECT_EQ(visit("/login/callback?state=" + state_in(location(again)) + "&code=invented").status,
            403);
  provider_.break_path("/token", 502);
  EXPECT_EQ(log_in().status, 503);
}

TEST_F(OidcTest, NextStaysOnThisServer) {
  for (const std::string next : {"//evil.example", "https://evil.example/", "/\\evil"}) {
    EXPECT_EQ(location(visit(come_back(next))), "/") << next;
  }
}

TEST_F(OidcTest, ThePageNamesTheProviderAsText) {
  const auto page = visit("/login");
  EXPECT_THAT(page.body,
              AllOf(HasSubstr("Sign in with Example &lt;SSO&gt;"), Not(HasSubstr("<form"))));
}

TEST_F(OidcTest, ARedirectUrlIsRequired) {
  const auto made =
      SignIn::create(options_, {.data_directory = dir_.path().string()}, db_->reader(), clock_);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("redirect_url"));
}

}  // namespace
}  // namespace ceems::api::login
