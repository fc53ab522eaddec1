#include "crypto/base64.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::crypto {
namespace {

TEST(Base64, DecodesWhatItEncodes) {
  for (const auto& [plain, coded] :
       std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded), plain);
  }
  for (const char* bad : {"Zg", "Zg=", "Zg==Zg==", "Z===", "====", "Zm9v ", "Zm9-", "=Zg="}) {
    EXPECT_EQ(base64_decode(bad), std::nullopt) << bad;
  }
}

TEST(Base64, UrlFormHasOnlyOneSpelling) {
  for (const std::string text : {"", "a", "ab", "abc", "\xFB\xFF\xFE?"}) {
    EXPECT_EQ(base64url_decode(base64url_encode(text)), text);
  }
  EXPECT_EQ(base64url_encode("\xFB\xFF\xFE"), "-__-");
  // Padding, the other alphabet, non-zero bits after the end, a single character.
  for (const char* bad : {"Zg==", "+//+", "Zh", "Zm9=", "Z", "Z g", "Zg\n"}) {
    EXPECT_EQ(base64url_decode(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace ceems::crypto
