#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ceems::crypto {

/// Encodes as RFC 4648 §4 specifies, with padding.
std::string base64_encode(std::string_view bytes);
/// Decodes strictly: padding is required, and no other characters are accepted.
std::optional<std::string> base64_decode(std::string_view text);

/// Encodes as RFC 4648 §5 specifies, for URLs: with "-" and "_", without padding.
std::string base64url_encode(std::string_view bytes);
/// Decodes strictly: accepts only what base64url_encode() can have written.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace ceems::crypto
