#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ceems::access {

/// RFC 4648 §5 without padding, as in JWTs (RFC 7515 §2).
std::string base64url_encode(std::string_view bytes);

/// Strict: only the alphabet, no padding, and only the one spelling that base64url_encode() gives
/// (unused bits are 0), so that a token cannot be spelled in two ways.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace ceems::access
