// Responses of an OpenID Connect provider: no token is accepted unless it was signed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "access/jwt.h"
#include "crypto/base64.h"

namespace jwt = ceems::access;  // "access" is a function of POSIX

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(jwt::parse_provider_metadata(text));
  static_cast<void>(jwt::parse_id_token(text));
  const jwt::ExpectedClaims expected{.issuer = "https://id.example",
                                     .client_id = "ceems",
                                     .nonce = "n",
                                     .groups_claim = "groups",
                                     .now = 1'767'225'600};
  if (const auto claims = jwt::check_claims(text, expected); claims && claims->user.empty()) {
    std::abort();
  }
  if (const auto bytes = ceems::crypto::base64url_decode(text);
      bytes && ceems::crypto::base64url_encode(*bytes) != text) {
    std::abort();
  }
  // The first line is a token, the rest a set of keys.
  const auto end = text.find('\n');
  const auto token = jwt::parse_jwt(text.substr(0, end));
  const auto keys = jwt::parse_jwks(end == std::string_view::npos ? text : text.substr(end + 1));
  if (token && jwt::verify_signature(*token, {})) {
    std::abort();
  }
  if (token && keys) {
    static_cast<void>(jwt::verify_signature(*token, *keys));
  }
  return 0;
}
