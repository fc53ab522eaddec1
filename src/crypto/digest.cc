#include "crypto/digest.h"

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

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  CEEMS_CHECK(
      ::RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1);
  return bytes;
}

}  // namespace ceems::crypto
