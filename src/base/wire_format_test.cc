#include "base/wire_format.h"

#include <vector>

#include <gtest/gtest.h>

namespace ceems {
namespace {

using namespace std::string_literals;

std::vector<WireField> fields_of(std::string_view message) {
  std::vector<WireField> fields;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    fields.push_back(*field);
  }
  EXPECT_TRUE(reader.good());
  return fields;
}

TEST(WireFormat, GivesFieldsInTheirOrder) {
  // 1: "ab", 9: varint 150, 10: 64 bits, 11: 32 bits, 2^29 - 1: "".
  const std::string message =
      "\x0a\x02"
      "ab\x48\x96\x01\x51"
      "12345678\x5d"
      "1234\xfa\xff\xff\xff\x0f\x00"s;
  const auto fields = fields_of(message);
  ASSERT_EQ(fields.size(), 5U);
  EXPECT_EQ(fields[0].number, 1U);
  EXPECT_TRUE(fields[0].has_length);
  EXPECT_EQ(fields[0].bytes, "ab");
  EXPECT_EQ(fields[0].bytes.data(), message.data() + 2);
  EXPECT_EQ(fields[1].number, 9U);
  EXPECT_FALSE(fields[1].has_length);
  EXPECT_EQ(fields[1].bytes, "\x48\x96\x01");
  EXPECT_EQ(fields[1].varint(), 150U);
  EXPECT_FALSE(fields[0].varint());
  EXPECT_FALSE(fields[2].varint());
  EXPECT_EQ(fields[2].bytes,
            "\x51"
            "12345678");
  EXPECT_EQ(fields[3].bytes,
            "\x5d"
            "1234");
  EXPECT_EQ(fields[4].number, (1U << 29U) - 1);
  EXPECT_EQ(fields[4].bytes, "");
  std::string written;
  for (const WireField& field : fields) {
    append_wire_field(written, field);
  }
  EXPECT_EQ(written, message);
}

TEST(WireFormat, LongTextsSurviveReadingAndWriting) {
  const std::string text(300, 'x');
  std::string message;
  append_wire_field(message, {.number = 2000, .has_length = true, .bytes = text});
  const auto fields = fields_of(message);
  ASSERT_EQ(fields.size(), 1U);
  EXPECT_EQ(fields[0].number, 2000U);
  EXPECT_EQ(fields[0].bytes, text);
}

TEST(WireFormat, AcceptsNegativeNumbersInTenBytes) {
  EXPECT_EQ(fields_of("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s).size(), 1U);
}

TEST(WireFormat, MalformedMessagesEndEarly) {
  for (const std::string& text :
       {"\x0a"s, "\x0a\x05"s + "ab", "\x00"s, "\x0b"s, "\x0c"s, "\x0e"s, "\x0f"s, "\x18"s,
        "\x18\x80"s, "\x0d\x01"s, "\x09" + "1234567"s, "\x8a\x00"s, "\x0a\x81\x00"s + "a",
        "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"s, "\xfa\xff\xff\xff\x1f\x00"s,
        "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, std::string(11, '\xff')}) {
    WireReader reader(text);
    EXPECT_FALSE(reader.next()) << testing::PrintToString(text);
    EXPECT_FALSE(reader.good()) << testing::PrintToString(text);
    EXPECT_FALSE(reader.next());
  }
  const std::string half = "\x0a\x01x\x0a"s;
  WireReader reader(half);
  EXPECT_TRUE(reader.next());
  EXPECT_TRUE(reader.good());
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.good());
}

TEST(WireFormat, AnEmptyMessageIsValid) {
  WireReader reader("");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.good());
}

}  // namespace
}  // namespace ceems
