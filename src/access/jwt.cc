#include "access/jwt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <boost/json.hpp>

#include "access/session.h"
#include "base/strings.h"
#include "crypto/base64.h"

namespace ceems::access {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kMaxKeys = 64;
constexpr std::size_t kMaxGroups = 1000;
constexpr std::size_t kMaxTextBytes = 1024;  // of a claim that is kept

std::optional<json::object> parse_object(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code error;
  json::value document =
      json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error || !document.is_object()) {
    return std::nullopt;
  }
  return std::move(document.get_object());
}

/// The text of a member; nothing if it is missing, not a string, empty or too long.
std::optional<std::string> text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_string()) {
    return std::nullopt;
  }
  const json::string& text = value->get_string();
  if (text.empty() || text.size() > kMaxTextBytes) {
    return std::nullopt;
  }
  return std::string(text.data(), text.size());
}

std::string text_or_empty(const json::object& object, std::string_view name) {
  return text_of(object, name).value_or(std::string());
}

bool has(const json::object& object, std::string_view name) {
  return object.contains(json::string_view(name.data(), name.size()));
}

/// Seconds since the epoch (RFC 7519 §2, NumericDate) without fractions.
std::optional<std::int64_t> date_of(const json::object& object, std::string_view name) {
  constexpr double kLatest = 253402300800.0;  // year 10000
  const json::value* value = object.if_contains(json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  boost::system::error_code error;
  const auto number = value->to_number<double>(error);
  if (error || !std::isfinite(number) || number < 0 || number > kLatest) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(number);
}

std::optional<JwtAlgorithm> parse_algorithm(std::string_view name) {
  if (name == "RS256") {
    return JwtAlgorithm::kRs256;
  }
  if (name == "PS256") {
    return JwtAlgorithm::kPs256;
  }
  if (name == "ES256") {
    return JwtAlgorithm::kEs256;
  }
  return std::nullopt;
}

std::unexpected<Error> refused(std::string_view why) {
  return fail(ErrorCode::kPermissionDenied, "ID token: {}", why);
}

/// "aud" is a string or a list of strings (RFC 7519 §4.1.3).
Result<> check_audience(const json::object& claims, const std::string& client_id) {
  const json::value* value = claims.if_contains("aud");
  if (value == nullptr) {
    return refused("aud is missing");
  }
  std::size_t audiences = 0;
  bool ours = false;
  const auto look_at = [&](const json::value& one) {
    ++audiences;
    ours = ours || (one.is_string() && one.get_string() == client_id);
  };
  if (value->is_array()) {
    for (const json::value& one : value->get_array()) {
      look_at(one);
    }
  } else {
    look_at(*value);
  }
  if (!ours || client_id.empty()) {
    return refused("aud does not contain this client");
  }
  const auto party = text_of(claims, "azp");
  if (has(claims, "azp") ? party != client_id : audiences > 1) {
    return refused("azp is not this client");
  }
  return {};
}

Result<> check_times(const json::object& claims, const ExpectedClaims& expected) {
  const auto ends = date_of(claims, "exp");
  const auto made = date_of(claims, "iat");
  if (!ends || expected.now >= *ends + expected.skew) {
    return refused("exp is missing or in the past");
  }
  if (!made || *made > expected.now + expected.skew ||
      *made < expected.now - expected.max_age - expected.skew) {
    return refused("iat is missing, in the future or too old");
  }
  if (has(claims, "nbf")) {
    const auto begins = date_of(claims, "nbf");
    if (!begins || *begins > expected.now + expected.skew) {
      return refused("nbf is not a time or in the future");
    }
  }
  return {};
}

Result<std::string> user_of(const json::object& claims, const ExpectedClaims& expected) {
  std::string_view claim = expected.user_claim;
  if (!has(claims, claim) && expected.sub_instead) {
    claim = "sub";
  }
  const auto user = text_of(claims, claim);
  if (!user || !is_user_name(*user)) {
    return fail(ErrorCode::kPermissionDenied, "ID token: {} is not a valid user name",
                printable(claim, 60));
  }
  if (claim == "email") {
    const json::value* verified = claims.if_contains("email_verified");
    if (verified == nullptr || !verified->is_bool() || !verified->get_bool()) {
      return refused("email is not verified");
    }
  }
  return *user;
}

/// Reads a list of strings, or one string.
std::vector<std::string> groups_of(const json::object& claims, const std::string& claim) {
  std::vector<std::string> groups;
  const json::value* value = claim.empty() ? nullptr : claims.if_contains(claim);
  if (value == nullptr) {
    return groups;
  }
  const auto add = [&groups](const json::value& one) {
    if (one.is_string() && groups.size() < kMaxGroups) {
      groups.emplace_back(one.get_string().data(), one.get_string().size());
    }
  };
  if (value->is_array()) {
    for (const json::value& one : value->get_array()) {
      add(one);
    }
  } else {
    add(*value);
  }
  return groups;
}

std::string number_of(const json::object& object, std::string_view name) {
  constexpr std::size_t kMaxNumberBytes = 1400;  // 8192 bits in base64url
  const json::value* value = object.if_contains(json::string_view(name.data(), name.size()));
  if (value == nullptr || !value->is_string() || value->get_string().size() > kMaxNumberBytes) {
    return {};
  }
  std::string bytes =
      crypto::base64url_decode({value->get_string().data(), value->get_string().size()})
          .value_or(std::string());
  bytes.erase(0, bytes.find_first_not_of('\0'));
  return bytes;
}

/// A coordinate of a point, which has a fixed size (RFC 7518 §6.2.1.2).
std::string coordinate_of(const json::object& object, std::string_view name) {
  constexpr std::size_t kBytes = 32;
  const auto text = text_of(object, name);
  auto bytes = text ? crypto::base64url_decode(*text) : std::nullopt;
  return bytes && bytes->size() == kBytes ? *std::move(bytes) : std::string();
}

bool allows_signatures(const json::object& key) {
  if (has(key, "use") && text_of(key, "use") != "sig") {
    return false;
  }
  const json::value* operations = key.if_contains("key_ops");
  if (operations == nullptr) {
    return true;
  }
  return operations->is_array() &&
         std::ranges::any_of(operations->get_array(), [](const json::value& one) {
           return one.is_string() && one.get_string() == "verify";
         });
}

std::optional<Jwk> read_key(const json::object& key) {
  constexpr std::size_t kMinModulus = 2048 / 8;
  constexpr std::size_t kMaxModulus = 8192 / 8;
  constexpr std::size_t kMaxExponent = 4;
  if (!allows_signatures(key) || (has(key, "kid") && !text_of(key, "kid")) ||
      (has(key, "alg") && !parse_algorithm(text_or_empty(key, "alg")))) {
    return std::nullopt;
  }
  Jwk read;
  read.key_id = text_or_empty(key, "kid");
  read.algorithm = text_or_empty(key, "alg");
  const std::string kind = text_or_empty(key, "kty");
  if (kind == "RSA") {
    read.rsa = true;
    read.modulus = number_of(key, "n");
    read.exponent = number_of(key, "e");
    const bool good = read.modulus.size() >= kMinModulus && read.modulus.size() <= kMaxModulus &&
                      !read.exponent.empty() && read.exponent.size() <= kMaxExponent;
    return good ? std::optional(read) : std::nullopt;
  }
  if (kind == "EC" && text_of(key, "crv") == "P-256") {
    read.point_x = coordinate_of(key, "x");
    read.point_y = coordinate_of(key, "y");
    return read.point_x.empty() || read.point_y.empty() ? std::nullopt : std::optional(read);
  }
  return std::nullopt;
}

}  // namespace

Result<Jwt> parse_jwt(std::string_view text) {
  if (text.size() > kMaxJwtBytes) {
    return fail(ErrorCode::kParse, "ID token: longer than {} bytes", kMaxJwtBytes);
  }
  const auto parts = split(text, '.');
  constexpr std::size_t kParts = 3;
  if (parts.size() != kParts) {
    return fail(ErrorCode::kParse, "ID token: expected three parts");
  }
  const auto header_text = crypto::base64url_decode(parts[0]);
  auto claims = crypto::base64url_decode(parts[1]);
  auto signature = crypto::base64url_decode(parts[2]);
  const auto header = header_text ? parse_object(*header_text) : std::nullopt;
  if (!header || !claims || !signature) {
    return fail(ErrorCode::kParse, "ID token: a part is not base64url, or the header not JSON");
  }
  const auto algorithm = parse_algorithm(text_or_empty(*header, "alg"));
  if (!algorithm) {
    return fail(ErrorCode::kParse, "ID token: expected a signature by RS256, PS256 or ES256");
  }
  if (has(*header, "crit") || has(*header, "b64") ||
      (has(*header, "kid") && !text_of(*header, "kid"))) {
    return fail(ErrorCode::kParse, "ID token: unsupported header (crit, b64, or an invalid kid)");
  }
  return Jwt{.algorithm = *algorithm,
             .key_id = text_or_empty(*header, "kid"),
             .signed_text = std::string(text.substr(0, parts[0].size() + 1 + parts[1].size())),
             .signature = *std::move(signature),
             .claims = *std::move(claims)};
}

Result<std::vector<Jwk>> parse_jwks(std::string_view text) {
  const auto document = text.size() <= kMaxJwksBytes ? parse_object(text) : std::nullopt;
  const json::value* list = document ? document->if_contains("keys") : nullptr;
  if (list == nullptr || !list->is_array()) {
    return fail(ErrorCode::kParse, "expected a JSON object with a list of keys");
  }
  std::vector<Jwk> keys;
  std::size_t seen = 0;
  for (const json::value& one : list->get_array()) {
    if (++seen > kMaxKeys) {
      break;
    }
    if (auto key = one.is_object() ? read_key(one.get_object()) : std::nullopt; key) {
      keys.push_back(*std::move(key));
    }
  }
  return keys;
}

Result<Claims> check_claims(std::string_view text, const ExpectedClaims& expected) {
  const auto claims = parse_object(text);
  if (!claims) {
    return refused("the claims are not a JSON object");
  }
  if (expected.issuer.empty() || text_of(*claims, "iss") != expected.issuer) {
    return refused("iss is not the expected issuer");
  }
  CEEMS_TRY(check_audience(*claims, expected.client_id));
  CEEMS_TRY(check_times(*claims, expected));
  if (expected.nonce.empty() || !same_secret(text_or_empty(*claims, "nonce"), expected.nonce)) {
    return refused("nonce is not the expected one");
  }
  if (!text_of(*claims, "sub")) {
    return refused("sub is missing");
  }
  CEEMS_TRY(user, user_of(*claims, expected));
  return Claims{.user = std::move(user), .groups = groups_of(*claims, expected.groups_claim)};
}

Result<ProviderMetadata> parse_provider_metadata(std::string_view text) {
  const auto document = text.size() <= kMaxJwksBytes ? parse_object(text) : std::nullopt;
  if (!document) {
    return fail(ErrorCode::kParse, "expected a JSON object");
  }
  ProviderMetadata metadata{
      .issuer = text_or_empty(*document, "issuer"),
      .authorization_endpoint = text_or_empty(*document, "authorization_endpoint"),
      .token_endpoint = text_or_empty(*document, "token_endpoint"),
      .jwks_uri = text_or_empty(*document, "jwks_uri")};
  for (const std::string* part : {&metadata.issuer, &metadata.authorization_endpoint,
                                  &metadata.token_endpoint, &metadata.jwks_uri}) {
    if (part->empty()) {
      return fail(ErrorCode::kParse,
                  "expected issuer, authorization_endpoint, token_endpoint and jwks_uri");
    }
  }
  // Without the list, the method is client_secret_basic (OpenID Connect Discovery §3).
  if (const json::value* methods = document->if_contains("token_endpoint_auth_methods_supported");
      methods != nullptr && methods->is_array()) {
    const auto supports = [methods](std::string_view name) {
      return std::ranges::any_of(methods->get_array(), [name](const json::value& one) {
        return one.is_string() &&
               std::string_view(one.get_string().data(), one.get_string().size()) == name;
      });
    };
    metadata.secret_in_form = !supports("client_secret_basic") && supports("client_secret_post");
  }
  return metadata;
}

Result<std::string> parse_id_token(std::string_view text) {
  const auto document = text.size() <= kMaxJwksBytes ? parse_object(text) : std::nullopt;
  const json::value* token = document ? document->if_contains("id_token") : nullptr;
  if (token == nullptr || !token->is_string()) {
    return fail(ErrorCode::kParse, "expected a JSON object with id_token");
  }
  return std::string(token->get_string().data(), token->get_string().size());
}

}  // namespace ceems::access
