#include "crypto/digest.h"

#include <iterator>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/check.h"

namespace ceems::crypto {

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  CEEMS_CHECK(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                     reinterpret_cast<unsigned char*>(digest.data()), nullptr) != nullptr);
  return digest;
}

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) {
    fmt::format_to(std::back_inserter(digits), "{:02x}", static_cast<unsigned char>(byte));
  }
  return digits;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  CEEMS_CHECK(
      ::RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

}  // namespace ceems::crypto
