#include "crypto/digest.h"

#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::crypto {
namespace {

TEST(Digest, IsSha256) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(base64_encode(sha256("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_NE(random_bytes(16), random_bytes(16));
  EXPECT_EQ(random_bytes(16).size(), 16U);
}

TEST(Digest, HmacIsThatOfTheStandard) {
  // RFC 4231, section 4.3.
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace ceems::crypto
