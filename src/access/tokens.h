#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "access/policy.h"

namespace ceems::access {

/// What a personal API token may read. The zero value is nothing.
enum class TokenScope : std::uint8_t {
  kNothing,
  kOwn,  ///< what its owner sees as a plain user
  kLed,  ///< also the projects that its owner leads
};

/// "read-own", "read-led"; empty for kNothing.
std::string_view token_scope_name(TokenScope scope);
/// The scope with this name; nothing for other texts.
std::optional<TokenScope> parse_token_scope(std::string_view text);

/// Who a request with a token of `owner` is. Never an admin or support, whatever the owner is, and
/// without identity for kNothing.
Identity with_scope(Identity owner, TokenScope scope);

/// Whether the caller may have tokens: everybody with a name except the service account.
Decision have_tokens(const Identity& identity);
/// Whether the caller may see and revoke the tokens of others: only admins may.
Decision see_tokens(const Identity& identity);

}  // namespace ceems::access
