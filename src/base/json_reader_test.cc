#include "base/json_reader.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

std::string canonical(std::string_view text) {
  std::string out = "|";
  return append_json(out, text) ? out.substr(1) : "no: " + out;
}

TEST(Json, KeepsNumbersAndSortsKeys) {
  EXPECT_EQ(canonical(R"({ "b" : 1.50, "a":[1e3,{"z":null,"y":true}], "c":12345678901234567890 })"),
            R"({"a":[1e3,{"y":true,"z":null}],"b":1.50,"c":12345678901234567890})");
  EXPECT_EQ(canonical(" [ ] "), "[]");
  EXPECT_EQ(canonical("{}"), "{}");
}

TEST(Json, TakesTheLastOfRepeatedKeys) {
  EXPECT_EQ(canonical(R"({"a":1,"b":3,"a":2})"), R"({"a":2,"b":3})");
}

TEST(Json, ReadsEscapes) {
  EXPECT_EQ(canonical(R"("\ud83d\ude00 \ud800 \u00e4")"),
            "\"\xF0\x9F\x98\x80 \xEF\xBF\xBD \xC3\xA4\"");
  EXPECT_EQ(canonical(R"("\"\\\/\b\f\n\r\t\u003C")"), R"("\"\\/\u0008\u000c\n\r\t\u003c")");
}

TEST(Json, LeavesTheOutputAloneWhenMalformed) {
  for (const char* text :
       {"", "{", R"({"a":})", "[1,]", "tru", R"("\u12")", "1 2", "01", "-", "1.", ".5", "1e",
        R"({"a" 1})", R"({1:1})", "\"\x01\"", R"("\x")", R"("a)", "[1 2]"}) {
    EXPECT_EQ(canonical(text), "no: |") << text;
  }
}

TEST(Json, RefusesDeepNesting) {
  const auto nested = [](std::size_t levels) {
    return canonical(std::string(levels, '[') + std::string(levels, ']'));
  };
  EXPECT_EQ(nested(33).size(), 66U);
  EXPECT_EQ(nested(34), "no: |");
}

TEST(Json, AnObjectIsNoOtherKindOfValue) {
  std::string out;
  EXPECT_FALSE(append_json_object(out, "[1]"));
  EXPECT_TRUE(append_json_object(out, R"( {"a":[1]})"));
  EXPECT_EQ(out, R"({"a":[1]})");
}

TEST(JsonScanner, TakesTokensOffTheFront) {
  JsonScanner scanner(R"( { "k\n" : NaN , true } )");
  std::string key = "old";
  EXPECT_FALSE(scanner.take('['));
  EXPECT_TRUE(scanner.take('{'));
  EXPECT_TRUE(scanner.at('"'));
  EXPECT_TRUE(scanner.string(key));
  EXPECT_EQ(key, "k\n");
  EXPECT_TRUE(scanner.take(':'));
  EXPECT_EQ(scanner.number(), "");
  EXPECT_EQ(scanner.bare_word(), "NaN");
  EXPECT_TRUE(scanner.take(','));
  EXPECT_FALSE(scanner.take_word("null"));
  EXPECT_TRUE(scanner.take_word("true"));
  EXPECT_FALSE(scanner.at_end());
  EXPECT_TRUE(scanner.take('}'));
  EXPECT_TRUE(scanner.at_end());
}

}  // namespace
}  // namespace ceems
