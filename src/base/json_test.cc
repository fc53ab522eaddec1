#include "base/json.h"

#include <limits>

#include <gtest/gtest.h>

namespace ceems {
namespace {

std::string escaped(std::string_view text, JsonEscape escape) {
  std::string out = "x";
  append_json_string(out, text, escape);
  return out.substr(1);
}

TEST(JsonString, IsSafeInsideHtml) {
  std::string out;
  append_json_string(out, "a\"\\\n\x01<&>\xE2\x80\xA8\xE2\x80\xA9\xC3\xA4\x7F\xFF");
  EXPECT_EQ(out, R"("a\"\\\n\u0001\u003c\u0026\u003e\u2028\u2029)"
                 "\xC3\xA4\x7F"
                 R"(\ufffd")");
}

TEST(JsonString, IsPlainElsewhere) {
  EXPECT_EQ(escaped("a\"\\\n\x01<&>\xE2\x80\xA8\xC3\xA4\x7F\xFF", JsonEscape::kPlain),
            R"("a\"\\\n\u0001<&>)"
            "\xE2\x80\xA8\xC3\xA4"
            R"(\u007f)"
            "\xEF\xBF\xBD\"");
}

TEST(JsonString, EscapesAllControlCharacters) {
  for (const JsonEscape escape : {JsonEscape::kHtml, JsonEscape::kPlain}) {
    EXPECT_EQ(escaped(std::string_view("\0\x1F\b\f\r\t /", 8), escape),
              R"("\u0000\u001f\u0008\u000c\r\t /")");
    EXPECT_EQ(escaped("", escape), R"("")");
  }
}

TEST(JsonString, ReplacesEachByteOfACutCharacter) {
  EXPECT_EQ(escaped("\xE2\x82z", JsonEscape::kHtml), R"("\ufffd\ufffdz")");
  EXPECT_EQ(escaped("z\xF0\x9F", JsonEscape::kPlain), "\"z\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_EQ(escaped("\xED\xA0\x80", JsonEscape::kHtml), R"("\ufffd\ufffd\ufffd")");  // a surrogate
}

TEST(JsonWriter, PutsCommasAndNothingElse) {
  std::string out = "before ";
  JsonWriter json(out);
  json.begin_object().member("a", 1).key("b").begin_array().value("x").begin_object().end_object();
  json.begin_array().end_array().raw("{}").end_array().raw_member("c", "[1]");
  json.raw_key("\"d\"").value(2).end_object();
  EXPECT_EQ(out, R"(before {"a":1,"b":["x",{},[],{}],"c":[1],"d":2})");
}

TEST(JsonWriter, WritesEveryKindOfValue) {
  std::string out;
  JsonWriter json(out);
  json.begin_array().value(true).value(false).value(nullptr);
  json.value(std::numeric_limits<std::int64_t>::min()).value(7);
  json.value(0.5).value(3.0).value(1e300).value(0.1 + 0.2);
  json.value(std::numeric_limits<double>::quiet_NaN());
  json.value(-std::numeric_limits<double>::infinity());
  json.value(std::string("s")).value(std::string_view("v"));
  json.begin_value() += "12.50";
  json.end_array();
  EXPECT_EQ(out,
            "[true,false,null,-9223372036854775808,7,0.5,3,1e+300,0.30000000000000004,0,0,"
            "\"s\",\"v\",12.50]");
}

TEST(JsonWriter, EscapesKeysAndTextsAsAsked) {
  std::string html;
  JsonWriter(html).begin_object().member("<", "\"&").end_object();
  EXPECT_EQ(html, R"({"\u003c":"\"\u0026"})");
  std::string plain;
  JsonWriter(plain, JsonEscape::kPlain).begin_object().member("<", "\"&").end_object();
  EXPECT_EQ(plain, R"({"<":"\"&"})");
}

TEST(JsonWriter, ContinuesInAnotherString) {
  std::string first;
  JsonWriter json(first);
  json.begin_array().value(1);
  std::string second;
  json.continue_in(second);
  json.value(2).end_array();
  EXPECT_EQ(first + second, "[1,2]");
}

}  // namespace
}  // namespace ceems
