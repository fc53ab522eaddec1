#include "crypto/password.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems::crypto {
namespace {

// The bcrypt hash of "secret" with cost 4, made with crypt(3).
constexpr const char* kHash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

TEST(Password, MatchesOnlyItsHash) {
  EXPECT_TRUE(bcrypt_matches("secret", kHash));
  EXPECT_FALSE(bcrypt_matches("Secret", kHash));
  EXPECT_FALSE(bcrypt_matches("", kHash));
  EXPECT_FALSE(bcrypt_matches(std::string("secret\0x", 8), kHash));
  const std::string dummy = dummy_hash(kHash);
  EXPECT_EQ(dummy.substr(0, 7), "$2b$04$");
  EXPECT_FALSE(bcrypt_matches("secret", dummy));
}

TEST(Password, CacheIsBoundedAndGuessesDoNotEvictGoodPasswords) {
  PasswordCache cache(50);
  cache.add("good", true);
  for (int i = 0; i < 1000; ++i) {
    cache.add("bad" + std::to_string(i), false);
  }
  EXPECT_EQ(cache.size(), 51U);
  EXPECT_EQ(cache.find("good"), true);
  EXPECT_EQ(cache.find("bad999"), false);
  EXPECT_EQ(cache.find("bad0"), std::nullopt);
  EXPECT_NE(PasswordCache::digest("a", "b", "c"), PasswordCache::digest("ab", "", "c"));
}

}  // namespace
}  // namespace ceems::crypto
