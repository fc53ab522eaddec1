#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::access {

// JSON Web Tokens (RFC 7519), as OpenID Connect uses them for ID tokens: in the compact form of a
// JWS (RFC 7515 §3.1). All functions take untrusted text: sizes are bounded, and no message quotes
// a token. Algorithms, critical extensions and keys inside the token are refused unless they are
// explicitly supported (RFC 8725).

enum class JwtAlgorithm { kRs256, kPs256, kEs256 };

/// A token split into its parts. Trust none of them before verify_signature() and check_claims().
struct Jwt {
  JwtAlgorithm algorithm = JwtAlgorithm::kRs256;
  std::string key_id = {};       ///< "kid"; empty if missing
  std::string signed_text = {};  ///< header and payload as they were signed
  std::string signature = {};
  std::string claims = {};  ///< the payload: a JSON object
};

inline constexpr std::size_t kMaxJwtBytes = std::size_t{16} << 10U;

/// kParse if the text is not such a token, is longer than kMaxJwtBytes, has an algorithm other than
/// RS256, PS256 and ES256 (above all "none" and HS*), or a "crit" or "b64" header.
Result<Jwt> parse_jwt(std::string_view text);

/// A public key for signatures from a JWK Set (RFC 7517): RSA with 2048 to 8192 bits, or EC on
/// P-256.
struct Jwk {
  bool rsa = false;
  std::string key_id = {};
  std::string algorithm = {};               ///< "alg"; empty: any that suits the type of the key
  std::string modulus = {}, exponent = {};  ///< big endian
  std::string point_x = {}, point_y = {};   ///< 32 bytes each
};

inline constexpr std::size_t kMaxJwksBytes = std::size_t{256} << 10U;

/// The usable keys among the first 64 of a set. Keys of other types and sizes, and keys for
/// encryption, are skipped. kParse if the text is not a set.
Result<std::vector<Jwk>> parse_jwks(std::string_view text);

/// Checks that one of the keys signed the token. The key is selected by "kid". A token without
/// "kid" requires a set with only one suitable key (OpenID Connect Core §10.1). kNotFound if there
/// is no such key (the set may have been renewed), kPermissionDenied for a wrong signature.
Result<> verify_signature(const Jwt& token, const std::vector<Jwk>& keys);

/// The claims that an ID token must have (OpenID Connect Core §3.1.3.7).
struct ExpectedClaims {
  std::string issuer = {}, client_id = {}, nonce = {};
  std::string user_claim = "preferred_username";
  bool sub_instead = false;  ///< use "sub" if the user claim is missing
  std::string groups_claim = {};
  std::int64_t now = 0;                            ///< epoch seconds
  std::int64_t skew = 60;                          ///< tolerance for clocks that differ, seconds
  std::int64_t max_age = std::int64_t{24} * 3600;  ///< an older "iat" is refused, seconds
};

struct Claims {
  std::string user = {};
  std::vector<std::string> groups = {};  ///< at most 1,000
};

/// kPermissionDenied with the first problem. The message names the claim, never its value. If
/// "email" is the user claim, "email_verified" is required.
Result<Claims> check_claims(std::string_view text, const ExpectedClaims& expected);

/// The endpoints of a provider (OpenID Connect Discovery §3).
struct ProviderMetadata {
  std::string issuer = {}, authorization_endpoint = {}, token_endpoint = {}, jwks_uri = {};
  bool secret_in_form = false;  ///< the token endpoint supports only client_secret_post
};

/// kParse if a required member is missing.
Result<ProviderMetadata> parse_provider_metadata(std::string_view text);

/// "id_token" in the response of a token endpoint (OpenID Connect Core §3.1.3.3).
Result<std::string> parse_id_token(std::string_view text);

}  // namespace ceems::access
