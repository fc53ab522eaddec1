#include "crypto/password.h"

#include <cctype>
#include <set>
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

TEST(Password, HashesWithARandomSalt) {
  const auto hash = bcrypt_hash("secret", 4);
  ASSERT_TRUE(hash) << hash.error().message;
  EXPECT_EQ(hash->substr(0, 7), "$2y$04$");
  EXPECT_EQ(hash->size(), 60U);
  EXPECT_TRUE(bcrypt_matches("secret", *hash));
  EXPECT_FALSE(bcrypt_matches("secre", *hash));
  EXPECT_NE(*hash, *bcrypt_hash("secret", 4));
}

TEST(Password, RefusesToHashWhatBcryptWouldCut) {
  EXPECT_TRUE(bcrypt_hash(std::string(72, 'x'), 4));
  EXPECT_FALSE(bcrypt_hash(std::string(73, 'x'), 4));
  EXPECT_FALSE(bcrypt_hash(std::string("a\0b", 3), 4));
  EXPECT_FALSE(bcrypt_hash("secret", 3));
}

TEST(Password, RandomTextsAreLettersAndDigits) {
  const auto text = random_text(2000);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->size(), 2000U);
  std::set<char> seen(text->begin(), text->end());
  EXPECT_EQ(seen.size(), 62U);  // one missing has a chance of 4e-13
  for (const char c : seen) {
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) != 0) << c;
  }
  EXPECT_NE(*random_text(24), *random_text(24));
}

}  // namespace
}  // namespace ceems::crypto
