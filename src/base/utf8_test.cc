#include "base/utf8.h"

#include <array>

#include <gtest/gtest.h>

namespace ceems {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, LengthIsThatOfTheFirstCharacter) {
  EXPECT_EQ(utf8_length("ab"), 1U);
  EXPECT_EQ(utf8_length("\0"sv), 1U);
  EXPECT_EQ(utf8_length("\u00e9a"), 2U);
  EXPECT_EQ(utf8_length("\u20aca"), 3U);
  EXPECT_EQ(utf8_length("\U0001F600a"), 4U);
  EXPECT_EQ(utf8_length(""), 0U);
}

TEST(Utf8, RejectsOverlongFormsSurrogatesAndTruncatedCharacters) {
  constexpr std::array kBroken = {
      "\x80"sv,
      "\xBF"sv,
      "\xC0\x80"sv,
      "\xC1\xBF"sv,
      "\xC3"sv,
      "\xC3\x28"sv,
      "\xE0\x80\x80"sv,
      "\xE0\x9F\xBF"sv,
      "\xE2\x82"sv,
      "\xED\xA0\x80"sv,
      "\xED\xBF\xBF"sv,
      "\xE2\x28\xA1"sv,
      "\xF0\x80\x80"sv,
      "\xF0\x9F\x98"sv,
      "\xF0\x8F\xBF\xBF"sv,
      "\xF4\x90\x80\x80"sv,
      "\xF5\x80\x80"sv,
      "\xFE"sv,
      "\xFF"sv,
  };
  for (const std::string_view text : kBroken) {
    EXPECT_EQ(utf8_length(text), 0U) << testing::PrintToString(text);
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("gr\u00fc\u00df \U0001F600"));
  EXPECT_FALSE(is_utf8("gr\u00fc\xff"));
}

TEST(Utf8, EveryCodePointIsReadBackAsWritten) {
  for (char32_t point = 0; point <= 0x110000; ++point) {
    std::string text;
    append_utf8(text, point);
    const std::size_t expected =
        point < 0x80 ? 1 : (point < 0x800 ? 2 : (point < 0x10000 || point > 0x10FFFF ? 3 : 4));
    ASSERT_EQ(text.size(), expected) << static_cast<unsigned>(point);
    ASSERT_EQ(utf8_length(text), expected) << static_cast<unsigned>(point);
    ASSERT_EQ(code_point(text), is_code_point(point) ? point : 0xFFFD);
    ASSERT_EQ(text == kReplacementCharacter, point == 0xFFFD || !is_code_point(point));
  }
  EXPECT_FALSE(is_code_point(0xD800));
  EXPECT_FALSE(is_code_point(0xDFFF));
  EXPECT_FALSE(is_code_point(0x110000));
  EXPECT_TRUE(is_code_point(0x10FFFF));
}

TEST(Utf8, CleanTextReplacesNulsAndEachMalformedByte) {
  EXPECT_EQ(clean_text(""), "");
  EXPECT_EQ(clean_text("plain \u00e9\n"), "plain \u00e9\n");
  EXPECT_EQ(clean_text("a\0b"sv), "a\uFFFDb");
  EXPECT_EQ(clean_text("a\xff\xfe"), "a\uFFFD\uFFFD");
  EXPECT_EQ(clean_text("\xE2\x82\u20ac"), "\uFFFD\uFFFD\u20ac");
  EXPECT_EQ(clean_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  // At every position, because long texts are checked eight bytes at a time.
  const std::string plain = "0123456789abcdefghijklmno";
  for (std::size_t at = 0; at < plain.size(); ++at) {
    for (const char byte : {'\0', '\x80', '\xff'}) {
      std::string text = plain;
      text[at] = byte;
      EXPECT_EQ(clean_text(text), plain.substr(0, at) + "\uFFFD" + plain.substr(at + 1));
    }
    std::string text = plain;
    text[at] = '\x01';
    EXPECT_EQ(clean_text(text), text);
  }
  std::string out = "before ";
  append_clean_text(out, "\xF0\x9F\x98");
  EXPECT_EQ(out, "before \uFFFD\uFFFD\uFFFD");
}

TEST(TerminalSafe, ReplacesWhatControlsATerminal) {
  EXPECT_EQ(terminal_safe("naïve 名 job-1"), "naïve 名 job-1");
  EXPECT_EQ(terminal_safe("a\x1b[31mb\x07\r\n\tc\x7f"),
            "a\uFFFD[31mb\uFFFD\uFFFD\uFFFD\uFFFDc\uFFFD");
  EXPECT_EQ(terminal_safe("a\u009b31mb"), "a\uFFFD31mb");      // CSI as one C1 character
  EXPECT_EQ(terminal_safe("\u202Egpj.exe"), "\uFFFDgpj.exe");  // right-to-left override
  EXPECT_EQ(terminal_safe("x\xff\xfey"), "x\uFFFD\uFFFDy");
  EXPECT_EQ(terminal_safe(std::string("a\0b", 3)), "a\uFFFDb");
}

TEST(TerminalSafe, SaysWhatItCut) {
  EXPECT_EQ(terminal_safe("名名名", 3), "名名名");
  EXPECT_EQ(terminal_safe("名名\xff名", 3), "名名\uFFFD…");
  EXPECT_EQ(terminal_safe("", 0), "");
}

}  // namespace
}  // namespace ceems
