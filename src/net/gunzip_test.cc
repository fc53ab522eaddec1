#include "net/gunzip.h"

#include <gtest/gtest.h>

#include "net/encoding.h"

namespace ceems::net {
namespace {

std::string packed(std::string_view text) {
  Compressor compressor(Encoding::kGzip, 6);
  std::string out;
  EXPECT_TRUE(compressor.add(text, true, out));
  return out;
}

TEST(Gunzip, UndoesWhatGzipDid) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string(100'000, 'x')}) {
    const auto plain = gunzip(packed(text), 100'000);
    ASSERT_TRUE(plain);
    EXPECT_EQ(*plain, text);
  }
}

TEST(Gunzip, BombsAreBounded) {
  std::string bomb;
  bomb.resize(10'000'000, 'x');
  const auto plain = gunzip(packed(bomb), 1'000'000);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().code, ErrorCode::kInvalidArgument);
}

TEST(Gunzip, WhatIsNotOneWholeMemberIsRefused) {
  const std::string good = packed("text");
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
  for (const std::string& bad :
       {std::string(), std::string("text"), good.substr(0, good.size() - 1), good + "x",
        good + good, flipped}) {
    const auto plain = gunzip(bad, 1000);
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error().code, ErrorCode::kParse);
  }
}

}  // namespace
}  // namespace ceems::net
