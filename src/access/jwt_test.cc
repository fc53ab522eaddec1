#include "access/jwt.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include "access/test_key.h"
#include "crypto/base64.h"

namespace ceems::access {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kIssuedNow = 1'767'225'600;

std::string padded(const std::string& bytes) {
  return std::string(32 - bytes.size(), '\0') + bytes;
}

/// One key pair of each type for all tests, because making them takes a while.
struct Keys {
  Key rsa{EVP_RSA_gen(2048)};
  Key other{EVP_RSA_gen(2048)};
  Key point{EVP_EC_gen("P-256")};
};
const Keys& keys() {
  static const Keys made;
  return made;
}

std::string rsa_jwk(const Key& key, const std::string& more) {
  return fmt::format(R"({{"kty":"RSA","n":"{}","e":"{}"{}}})",
                     crypto::base64url_encode(key_number(key, OSSL_PKEY_PARAM_RSA_N)),
                     crypto::base64url_encode(key_number(key, OSSL_PKEY_PARAM_RSA_E)), more);
}
std::string ec_jwk(const std::string& more) {
  return fmt::format(
      R"({{"kty":"EC","crv":"P-256","x":"{}","y":"{}"{}}})",
      crypto::base64url_encode(padded(key_number(keys().point, OSSL_PKEY_PARAM_EC_PUB_X))),
      crypto::base64url_encode(padded(key_number(keys().point, OSSL_PKEY_PARAM_EC_PUB_Y))), more);
}
std::vector<Jwk> set_of(const std::string& list) {
  const auto parsed = parse_jwks(R"({"keys":[)" + list + "]}");
  EXPECT_TRUE(parsed);
  return parsed ? *parsed : std::vector<Jwk>();
}

std::string raw_signature(const Key& key, const std::string& text, bool pss, int salt) {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free);
  EVP_PKEY_CTX* settings = nullptr;
  EXPECT_EQ(EVP_DigestSignInit(context.get(), &settings, EVP_sha256(), nullptr, key.get()), 1);
  if (pss) {
    EVP_PKEY_CTX_set_rsa_padding(settings, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(settings, salt);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  EXPECT_EQ(EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()), 1);
  std::string made(size, '\0');
  EXPECT_EQ(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(made.data()), &size,
                           bytes, text.size()),
            1);
  made.resize(size);
  return made;
}

/// Converts DER to r and s.
std::string jws_signature(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  std::string raw(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + 32, 32);
  ECDSA_SIG_free(signature);
  return raw;
}

std::string signed_by(const Key& key,
                      const std::string& header,
                      const std::string& claims,
                      bool pss = false,
                      int salt = RSA_PSS_SALTLEN_DIGEST) {
  const std::string text =
      crypto::base64url_encode(header) + "." + crypto::base64url_encode(claims);
  std::string signature = raw_signature(key, text, pss, salt);
  if (EVP_PKEY_is_a(key.get(), "EC") == 1) {
    signature = jws_signature(signature);
  }
  return text + "." + crypto::base64url_encode(signature);
}

/// Parses the token and checks its signature; "" if it is good.
std::string outcome(const std::string& token, const std::vector<Jwk>& set) {
  const auto parsed = parse_jwt(token);
  if (!parsed) {
    return parsed.error().message;
  }
  const auto checked = verify_signature(*parsed, set);
  return checked ? "" : checked.error().message;
}

constexpr std::string_view kClaims =
    R"({"iss":"https://id.example","aud":"ceems","sub":"1","exp":1767225900,"iat":1767225600,)"
    R"("nonce":"n","preferred_username":"ada","groups":["hpc","ops",7]})";

ExpectedClaims expected() {
  return {.issuer = "https://id.example",
          .client_id = "ceems",
          .nonce = "n",
          .groups_claim = "groups",
          .now = kIssuedNow};
}

/// The claims with one of them replaced or added, or removed if `value` is empty.
std::string claims_with(const std::string& name, const std::string& value) {
  std::string text = "{";
  const std::vector<std::pair<std::string, std::string>> all{{"iss", R"("https://id.example")"},
                                                             {"aud", R"("ceems")"},
                                                             {"sub", R"("1")"},
                                                             {"exp", "1767225900"},
                                                             {"iat", "1767225600"},
                                                             {"nonce", R"("n")"},
                                                             {"preferred_username", R"("ada")"}};
  for (const auto& [key, given] : all) {
    if (key != name) {
      text += fmt::format("\"{}\":{},", key, given);
    }
  }
  if (!value.empty()) {
    text += fmt::format("\"{}\":{},", name, value);
  }
  text.back() = '}';
  return text;
}

std::string complaint(const std::string& claims, const ExpectedClaims& wanted = expected()) {
  const auto checked = check_claims(claims, wanted);
  return checked ? "user " + checked->user : checked.error().message;
}

TEST(JwtSignature, OfEachAlgorithmIsAccepted) {
  const std::string claims(kClaims);
  const auto set = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r","use":"sig")") + "," +
                          ec_jwk(R"(,"kid":"e","alg":"ES256")"));
  ASSERT_EQ(set.size(), 2U);
  EXPECT_EQ(outcome(signed_by(keys().rsa, R"({"alg":"RS256","kid":"r"})", claims), set), "");
  EXPECT_EQ(outcome(signed_by(keys().rsa, R"({"alg":"PS256","kid":"r"})", claims, true), set), "");
  EXPECT_EQ(outcome(signed_by(keys().point, R"({"alg":"ES256","kid":"e"})", claims), set), "");
  // With one key of the type, no key id is needed.
  EXPECT_EQ(outcome(signed_by(keys().point, R"({"alg":"ES256"})", claims), set), "");
}

TEST(JwtSignature, OfAnotherKeyOrTextIsRefused) {
  const auto set = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r")"));
  const std::string good =
      signed_by(keys().rsa, R"({"alg":"RS256","kid":"r"})", std::string(kClaims));
  EXPECT_THAT(
      outcome(signed_by(keys().other, R"({"alg":"RS256","kid":"r"})", std::string(kClaims)), set),
      HasSubstr("the signature is wrong"));
  const auto first = good.find('.');
  const auto second = good.find('.', first + 1);
  const std::string other_claims = good.substr(0, first + 1) +
                                   crypto::base64url_encode(R"({"sub":"admin"})") +
                                   good.substr(second);
  EXPECT_THAT(outcome(other_claims, set), HasSubstr("the signature is wrong"));
  EXPECT_THAT(outcome(good.substr(0, second + 1), set), HasSubstr("the signature is wrong"));
  EXPECT_THAT(outcome(good.substr(0, second + 5), set), HasSubstr("signature is wrong"));
  EXPECT_THAT(outcome(good + "AAAA", set), HasSubstr("signature is wrong"));
  // A PSS signature with an unusual salt is not PS256.
  EXPECT_THAT(
      outcome(signed_by(keys().rsa, R"({"alg":"PS256","kid":"r"})", std::string(kClaims), true, 0),
              set),
      HasSubstr("the signature is wrong"));
}

TEST(JwtSignature, TheTokenDoesNotChooseTheAlgorithm) {
  const std::string claims(kClaims);
  const auto ps_only = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r","alg":"PS256")"));
  EXPECT_THAT(outcome(signed_by(keys().rsa, R"({"alg":"RS256","kid":"r"})", claims), ps_only),
              HasSubstr("no key of the provider"));
  // A token that claims ES256 for an RSA key, and the reverse.
  const auto rsa = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r")"));
  EXPECT_THAT(outcome(signed_by(keys().point, R"({"alg":"ES256","kid":"r"})", claims), rsa),
              HasSubstr("no key of the provider"));
  const auto point = set_of(ec_jwk(R"(,"kid":"e")"));
  EXPECT_THAT(outcome(signed_by(keys().rsa, R"({"alg":"RS256","kid":"e"})", claims), point),
              HasSubstr("no key of the provider"));
}

TEST(JwtSignature, NoneAndSharedSecretsAreRefused) {
  const std::string claims(kClaims);
  const auto set = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r")"));
  const std::string body = "." + crypto::base64url_encode(claims) + ".";
  for (const std::string alg : {"none", "None", "NONE", "nOnE", "HS256", "HS512", "RS512", "EdDSA",
                                "rs256", "", "RS256 "}) {
    const std::string header =
        crypto::base64url_encode(fmt::format(R"({{"alg":"{}","kid":"r"}})", alg));
    EXPECT_THAT(outcome(header + body, set), HasSubstr("expected a signature by")) << alg;
  }
  // The public key as the secret of an HMAC, the classic confusion of algorithms.
  const std::string text = crypto::base64url_encode(R"({"alg":"HS256","kid":"r"})") + "." +
                           crypto::base64url_encode(claims);
  const std::string secret = rsa_jwk(keys().rsa, "");
  unsigned char mac[32];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  EXPECT_THAT(
      outcome(text + "." + crypto::base64url_encode({reinterpret_cast<char*>(mac), size}), set),
      HasSubstr("expected a signature by"));
  EXPECT_THAT(outcome(crypto::base64url_encode(R"({"typ":"JWT"})") + body, set),
              HasSubstr("expected a signature by"));
  EXPECT_THAT(outcome(crypto::base64url_encode(R"({"alg":["RS256"]})") + body, set),
              HasSubstr("expected a signature by"));
}

TEST(JwtSignature, KeysComeOnlyFromTheProviderAndAreSelectedById) {
  const std::string claims(kClaims);
  const auto set = set_of(rsa_jwk(keys().rsa, R"(,"kid":"r")"));
  const std::string own_key = rsa_jwk(keys().other, "");
  // A key that the token itself contains is ignored.
  EXPECT_THAT(
      outcome(signed_by(keys().other, R"({"alg":"RS256","kid":"r","jwk":)" + own_key + "}", claims),
              set),
      HasSubstr("the signature is wrong"));
  EXPECT_THAT(
      outcome(signed_by(keys().other, R"({"alg":"RS256","kid":"r","jku":"https://evil.example/k"})",
                        claims),
              set),
      HasSubstr("the signature is wrong"));
  for (const std::string kid : {"../../dev/null", "' OR 1=1", "R", "r "}) {
    EXPECT_THAT(
        outcome(signed_by(keys().rsa, fmt::format(R"({{"alg":"RS256","kid":"{}"}})", kid), claims),
                set),
        HasSubstr("no key of the provider"));
  }
  for (const std::string header :
       {R"({"alg":"RS256","kid":7})", R"({"alg":"RS256","kid":""})",
        R"({"alg":"RS256","crit":["x"]})", R"({"alg":"RS256","b64":false})"}) {
    EXPECT_THAT(outcome(signed_by(keys().rsa, header, claims), set),
                HasSubstr("unsupported header"));
  }
  const auto two =
      set_of(rsa_jwk(keys().rsa, R"(,"kid":"r")") + "," + rsa_jwk(keys().other, R"(,"kid":"s")"));
  EXPECT_THAT(outcome(signed_by(keys().rsa, R"({"alg":"RS256"})", claims), two),
              HasSubstr("several keys"));
}

TEST(ParseJwt, RejectsOtherText) {
  const std::string header = crypto::base64url_encode(R"({"alg":"RS256"})");
  for (const std::string& text :
       {std::string(), std::string("a.b"), std::string("a.b.c.d"), std::string(".."), header + "..",
        "e30." + header + ".AA", header + ".e30.AA=", header + ".e3 0.AA",
        crypto::base64url_encode(R"(["alg","RS256"])") + ".e30.AA",
        crypto::base64url_encode(R"({"alg":"RS256")") + ".e30.AA",
        header + "." + std::string(kMaxJwtBytes, 'A') + ".AA"}) {
    const auto parsed = parse_jwt(text);
    if (text == header + "..") {
      EXPECT_TRUE(parsed);  // its signature and claims are refused later
      continue;
    }
    EXPECT_FALSE(parsed) << text.substr(0, 80);
  }
  std::string deep = R"({"alg":"RS256","x":)";
  deep += std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_FALSE(parse_jwt(crypto::base64url_encode(deep) + ".e30.AA"));
}

TEST(ParseJwks, SkipsUnusableKeys) {
  const std::string rsa = rsa_jwk(keys().rsa, "");
  const std::string small = rsa_jwk(Key(EVP_RSA_gen(1024)), "");
  for (const std::string& key : {
           small,
           rsa_jwk(keys().rsa, R"(,"use":"enc")"),
           rsa_jwk(keys().rsa, R"(,"key_ops":["encrypt"])"),
           rsa_jwk(keys().rsa, R"(,"key_ops":"verify")"),
           rsa_jwk(keys().rsa, R"(,"alg":"HS256")"),
           rsa_jwk(keys().rsa, R"(,"kid":[])"),
           std::string(R"({"kty":"oct","k":"c2VjcmV0"})"),
           std::string(R"({"kty":"RSA","n":"AQAB","e":"AQAB"})"),
           std::string(R"({"kty":"EC","crv":"P-384","x":"AA","y":"AA"})"),
           std::string(R"({"kty":"EC","crv":"P-256","x":"AA","y":"AA"})"),
           std::string("7"),
           std::string("{}"),
       }) {
    EXPECT_EQ(set_of(key).size(), 0U) << key.substr(0, 60);
  }
  EXPECT_EQ(set_of(rsa).size(), 1U);
  std::string many = rsa;
  for (int i = 0; i < 200; ++i) {
    many += "," + rsa;
  }
  EXPECT_EQ(set_of(many).size(), 64U);
  for (const std::string_view wrong : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":)"}) {
    EXPECT_FALSE(parse_jwks(wrong)) << wrong;
  }
  EXPECT_FALSE(parse_jwks(R"({"keys":[],"x":")" + std::string(kMaxJwksBytes, 'x') + "\"}"));
}

TEST(ParseJwks, APointOffTheCurveVerifiesNothing) {
  const std::string off =
      fmt::format(R"({{"kty":"EC","crv":"P-256","kid":"e","x":"{0}","y":"{0}"}})",
                  crypto::base64url_encode(std::string(32, '\x01')));
  const auto set = set_of(off);
  ASSERT_EQ(set.size(), 1U);
  EXPECT_THAT(
      outcome(signed_by(keys().point, R"({"alg":"ES256","kid":"e"})", std::string(kClaims)), set),
      HasSubstr("the signature is wrong"));
}

TEST(IdTokenClaims, IdentifyTheUser) {
  const auto claims = check_claims(kClaims, expected());
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->user, "ada");
  EXPECT_EQ(claims->groups, (std::vector<std::string>{"hpc", "ops"}));
  EXPECT_EQ(complaint(claims_with("", "")), "user ada");
}

TEST(IdTokenClaims, EachIsChecked) {
  const std::vector<std::array<std::string, 3>> table{
      {"iss", "", "iss"},
      {"iss", R"("https://id.example/")", "iss"},
      {"iss", R"(["https://id.example"])", "iss"},
      {"aud", "", "aud is missing"},
      {"aud", R"("other")", "aud does not contain"},
      {"aud", R"(["other","third"])", "aud does not contain"},
      {"aud", "[]", "aud does not contain"},
      {"aud", R"([["ceems"]])", "aud does not contain"},
      {"aud", R"(["ceems","other"])", "azp"},
      {"azp", R"("other")", "azp"},
      {"azp", "7", "azp"},
      {"sub", "", "sub"},
      {"sub", "7", "sub"},
      {"exp", "", "exp"},
      {"exp", R"("1767225900")", "exp"},
      {"exp", "1767225540", "exp"},
      {"exp", "1e300", "exp"},
      {"exp", "-1", "exp"},
      {"iat", "", "iat"},
      {"iat", "1767225661", "iat"},
      {"iat", "1767139139", "iat"},
      {"nbf", "1767225661", "nbf"},
      {"nbf", "true", "nbf"},
      {"nonce", "", "nonce"},
      {"nonce", R"("m")", "nonce"},
      {"nonce", R"(["n"])", "nonce"},
      {"preferred_username", "", "preferred_username"},
      {"preferred_username", R"("")", "preferred_username"},
      {"preferred_username", R"("a\nb")", "preferred_username"},
      {"preferred_username", R"(" ada")", "preferred_username"},
      {"preferred_username", R"({"x":"ada"})", "preferred_username"},
  };
  for (const auto& [name, value, part] : table) {
    EXPECT_THAT(complaint(claims_with(name, value)), HasSubstr(part)) << name << " " << value;
    EXPECT_THAT(complaint(claims_with(name, value)), HasSubstr("ID token: ")) << name;
  }
  EXPECT_THAT(complaint("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(complaint(""), HasSubstr("not a JSON object"));
}

TEST(IdTokenClaims, ToleranceAndOptionalClaimsAreAccepted) {
  EXPECT_EQ(complaint(claims_with("exp", "1767225541")), "user ada");  // within the skew
  EXPECT_EQ(complaint(claims_with("exp", "1767225900.75")), "user ada");
  EXPECT_EQ(complaint(claims_with("iat", "1767225660")), "user ada");
  EXPECT_EQ(complaint(claims_with("nbf", "1767225660")), "user ada");
  EXPECT_EQ(complaint(claims_with("aud", R"(["ceems"])")), "user ada");
  EXPECT_EQ(complaint(claims_with("azp", R"("ceems")")), "user ada");
}

TEST(IdTokenClaims, AnEmptyExpectationMatchesNothing) {
  ExpectedClaims none = expected();
  none.nonce.clear();
  EXPECT_THAT(complaint(claims_with("nonce", R"("")"), none), HasSubstr("nonce"));
  none = expected();
  none.issuer.clear();
  EXPECT_THAT(complaint(claims_with("iss", R"("")"), none), HasSubstr("iss"));
  none = expected();
  none.client_id.clear();
  EXPECT_THAT(complaint(claims_with("aud", R"("")"), none), HasSubstr("aud"));
}

TEST(IdTokenClaims, SubIsUsedOnlyIfAllowed) {
  ExpectedClaims wanted = expected();
  wanted.sub_instead = true;
  EXPECT_EQ(complaint(claims_with("preferred_username", ""), wanted), "user 1");
  // A claim that is present but invalid is not replaced by another.
  EXPECT_THAT(complaint(claims_with("preferred_username", "7"), wanted),
              HasSubstr("preferred_username"));
}

TEST(IdTokenClaims, EmailMustBeVerified) {
  ExpectedClaims wanted = expected();
  wanted.user_claim = "email";
  EXPECT_THAT(complaint(claims_with("email", R"("ada@example.org")"), wanted),
              HasSubstr("not verified"));
  EXPECT_THAT(
      complaint(claims_with("email", R"("ada@example.org","email_verified":"true")"), wanted),
      HasSubstr("not verified"));
  EXPECT_EQ(complaint(claims_with("email", R"("ada@example.org","email_verified":true)"), wanted),
            "user ada@example.org");
}

TEST(IdTokenClaims, GroupsMayBeOneString) {
  ExpectedClaims wanted = expected();
  const auto one = check_claims(claims_with("groups", R"("ops")"), wanted);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->groups, std::vector<std::string>{"ops"});
  wanted.groups_claim.clear();
  EXPECT_TRUE(check_claims(kClaims, wanted)->groups.empty());
}

TEST(Metadata, RequiresItsFourAddresses) {
  const std::string whole =
      R"({"issuer":"i","authorization_endpoint":"a","token_endpoint":"t","jwks_uri":"j")";
  const auto basic = parse_provider_metadata(whole + "}");
  ASSERT_TRUE(basic);
  EXPECT_EQ(basic->token_endpoint, "t");
  EXPECT_FALSE(basic->secret_in_form);
  EXPECT_TRUE(parse_provider_metadata(
                  whole + R"(,"token_endpoint_auth_methods_supported":["client_secret_post"]})")
                  ->secret_in_form);
  EXPECT_FALSE(parse_provider_metadata(R"({"issuer":"i"})"));
  EXPECT_FALSE(parse_provider_metadata("no"));
}

TEST(TokenAnswer, ContainsTheIdToken) {
  EXPECT_EQ(parse_id_token(R"({"access_token":"x","id_token":"a.b.c"})"), "a.b.c");
  for (const std::string_view wrong : {"", "{}", R"({"id_token":7})", R"({"access_token":"x"})"}) {
    EXPECT_FALSE(parse_id_token(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace ceems::access
