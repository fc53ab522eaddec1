#include "access/session.h"

#include <set>

#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::access {
namespace {

constexpr std::int64_t kSessionNow = 1'767'225'600;
constexpr std::int64_t kHour = 3600;

Signer signer(char byte = 'k') {
  auto made = Signer::create(std::string(Signer::kMinKeyBytes, byte));
  EXPECT_TRUE(made);
  return *made;
}

Session ada() {
  return {.id = std::string("\0\x01.id", 5),
          .user = "ada",
          .method = LoginMethod::kOidc,
          .granted = Role::kSupport,
          .credential = "c",
          .begun = kSessionNow,
          .used = kSessionNow};
}

TEST(Base64Url, HasOnlyOneSpelling) {
  EXPECT_EQ(crypto::base64url_encode(""), "");
  EXPECT_EQ(crypto::base64url_encode("\xFF\xEF"), "_-8");
  for (const std::string text : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(crypto::base64url_decode(crypto::base64url_encode(text)), text);
  }
  for (const std::string_view wrong : {"A", "_-9", "_-8=", "_/8", "+-8", "ab c", "AAAAA", "\n"}) {
    EXPECT_FALSE(crypto::base64url_decode(wrong)) << wrong;
  }
}

TEST(SignerTest, RejectsAShortKey) {
  EXPECT_FALSE(Signer::create("short"));
  EXPECT_FALSE(Signer::create(""));
}

TEST(SignerTest, ASealedTextOpensOnlyForTheSamePurposeAndKey) {
  const std::string token = signer().seal("a", {"x", "", std::string("\0.y", 3)});
  const auto fields = signer().open("a", token, 3);
  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, (std::vector<std::string>{"x", "", std::string("\0.y", 3)}));
  EXPECT_FALSE(signer().open("b", token, 3));
  EXPECT_FALSE(signer('o').open("a", token, 3));
  EXPECT_FALSE(signer().open("a", token, 2));
}

TEST(SignerTest, EveryChangedByteIsDetected) {
  const std::string token = signer().seal("a", {"user", "ada"});
  for (std::size_t i = 0; i < token.size(); ++i) {
    for (const char byte : {'A', 'B', '.', '=', '\0'}) {
      std::string changed = token;
      changed[i] = byte;
      EXPECT_EQ(signer().open("a", changed, 2).has_value(), changed == token) << i;
    }
    EXPECT_FALSE(signer().open("a", token.substr(0, i), 2));
  }
  EXPECT_FALSE(signer().open("a", token + "A", 2));
  EXPECT_FALSE(signer().open("a", token + ".", 2));
  EXPECT_FALSE(signer().open("a", std::string(100'000, 'A'), 2));
  EXPECT_FALSE(signer().open("a", "", 2));
}

TEST(SessionToken, ContainsTheSession) {
  const auto session =
      parse_session(signer(), {}, session_token(signer(), ada()), kSessionNow + 60);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->id, ada().id);
  EXPECT_EQ(session->user, "ada");
  EXPECT_EQ(session->method, LoginMethod::kOidc);
  EXPECT_EQ(session->granted, Role::kSupport);
  EXPECT_EQ(session->credential, "c");
  EXPECT_EQ(session->begun, kSessionNow);
}

TEST(SessionToken, ExpiresWhenIdleAndAtItsMaximumAge) {
  const SessionLimits limits{.idle = std::chrono::hours(1), .absolute = std::chrono::hours(3)};
  Session session = ada();
  EXPECT_TRUE(
      parse_session(signer(), limits, session_token(signer(), session), kSessionNow + kHour));
  EXPECT_FALSE(
      parse_session(signer(), limits, session_token(signer(), session), kSessionNow + kHour + 1));
  session.used = kSessionNow + 3 * kHour;
  EXPECT_TRUE(
      parse_session(signer(), limits, session_token(signer(), session), kSessionNow + 3 * kHour));
  EXPECT_FALSE(parse_session(signer(), limits, session_token(signer(), session),
                             kSessionNow + 3 * kHour + 1));
}

TEST(SessionToken, FromTheFutureIsRefusedAfterTheClockWasSetBack) {
  const std::string token = session_token(signer(), ada());
  EXPECT_TRUE(parse_session(signer(), {}, token, kSessionNow - 60));
  EXPECT_FALSE(parse_session(signer(), {}, token, kSessionNow - 61));
  // A clock that jumps forward ends the session like time that passes.
  EXPECT_FALSE(parse_session(signer(), {}, token, kSessionNow + 365 * 24 * kHour));
}

TEST(SessionToken, IsRenewedAfterATenthOfTheIdleTime) {
  const SessionLimits limits{.idle = std::chrono::seconds(1000), .absolute = std::chrono::hours(3)};
  EXPECT_FALSE(wants_renewal(limits, ada(), kSessionNow + 100));
  EXPECT_TRUE(wants_renewal(limits, ada(), kSessionNow + 101));
}

TEST(SessionToken, ASealedTextOfAnotherPurposeIsRefused) {
  const LoginState state{.state = "s", .next = "/", .begun = kSessionNow};
  EXPECT_FALSE(parse_session(signer(), {}, login_state_token(signer(), state), kSessionNow));
  EXPECT_FALSE(parse_login_state(signer(), session_token(signer(), ada()), "s", kSessionNow));
}

TEST(LoginStateTest, RequiresTheSameStateInTime) {
  const std::string token =
      login_state_token(signer(), {.state = "s1", .next = "/ui/#/unit/a/1", .begun = kSessionNow});
  const auto state = parse_login_state(signer(), token, "s1", kSessionNow + 600);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->next, "/ui/#/unit/a/1");
  EXPECT_FALSE(parse_login_state(signer(), token, "s1", kSessionNow + 601));
  EXPECT_FALSE(parse_login_state(signer(), token, "s1", kSessionNow - 61));
  EXPECT_FALSE(parse_login_state(signer(), token, "s2", kSessionNow));
  EXPECT_FALSE(parse_login_state(signer(), token, "", kSessionNow));
  EXPECT_FALSE(parse_login_state(signer('o'), token, "s1", kSessionNow));
}

TEST(LoginStateTest, NonceAndVerifierDependOnStateAndKey) {
  const std::set<std::string> all{
      nonce_of(signer(), "a"),         nonce_of(signer(), "b"),
      nonce_of(signer('o'), "a"),      code_verifier_of(signer(), "a"),
      code_verifier_of(signer(), "b"), code_verifier_of(signer('o'), "a")};
  EXPECT_EQ(all.size(), 6U);
  EXPECT_EQ(code_verifier_of(signer(), "a").size(), 43U);
  // RFC 7636, appendix B.
  EXPECT_EQ(code_challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

TEST(SafeNext, StaysOnThisServer) {
  for (const std::string_view good :
       {"/", "/ui/", "/ui/?user=1#/unit/a/b", "/a?next=//b", "/a#//b"}) {
    EXPECT_EQ(safe_next(good), good);
  }
  for (const std::string_view bad :
       {"", "ui", "//evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example",
        "javascript:alert(1)", "/\t/evil.example", "/a\r\nSet-Cookie: x=y", " /", "/ a",
        "/..//evil", "/a//b", "/\xC3\xA9", "/\"", "/<"}) {
    EXPECT_EQ(safe_next(bad), "") << bad;
  }
  EXPECT_EQ(safe_next("/" + std::string(2000, 'a')), "");
}

TEST(UserName, HasNoControlCharacters) {
  for (const std::string_view good : {"ada", "a b", "é", "p:svc", "ada@example.org"}) {
    EXPECT_TRUE(is_user_name(good)) << good;
  }
  for (const std::string_view bad : {"", " ada", "ada ", "a\nb", "a\x7F", "\xFF", "a\tb"}) {
    EXPECT_FALSE(is_user_name(bad)) << bad;
  }
  EXPECT_FALSE(is_user_name(std::string(257, 'a')));
  EXPECT_FALSE(is_user_name(std::string_view("a\0b", 3)));
}

TEST(Roles, HaveNames) {
  for (const Role role :
       {Role::kNobody, Role::kUser, Role::kProjectLead, Role::kSupport, Role::kAdmin}) {
    EXPECT_EQ(parse_role(role_name(role)), role);
  }
  EXPECT_EQ(Role{}, Role::kNobody);
  EXPECT_FALSE(parse_role("root"));
}

}  // namespace
}  // namespace ceems::access
