// Verifies signatures of JSON Web Tokens with OpenSSL.
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include "access/jwt.h"
#include "crypto/openssl_handle.h"

namespace ceems::access {
namespace {

using crypto::Free;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, Free<ECDSA_SIG_free>>;

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Number number_of(const std::string& bytes) {
  return Number(::BN_bin2bn(bytes_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

crypto::Key make_key(const char* kind, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(::OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(::EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* made = nullptr;
  if (!parameters || !context || ::EVP_PKEY_fromdata_init(context.get()) != 1 ||
      ::EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  crypto::Key key(made);
  const KeyContext check(::EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  // This fails for a point that is not on the curve, an even modulus, and an exponent of 1.
  return check && ::EVP_PKEY_public_check(check.get()) == 1 ? std::move(key) : nullptr;
}

crypto::Key rsa_key(const Jwk& key) {
  const Builder builder(::OSSL_PARAM_BLD_new());
  const Number modulus = number_of(key.modulus);
  const Number exponent = number_of(key.exponent);
  if (!builder || !modulus || !exponent ||
      ::OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      ::OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return make_key("RSA", builder.get());
}

crypto::Key ec_key(const Jwk& key) {
  const Builder builder(::OSSL_PARAM_BLD_new());
  const std::string point = '\x04' + key.point_x + key.point_y;  // SEC 1 §2.3.3, uncompressed
  if (!builder ||
      ::OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1",
                                        0) != 1 ||
      ::OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                         point.size()) != 1) {
    return nullptr;
  }
  return make_key("EC", builder.get());
}

/// Converts r and s as a JWS contains them (RFC 7518 §3.4) to DER for OpenSSL; empty on failure.
std::string der_signature(const std::string& raw) {
  constexpr std::size_t kHalf = 32;
  if (raw.size() != 2 * kHalf) {
    return {};
  }
  const EcSignature signature(::ECDSA_SIG_new());
  Number r_part = number_of(raw.substr(0, kHalf));
  Number s_part = number_of(raw.substr(kHalf));
  if (!signature || !r_part || !s_part ||
      ::ECDSA_SIG_set0(signature.get(), r_part.get(), s_part.get()) != 1) {
    return {};
  }
  // The signature owns them now.
  static_cast<void>(r_part.release());
  static_cast<void>(s_part.release());
  unsigned char* encoded = nullptr;
  const int size = ::i2d_ECDSA_SIG(signature.get(), &encoded);
  if (size <= 0) {
    return {};
  }
  std::string der(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(size));
  ::OPENSSL_free(encoded);
  return der;
}

bool set_padding(EVP_PKEY_CTX* context, JwtAlgorithm algorithm) {
  if (algorithm != JwtAlgorithm::kPs256) {
    return true;
  }
  // RFC 7518 §3.5: MGF1 with SHA-256, and a salt as long as the hash.
  return ::EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
         ::EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1 &&
         ::EVP_PKEY_CTX_set_rsa_mgf1_md(context, ::EVP_sha256()) == 1;
}

bool is_signed_by(const Jwt& token, const Jwk& jwk) {
  const crypto::Key key = jwk.rsa ? rsa_key(jwk) : ec_key(jwk);
  const std::string signature = jwk.rsa ? token.signature : der_signature(token.signature);
  const DigestContext context(::EVP_MD_CTX_new());
  EVP_PKEY_CTX* key_context = nullptr;  // belongs to `context`
  if (!key || !context || signature.empty() ||
      ::EVP_DigestVerifyInit(context.get(), &key_context, ::EVP_sha256(), nullptr, key.get()) !=
          1 ||
      !set_padding(key_context, token.algorithm)) {
    return false;
  }
  return ::EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(),
                            bytes_of(token.signed_text), token.signed_text.size()) == 1;
}

std::string_view algorithm_name(JwtAlgorithm algorithm) {
  switch (algorithm) {
    case JwtAlgorithm::kRs256:
      return "RS256";
    case JwtAlgorithm::kPs256:
      return "PS256";
    case JwtAlgorithm::kEs256:
      return "ES256";
  }
  return "";
}

/// A key has one type and may be restricted to one algorithm, so the token cannot choose.
bool suits(const Jwk& key, JwtAlgorithm algorithm) {
  return key.rsa == (algorithm != JwtAlgorithm::kEs256) &&
         (key.algorithm.empty() || key.algorithm == algorithm_name(algorithm));
}

}  // namespace

Result<> verify_signature(const Jwt& token, const std::vector<Jwk>& keys) {
  const Jwk* chosen = nullptr;
  for (const Jwk& key : keys) {
    if (!suits(key, token.algorithm) || (!token.key_id.empty() && key.key_id != token.key_id)) {
      continue;
    }
    if (chosen != nullptr) {
      return fail(ErrorCode::kNotFound, "ID token: several keys of the provider match it");
    }
    chosen = &key;
  }
  if (chosen == nullptr) {
    return fail(ErrorCode::kNotFound, "ID token: no key of the provider matches it");
  }
  if (!is_signed_by(token, *chosen)) {
    return fail(ErrorCode::kPermissionDenied, "ID token: the signature is wrong");
  }
  return {};
}

}  // namespace ceems::access
