#include "crypto/signature.h"

#include <array>
#include <cstddef>
#include <limits>

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "crypto/base64.h"
#include "crypto/digest.h"
#include "crypto/openssl_handle.h"

namespace ceems::crypto {
namespace {

constexpr std::size_t kPublicKeySize = 32;
constexpr std::size_t kSignatureSize = 64;

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());  // NOLINT: bytes are bytes
}

unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());  // NOLINT: bytes are bytes
}

/// Gives no passphrase, so that OpenSSL does not ask for one at the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

Result<Key> read_key(std::string_view pem) {
  const int size =
      pem.size() > std::size_t{std::numeric_limits<int>::max()} ? 0 : static_cast<int>(pem.size());
  const Bio bio(::BIO_new_mem_buf(pem.data(), size));
  Key key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a private key in PEM without a passphrase: {}", openssl_reason());
  }
  if (::EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) {
    return fail(ErrorCode::kInvalidArgument, "expected an Ed25519 key, got another kind");
  }
  return key;
}

}  // namespace

Result<std::string> make_signing_key() {
  const KeyContext context(::EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr));
  EVP_PKEY* made = nullptr;
  if (!context || ::EVP_PKEY_keygen_init(context.get()) != 1 ||
      ::EVP_PKEY_keygen(context.get(), &made) != 1) {
    return fail(ErrorCode::kInternal, "cannot make a key: {}", openssl_reason());
  }
  const Key key(made);
  const Bio bio(::BIO_new(::BIO_s_mem()));
  if (::PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) != 1) {
    return fail(ErrorCode::kInternal, "cannot write a key: {}", openssl_reason());
  }
  char* data = nullptr;
  const long size = ::BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> public_key_of(std::string_view private_key) {
  CEEMS_TRY(key, read_key(private_key));
  std::string bytes(kPublicKeySize, '\0');
  std::size_t size = bytes.size();
  if (::EVP_PKEY_get_raw_public_key(key.get(), bytes_of(bytes), &size) != 1 ||
      size != kPublicKeySize) {
    return fail(ErrorCode::kInternal, "cannot read the public key: {}", openssl_reason());
  }
  return bytes;
}

Result<std::string> sign(std::string_view private_key, std::string_view message) {
  CEEMS_TRY(key, read_key(private_key));
  const DigestContext context(::EVP_MD_CTX_new());
  std::string signature(kSignatureSize, '\0');
  std::size_t size = signature.size();
  if (::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      ::EVP_DigestSign(context.get(), bytes_of(signature), &size, bytes_of(message),
                       message.size()) != 1) {
    return fail(ErrorCode::kInternal, "cannot sign: {}", openssl_reason());
  }
  return signature;
}

bool is_signed_by(std::string_view public_key,
                  std::string_view message,
                  std::string_view signature) {
  if (public_key.size() != kPublicKeySize || signature.size() != kSignatureSize) {
    return false;
  }
  const Key key(::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes_of(public_key),
                                              public_key.size()));
  const DigestContext context(::EVP_MD_CTX_new());
  const bool good =
      key && ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      ::EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message),
                         message.size()) == 1;
  ::ERR_clear_error();
  return good;
}

std::string fingerprint(std::string_view public_key) {
  return "SHA256:" + base64_encode(sha256(public_key));
}

}  // namespace ceems::crypto
