#include "crypto/signature.h"

#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::crypto {
namespace {

/// The bytes that pairs of hexadecimal digits stand for.
std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// RFC 8410 §10.3 prints such a key: the fixed beginning of PKCS #8, and 32 bytes.
std::string pem_of(std::string_view secret) {
  return "-----BEGIN PRIVATE KEY-----\n" +
         base64_encode(from_hex("302e020100300506032b657004220420") + from_hex(secret)) +
         "\n-----END PRIVATE KEY-----\n";
}

TEST(Signature, IsThatOfTheStandard) {
  // RFC 8032 §7.1, TEST 2.
  const std::string key =
      pem_of("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
  const std::string public_key =
      from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::string signature = from_hex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
      "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_EQ(public_key_of(key).value(), public_key);
  EXPECT_EQ(sign(key, "\x72").value(), signature);
  EXPECT_TRUE(is_signed_by(public_key, "\x72", signature));
  // echo 3d40…660c | xxd -r -p | openssl dgst -sha256 -binary | base64
  EXPECT_EQ(fingerprint(public_key), "SHA256:OfcT0KZEJT8EUpQhufUbmwiXnQgpWVnE85kO5hf1E58=");
}

TEST(Signature, HoldsForOneMessageAndOneKey) {
  const std::string key = make_signing_key().value();
  const std::string other = make_signing_key().value();
  EXPECT_NE(key, other);
  const std::string public_key = public_key_of(key).value();
  std::string signature = sign(key, "40 W").value();
  EXPECT_TRUE(is_signed_by(public_key, "40 W", signature));
  EXPECT_FALSE(is_signed_by(public_key, "41 W", signature));
  EXPECT_FALSE(is_signed_by(public_key_of(other).value(), "40 W", signature));
  EXPECT_FALSE(is_signed_by(public_key, "40 W", signature.substr(1)));
  EXPECT_FALSE(is_signed_by("", "40 W", signature));
  signature[5] = static_cast<char>(signature[5] ^ 1);
  EXPECT_FALSE(is_signed_by(public_key, "40 W", signature));
}

TEST(Signature, RefusesOtherKeys) {
  for (const std::string_view key : {"", "no key", "-----BEGIN PRIVATE KEY-----\n"}) {
    EXPECT_EQ(sign(key, "m").error().code, ErrorCode::kInvalidArgument) << key;
    EXPECT_EQ(public_key_of(key).error().code, ErrorCode::kInvalidArgument) << key;
  }
  // An X25519 key: the same form with another algorithm.
  const std::string agreement =
      "-----BEGIN PRIVATE KEY-----\n" +
      base64_encode(from_hex("302e020100300506032b656e04220420") + std::string(32, 'k')) +
      "\n-----END PRIVATE KEY-----\n";
  EXPECT_EQ(sign(agreement, "m").error().message, "expected an Ed25519 key, got another kind");
}

}  // namespace
}  // namespace ceems::crypto
