#include "access/tokens.h"

#include <optional>
#include <string_view>
#include <utility>

#include "model/protocol.h"

namespace ceems::access {

std::string_view token_scope_name(TokenScope scope) {
  switch (scope) {
    case TokenScope::kOwn:
      return "read-own";
    case TokenScope::kLed:
      return "read-led";
    case TokenScope::kNothing:
      break;
  }
  return {};
}

std::optional<TokenScope> parse_token_scope(std::string_view text) {
  for (const TokenScope scope : {TokenScope::kOwn, TokenScope::kLed}) {
    if (text == token_scope_name(scope)) {
      return scope;
    }
  }
  return std::nullopt;
}

Identity with_scope(Identity owner, TokenScope scope) {
  if (scope == TokenScope::kNothing || owner.user.empty() || owner.role == Role::kNobody) {
    return {};
  }
  if (scope != TokenScope::kLed) {
    owner.led.clear();
  }
  owner.role = owner.led.empty() ? Role::kUser : Role::kProjectLead;
  return owner;
}

Decision have_tokens(const Identity& identity) {
  const bool may = !identity.user.empty() && identity.role != Role::kNobody &&
                   identity.user != model::kServiceAccount;
  return may ? Decision::kAllow : Decision::kDeny;
}

Decision see_tokens(const Identity& identity) {
  return see_admins(identity);
}

}  // namespace ceems::access
