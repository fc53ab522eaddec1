#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::access {

// JSON Web Tokens (RFC 7519) as ID tokens of OpenID Connect come, in the compact form of a JWS
// (RFC 7515 §3.1). All functions take text from elsewhere: bounded, and no message repeats a
// token. What is not on a list is refused (RFC 8725): algorithms, critical extensions, keys inside
// the token.

enum class JwtAlgorithm { kRs256, kPs256, kEs256 };

/// A token taken apart. Nothing in it is true before verify_signature() and check_claims().
struct Jwt {
  JwtAlgorithm algorithm = JwtAlgorithm::kRs256;
  std::string key_id = {};       ///< "kid"; empty: none
  std::string signed_text = {};  ///< header and payload as they were signed
  std::string signature = {};
  std::string claims = {};  ///< the payload: a JSON object
};

inline constexpr std::size_t kLongestJwt = std::size_t{16} << 10U;

/// kParse for a text that is no such token or has an algorithm other than RS256, PS256 and ES256
/// ("none" and HS* above all), a "crit" or "b64" header, or is longer than kLongestJwt.
Result<Jwt> parse_jwt(std::string_view text);

/// A public key for signatures out of a JWK Set (RFC 7517): RSA of 2048 to 8192 bits, or EC on
/// P-256.
struct Jwk {
  bool rsa = false;
  std::string key_id = {};
  std::string algorithm = {};               ///< "alg"; empty: any that suits the kind
  std::string modulus = {}, exponent = {};  ///< big endian
  std::string point_x = {}, point_y = {};   ///< 32 bytes each
};

inline constexpr std::size_t kLongestJwks = std::size_t{256} << 10U;

/// The keys of a set that can be used; others (of other kinds, sizes, for encryption) are left out.
/// At most 64 are looked at. kParse for a text that is no set.
Result<std::vector<Jwk>> parse_jwks(std::string_view text);

/// Is one of the keys the token's, and did it sign? The key is chosen by "kid"; a token without one
/// needs a set with a single key that suits (OpenID Connect Core §10.1). kNotFound when there is no
/// such key (a set may have been renewed), kPermissionDenied for a wrong signature.
Result<> verify_signature(const Jwt& token, const std::vector<Jwk>& keys);

/// What an ID token must say (OpenID Connect Core §3.1.3.7).
struct ExpectedClaims {
  std::string issuer = {}, client_id = {}, nonce = {};
  std::string user_claim = "preferred_username";
  bool sub_instead = false;  ///< take "sub" where the claim is missing
  std::string groups_claim = {};
  std::int64_t now = 0;                           ///< epoch seconds
  std::int64_t skew = 60;                         ///< seconds by which clocks may differ
  std::int64_t oldest = std::int64_t{24} * 3600;  ///< "iat" further back is refused
};

struct Claims {
  std::string user = {};
  std::vector<std::string> groups = {};  ///< at most 1,000
};

/// kPermissionDenied with the first thing that is wrong; the message names the claim, not what it
/// holds. "email" as the user needs "email_verified".
Result<Claims> check_claims(std::string_view text, const ExpectedClaims& expected);

/// Where a provider is asked (OpenID Connect Discovery §3).
struct ProviderMetadata {
  std::string issuer = {}, authorization_endpoint = {}, token_endpoint = {}, jwks_uri = {};
  bool secret_in_form = false;  ///< the token end point takes client_secret_post only
};

/// kParse when something needed is missing.
Result<ProviderMetadata> parse_provider_metadata(std::string_view text);

/// "id_token" of the answer of a token end point (OpenID Connect Core §3.1.3.3).
Result<std::string> parse_id_token(std::string_view text);

}  // namespace ceems::access
