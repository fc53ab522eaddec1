#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ceems::crypto {

/// RFC 4648 §4, with padding.
std::string base64_encode(std::string_view bytes);
/// Strict: padding must be there, nothing else may be.
std::optional<std::string> base64_decode(std::string_view text);

/// RFC 4648 §5, for URLs: "-" and "_", no padding.
std::string base64url_encode(std::string_view bytes);
/// Strict: what base64url_encode() can have written, nothing else.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace ceems::crypto
