#include "api/login/config.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/login/key_file.h"
#include "api/login/local_users.h"
#include "testing/temp_dir.h"

namespace ceems::api::login {
namespace {

using ::testing::HasSubstr;

Result<LoginOptions> login_of(const std::string& text,
                              std::vector<std::string>* warnings = nullptr) {
  CEEMS_TRY(document, config::parse_yaml(text, "c.yml"));
  std::vector<std::string> said;
  auto options = parse_login(document["identity"], document["roles"], "/etc/ceems", said);
  if (warnings != nullptr) {
    *warnings = said;
  }
  return options;
}

std::string login_complaint(const std::string& text) {
  const auto options = login_of(text);
  return options ? "accepted" : options.error().message;
}

TEST(LoginConfig, ByDefaultEveryPeerMayNameUsers) {
  const auto options = login_of("{}");
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->header);
  EXPECT_FALSE(options->trusted_proxies);
  EXPECT_FALSE(options->has_sessions());
  EXPECT_TRUE(options->roles.support.empty());
}

TEST(LoginConfig, TheServiceAccountIsGuardedUnlessNothingIsConfigured) {
  EXPECT_FALSE(login_of("{}")->guards_service_account());
  EXPECT_FALSE(login_of("identity: {header: {enabled: true}}")->guards_service_account());
  for (const char* text :
       {"identity: {header: {trusted_proxies: []}}",
        "identity: {header: {enabled: false}, local: {users_file: u}}",
        "identity: {header: {enabled: false}}", "identity: {service_account: {web_user: lb}}"}) {
    const auto options = login_of(text);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_TRUE(options->guards_service_account()) << text;
  }
  const auto options = login_of("identity: {service_account: {web_user: lb, token_file: t}}");
  EXPECT_EQ(options->service_account->web_user, "lb");
  EXPECT_EQ(options->service_account->token_file, "/etc/ceems/t");
  EXPECT_THAT(login_complaint("identity: {service_account: {}}"), HasSubstr("c.yml:1"));
  EXPECT_THAT(login_complaint("identity: {service_account: {token: t}}"), HasSubstr("unknown key"));
}

TEST(LoginConfig, AProxyTokenIsBesideTheAddresses) {
  const auto options =
      login_of("identity: {header: {trusted_proxies: [10.0.0.1], proxy_token_file: p}}");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->proxy_token_file, "/etc/ceems/p");
  EXPECT_THAT(login_complaint("identity: {header: {proxy_token_file: p}}"),
              HasSubstr("set trusted_proxies, too"));
}

TEST(LoginConfig, TokensAreOffWhileEveryPeerMayNameUsers) {
  EXPECT_FALSE(login_of("{}")->offers_tokens());
  EXPECT_FALSE(login_of("identity: {tokens: {max_lifetime: 30d}}")->offers_tokens());
  EXPECT_TRUE(login_of("identity: {header: {trusted_proxies: []}}")->offers_tokens());
  EXPECT_TRUE(login_of("identity: {header: {enabled: false}}")->offers_tokens());
  EXPECT_FALSE(
      login_of("identity: {header: {enabled: false}, tokens: {enabled: false}}")->offers_tokens());
  EXPECT_THAT(login_complaint("identity: {tokens: {enabled: true}}"),
              HasSubstr("anybody could make tokens of anybody"));
}

TEST(LoginConfig, TokensHaveLimits) {
  const auto limits = [](const std::string& keys) {
    return login_of("identity: {tokens: {" + keys + "}}");
  };
  EXPECT_EQ(limits("")->tokens.max_lifetime, std::chrono::days(365));
  EXPECT_EQ(limits("")->tokens.default_lifetime, std::chrono::days(90));
  EXPECT_EQ(limits("max_lifetime: 2w")->tokens.max_lifetime, std::chrono::days(14));
  EXPECT_EQ(limits("default_lifetime: 1w")->tokens.default_lifetime, std::chrono::days(7));
  const auto complaint = [](const std::string& keys) {
    return login_complaint("identity: {tokens: {" + keys + "}}");
  };
  EXPECT_THAT(complaint("max_lifetime: 366d"), HasSubstr("max_lifetime: expected 1d to 1y"));
  EXPECT_THAT(complaint("max_lifetime: 23h"), HasSubstr("expected 1d to 1y"));
  EXPECT_THAT(complaint("default_lifetime: 0s"), HasSubstr("expected at least 1d"));
  EXPECT_THAT(complaint("default_lifetime: 3w, max_lifetime: 2w"),
              HasSubstr("expected at most max_lifetime"));
  EXPECT_THAT(complaint("lifetime: 3w"), HasSubstr("unknown key"));
}

TEST(LoginConfig, WhatStrangersMayDoIsSaid) {
  const auto count = [](const char* text, const char* origin) {
    return exposure_warnings(*login_of(text), origin).size();
  };
  EXPECT_EQ(count("{}", ".*"), 2U);
  EXPECT_THAT(exposure_warnings(*login_of("{}"), ".*")[0], HasSubstr("ceems-int-svc"));
  EXPECT_THAT(exposure_warnings(*login_of("{}"), ".*")[1], HasSubstr("--web.cors.origin"));
  EXPECT_EQ(count("{}", R"(https://grafana\.example)"), 1U);
  EXPECT_EQ(count("{}", "https?://.*"), 2U);
  EXPECT_EQ(count("identity: {header: {trusted_proxies: [10.0.0.1]}}", ".*"), 0U);
  EXPECT_EQ(count("identity: {header: {enabled: false}}", ".*"), 0U);
  EXPECT_EQ(count("identity: {service_account: {web_user: lb}}", ".*"), 1U);
}

TEST(LoginConfig, EveryKeyIsRead) {
  const auto options = login_of(R"(
identity:
  header: {trusted_proxies: [10.0.0.0/8, "::1"], map: {strip_domain: [UNI]}}
  local: {users_file: users.yml}
  oidc:
    name: Example
    issuer: https://id.example/realms/a
    client_id: ceems
    client_secret_file: secret
    scopes: [openid, groups]
    redirect_url: https://ceems.example/login/callback
    username_claim: uid
    sub_fallback: true
    groups_claim: groups
    admin_groups: [ops]
    support_groups: [desk]
    http_client: {tls_config: {ca_file: ca.pem}, proxy_url: "http://p:1"}
  session: {key_file: key, idle_timeout: 1h, max_lifetime: 1d}
roles:
  support: [sue]
  project_leads:
    - {cluster: a, project: fluids, users: [lea, "1007"]}
)");
  ASSERT_TRUE(options) << options.error().message;
  ASSERT_TRUE(options->trusted_proxies);
  EXPECT_TRUE(options->trusted_proxies->contains("10.1.2.3"));
  EXPECT_EQ(options->names.apply("UNI\\ada"), "ada");
  EXPECT_EQ(options->local->users_file, "/etc/ceems/users.yml");
  const OidcOptions& oidc = *options->oidc;
  EXPECT_EQ(oidc.name, "Example");
  EXPECT_EQ(oidc.client_secret_file, "/etc/ceems/secret");
  EXPECT_EQ(oidc.username_claim, "uid");
  EXPECT_TRUE(oidc.sub_fallback);
  EXPECT_EQ(oidc.admin_groups, std::vector<std::string>{"ops"});
  EXPECT_EQ(oidc.support_groups, std::vector<std::string>{"desk"});
  EXPECT_EQ(oidc.http.proxy_url, "http://p:1");
  EXPECT_EQ(options->session.idle, std::chrono::hours(1));
  EXPECT_EQ(options->session.absolute, std::chrono::hours(24));
  EXPECT_EQ(options->session_key_file, "/etc/ceems/key");
  EXPECT_EQ(options->roles.support, std::vector<std::string>{"sue"});
  ASSERT_EQ(options->roles.project_leads.size(), 1U);
  EXPECT_EQ(options->roles.project_leads[0].users, (std::vector<std::string>{"lea", "1007"}));
}

TEST(LoginConfig, ErrorsNameTheLine) {
  EXPECT_THAT(login_complaint("identity:\n  hedaer: {}\n"), HasSubstr("c.yml:2"));
  EXPECT_THAT(login_complaint("identity:\n  header:\n    map: {lower: true}\n"),
              HasSubstr("c.yml:3"));
  EXPECT_THAT(login_complaint("identity:\n  header:\n    trusted_proxies: [10.0.0.1/8]\n"),
              HasSubstr("c.yml:3"));
  EXPECT_THAT(login_complaint("identity:\n  local:\n    user_file: x\n"), HasSubstr("c.yml:3"));
  EXPECT_THAT(login_complaint("roles:\n  suport: [x]\n"), HasSubstr("c.yml:2"));
  EXPECT_THAT(login_complaint("roles:\n  project_leads:\n    - {cluster: a, users: [x]}\n"),
              HasSubstr("project"));
  EXPECT_THAT(login_complaint("roles:\n  project_leads: {a: b}\n"), HasSubstr("expected a list"));
  EXPECT_THAT(login_complaint("identity: 7\n"), HasSubstr("expected a mapping"));
}

TEST(LoginConfig, LoginsRequireAHeaderPolicy) {
  EXPECT_THAT(login_complaint("identity:\n  local: {users_file: u}\n"),
              HasSubstr("trusted_proxies"));
  EXPECT_EQ(login_complaint("identity:\n  local: {users_file: u}\n  header: {enabled: false}\n"),
            "accepted");
  EXPECT_EQ(
      login_complaint("identity:\n  local: {users_file: u}\n  header: {trusted_proxies: []}\n"),
      "accepted");
  std::vector<std::string> warnings;
  EXPECT_TRUE(
      login_of("identity:\n  local: {users_file: u}\n  header: {enabled: true}\n", &warnings));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("logins protect nothing"));
  EXPECT_EQ(login_complaint("identity:\n  local: {enabled: false}\n"), "accepted");
}

TEST(LoginConfig, ProvidersAreAskedOverTlsOnly) {
  const auto with = [](const std::string& issuer) {
    return login_complaint(
        "identity:\n  header: {enabled: false}\n  oidc: {client_id: c, issuer: '" + issuer +
        "'}\n");
  };
  EXPECT_EQ(with("https://id.example"), "accepted");
  EXPECT_EQ(with("http://127.0.0.1:8080/x"), "accepted");
  EXPECT_EQ(with("http://localhost:1"), "accepted");
  for (const std::string issuer :
       {"http://id.example", "http://localhost.evil.example", "id.example", "", "ftp://x",
        "https://id.example/?x", "https://u:p@id.example", "https://id.example/#x"}) {
    EXPECT_THAT(with(issuer), HasSubstr("issuer must be an https URL")) << issuer;
  }
}

TEST(LoginConfig, OidcRequiresItsSettings) {
  const auto with = [](const std::string& more) {
    return login_complaint(
        "identity:\n  header: {enabled: false}\n  oidc: {issuer: https://i.example, " + more +
        "}\n");
  };
  EXPECT_THAT(with("scopes: [openid]"), HasSubstr("client_id"));
  EXPECT_THAT(with("client_id: c, scopes: [profile]"), HasSubstr("openid"));
  EXPECT_THAT(with("client_id: c, admin_groups: [x]"), HasSubstr("groups_claim"));
  EXPECT_THAT(with("client_id: c, username_claim: ''"), HasSubstr("username_claim"));
  EXPECT_THAT(with("client_id: c, redirect_url: 'http://x.example'"), HasSubstr("redirect_url"));
}

TEST(LoginConfig, SessionTimesHaveBounds) {
  EXPECT_THAT(login_complaint("identity: {session: {idle_timeout: 1s}}"), HasSubstr("at least 1m"));
  EXPECT_THAT(login_complaint("identity: {session: {max_lifetime: 1h}}"),
              HasSubstr("idle_timeout"));
  EXPECT_THAT(login_complaint("identity: {session: {max_lifetime: 2y}}"), HasSubstr("1y"));
}

constexpr std::string_view kConfigHash =
    "$2b$04$abcdefghijklmnopqrstuuJEwzvLVhwUkOSPkeLqBQX8lT6Mn3G2y";

std::string users_complaint(const std::string& text) {
  const auto document = config::parse_yaml(text, "u.yml");
  if (!document) {
    return document.error().message;
  }
  const auto users = parse_users(*document);
  return users ? std::to_string(users->size()) + " users" : users.error().message;
}

TEST(UsersFile, HasNamesAndBcryptHashes) {
  const std::string hash(kConfigHash);
  EXPECT_EQ(users_complaint("basic_auth_users:\n  ada: " + hash + "\n  é: " + hash + "\n"),
            "2 users");
  EXPECT_EQ(users_complaint(""), "0 users");
  EXPECT_EQ(users_complaint("basic_auth_users:\n"), "0 users");
  EXPECT_THAT(users_complaint("basic_auth_users:\n  ada: secret\n"), HasSubstr("bcrypt"));
  EXPECT_THAT(users_complaint("basic_auth_users:\n  ada: secret\n"), HasSubstr("u.yml:2"));
  EXPECT_THAT(users_complaint("basic_auth_users:\n  ada: secret\n"),
              ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(users_complaint("basic_auth_users:\n  ' ada': " + hash + "\n"), HasSubstr("name"));
  EXPECT_THAT(users_complaint("users:\n  ada: x\n"), HasSubstr("users: unknown key"));
  EXPECT_THAT(users_complaint("basic_auth_users: [ada]\n"), HasSubstr("mapping"));
  EXPECT_THAT(users_complaint("- x\n"), HasSubstr("mapping"));
}

TEST(KeyFile, IsCreatedOnceForItsOwner) {
  const testing::TempDir dir;
  const std::string file = (dir.path() / "ceems-session.key").string();
  EXPECT_FALSE(read_key(file));
  const auto key = read_or_make_key(file);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->size(), 64U);
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(read_or_make_key(file), *key);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(KeyFile, RefusesFilesThatOthersCanReadAndShortKeys) {
  const testing::TempDir dir;
  const std::string file = dir.write("key", std::string(40, 'k') + "\n").string();
  for (const unsigned mode : {0644U, 0604U, 0660U, 0602U}) {
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    const auto key = read_key(file);
    ASSERT_FALSE(key) << mode;
    EXPECT_THAT(key.error().message, ::testing::Not(HasSubstr("kkkk")));
  }
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  EXPECT_EQ(read_key(file), std::string(40, 'k'));
  const std::string small = dir.write("small", "0123456789\n").string();
  std::filesystem::permissions(small, std::filesystem::perms(0600));
  EXPECT_FALSE(read_key(small));
  EXPECT_FALSE(read_key(dir.path().string()));
}

}  // namespace
}  // namespace ceems::api::login
