#pragma once

// Keys for tests that need signatures.

#include <string>

#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/evp.h>

#include "crypto/openssl_handle.h"

namespace ceems::access {

using crypto::Key;

/// A number of the key, by its name in openssl/core_names.h, as big-endian bytes.
inline std::string key_number(const Key& key, const char* name) {
  BIGNUM* value = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), name, &value), 1);
  std::string bytes(static_cast<std::size_t>(BN_num_bytes(value)), '\0');
  BN_bn2bin(value, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(value);
  return bytes;
}

}  // namespace ceems::access
