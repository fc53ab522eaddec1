#include "access/tokens.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace ceems::access {
namespace {

Identity somebody(Role role) {
  return {.user = "ada", .role = role, .led = {{.cluster_id = "a", .project = "fluids"}}};
}

TEST(TokenScopes, HaveNamesThatAreReadAgain) {
  EXPECT_EQ(parse_token_scope("read-own"), TokenScope::kOwn);
  EXPECT_EQ(parse_token_scope("read-led"), TokenScope::kLed);
  for (const std::string text : {"", "read", "READ-OWN", "read-own ", "admin", "read-led,admin"}) {
    EXPECT_EQ(parse_token_scope(text), std::nullopt) << text;
  }
  EXPECT_EQ(token_scope_name(TokenScope::kNothing), "");
}

TEST(TokenScopes, NeverGiveMoreThanAUserOrALeadHas) {
  for (const Role role : {Role::kUser, Role::kProjectLead, Role::kSupport, Role::kAdmin}) {
    const Identity own = with_scope(somebody(role), TokenScope::kOwn);
    EXPECT_EQ(own.user, "ada");
    EXPECT_EQ(own.role, Role::kUser);
    EXPECT_TRUE(own.led.empty());
    const Identity led = with_scope(somebody(role), TokenScope::kLed);
    EXPECT_EQ(led.role, Role::kProjectLead);
    EXPECT_EQ(led.led.size(), 1U);
    EXPECT_EQ(admin_area(led), Decision::kDeny);
    EXPECT_EQ(see_tokens(led), Decision::kDeny);
  }
  EXPECT_EQ(with_scope({.user = "ada", .role = Role::kAdmin}, TokenScope::kLed).role, Role::kUser);
}

TEST(TokenScopes, GiveNothingInDoubt) {
  EXPECT_EQ(with_scope(somebody(Role::kAdmin), TokenScope::kNothing).user, "");
  EXPECT_EQ(with_scope(somebody(Role::kNobody), TokenScope::kLed).user, "");
  EXPECT_EQ(with_scope({.role = Role::kAdmin}, TokenScope::kLed).role, Role::kNobody);
}

TEST(TokenScopes, TokensAreForPeople) {
  EXPECT_EQ(have_tokens(somebody(Role::kUser)), Decision::kAllow);
  EXPECT_EQ(have_tokens({.user = "ceems-int-svc", .role = Role::kAdmin}), Decision::kDeny);
  EXPECT_EQ(have_tokens({}), Decision::kDeny);
  EXPECT_EQ(see_tokens(somebody(Role::kAdmin)), Decision::kAllow);
  EXPECT_EQ(see_tokens(somebody(Role::kSupport)), Decision::kDeny);
}

}  // namespace
}  // namespace ceems::access
