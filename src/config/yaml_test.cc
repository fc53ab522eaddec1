#include "config/yaml.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::config {
namespace {

std::string message(const Result<Node>& result) {
  return result ? "" : result.error().message;
}

TEST(Yaml, ReadsTypedValuesWithTheirPlace) {
  const auto doc = parse_yaml("a: 1\nb:\n  - x: true\n    y: 2.5\n    z: 15m\n", "c.yml");
  ASSERT_TRUE(doc) << message(doc);
  EXPECT_EQ((*doc)["a"].as_int().value(), 1);
  const Node item = (*doc)["b"].items().at(0);
  EXPECT_TRUE(item["x"].as_bool().value());
  EXPECT_EQ(item["y"].as_double().value(), 2.5);
  EXPECT_EQ(item["z"].as_duration().value(), std::chrono::minutes(15));
  EXPECT_EQ(item["z"].where(), "b[0].z");
  EXPECT_EQ(item["z"].line(), 5);
  EXPECT_FALSE(item["missing"].present());
}

TEST(Yaml, SaysFileLineAndKeyOfAWrongType) {
  const auto doc = parse_yaml("a:\n  b: soon\n  c: [1]\n", "c.yml");
  EXPECT_EQ((*doc)["a"]["b"].as_int().error().message,
            "c.yml:2: a.b: expected a whole number, got 'soon'");
  EXPECT_EQ((*doc)["a"]["b"].as_duration().error().message,
            "c.yml:2: a.b: expected a duration such as 15m: not a valid duration string: \"soon\"");
  EXPECT_EQ((*doc)["a"]["c"].as_string().error().message,
            "c.yml:3: a.c: expected a text, got a list");
}

TEST(Yaml, RefusesUnknownAndDoubledKeys) {
  const auto doc = parse_yaml("update_intervall: 1s\n", "c.yml");
  EXPECT_EQ(doc->only_keys({"update_interval", "path"}).error().message,
            "c.yml:1: update_intervall: unknown key, did you mean 'update_interval'?");
  EXPECT_EQ(message(parse_yaml("a: 1\nb: 2\na: 3\n", "c.yml")),
            "c.yml:3: a: the key stands here twice");
}

TEST(Yaml, TellsNullFromAbsent) {
  const auto doc = parse_yaml("data:\nmore: {}\n", "c.yml");
  EXPECT_TRUE((*doc)["data"].is_null());
  EXPECT_FALSE((*doc)["data"].present());
  EXPECT_TRUE((*doc)["more"].is_map());
  EXPECT_FALSE((*doc)["none"].is_null());
  EXPECT_TRUE(parse_yaml("", "c.yml")->is_null());
}

TEST(Yaml, RefusesHostileDocumentsInOneLine) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1},*a{1}]\n", i,
                        i - 1);
  }
  EXPECT_NE(message(parse_yaml(bomb, "c.yml")).find("too large or too deep"), std::string::npos);
  EXPECT_NE(message(parse_yaml(std::string(100, '['), "c.yml")), "");
  EXPECT_EQ(message(parse_yaml(std::string("a\0b", 3), "c.yml")),
            "c.yml: not a text file in UTF-8");
  EXPECT_EQ(message(parse_yaml("\xff\xfe", "c.yml")), "c.yml: not a text file in UTF-8");
  EXPECT_NE(message(parse_yaml("a: [1, 2\nb: }", "c.yml")).find("c.yml:"), std::string::npos);
  EXPECT_EQ(message(parse_yaml("a: 1\n---\nb: 2\n", "c.yml")),
            "c.yml:2: expected one YAML document, here begins another");
  EXPECT_EQ(message(parse_yaml("a: &x [1, *x]\n", "c.yml")),
            "c.yml:1: an alias inside the value that it stands for");
  EXPECT_EQ(message(parse_yaml("a: *nowhere\n", "c.yml")),
            "c.yml:1: the referenced anchor is not defined");
  EXPECT_EQ(message(parse_yaml("b: 1\n? [a]\n: c\n", "c.yml")),
            "c.yml:2: expected a plain text as key");
  EXPECT_EQ(message(parse_yaml("? " + std::string(2000, 'k') + "\n: c\n", "c.yml")),
            "c.yml:1: a key of more than 1024 bytes");
}

TEST(Yaml, SaysWhereTheSyntaxIsBroken) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1,1,", "f:1: end of sequence flow not found"},
      {"{a: 1", "f:1: end of map flow not found"},
      {"a: 1\nb: [1\n", "f:3: end of sequence flow not found"},
      {"a: 1\n  b: 2\n", "f:2: illegal map value"},
      {"a:\n\tb: 1\n", "f:2: illegal map value"},
      {"a: @x", "f:1: unknown token"},
      {"a: 1\nb: 'x\nc: 2\n", "f:2: the quote that opens here is not closed"},
      {"a: \"x\nc: 2\n", "f:1: the quote that opens here is not closed"},
      {"\xEF\xBB\xBF\u00e4: 'x\r\n", "f:1: the quote that opens here is not closed"},
      {"\xEF\xBB\xBF\u00e4: 'x''y'\r\n", ""},
      {"\u00e4: 'x'\r\nb: ''''\r\n", ""},
      {R"(a: "x\\" # "b")", ""},
      {R"(a: "x\")", "f:1: illegal EOF in scalar"},
      {"a: '", "f:1: the quote that opens here is not closed"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(message(parse_yaml(text, "f")), expected) << text;
  }
}

TEST(Yaml, BoundsWhatADocumentMayGrowTo) {
  std::string nested;
  for (std::size_t i = 0; i < 60; ++i) {  // a long path, repeated for many small values
    nested += std::string(i, ' ') + std::string(1000, 'k') + ":\n";
  }
  for (int i = 0; i < 30'000; ++i) {
    nested += std::string(60, ' ') + "- 1\n";
  }
  EXPECT_NE(message(parse_yaml(nested, "c.yml")).find("the document is too large or too deep"),
            std::string::npos);
  std::string aliases = "a: &a " + std::string(1'000'000, 'x') + "\nb: [";
  for (int i = 0; i < 1000; ++i) {
    aliases += "*a,";
  }
  EXPECT_EQ(message(parse_yaml(aliases + "]\n", "c.yml")),
            "c.yml:1: the document is too large or too deep");
  std::string deep;
  for (int i = 0; i < 20'000; ++i) {
    deep += std::string(static_cast<std::size_t>(std::min(i, 100)), ' ') + "- ";
  }
  EXPECT_NE(message(parse_yaml(deep, "c.yml")), "");
  EXPECT_NE(message(parse_yaml(std::string(100'000, '['), "c.yml")), "");
  EXPECT_NE(message(parse_yaml(std::string(100'000, '{'), "c.yml")), "");
  std::string comment;
  comment.resize(9'000'000, '#');
  EXPECT_EQ(message(parse_yaml(comment, "c.yml")), "c.yml: larger than 8 MiB");
}

TEST(Yaml, ReadsManyKeysInLinearTime) {
  std::string text;
  for (int i = 0; i < 60'000; ++i) {
    text += fmt::format("k{}: {}\n", i, i);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto doc = parse_yaml(text, "c.yml");
  ASSERT_TRUE(doc) << message(doc);
  EXPECT_EQ(doc->entries().size(), 60'000U);
  // The limit is generous because of the sanitizers.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Yaml, KeepsThePlaceOfValuesBehindAnAlias) {
  const auto doc = parse_yaml("base: &b\n  - {n: x}\nother: *b\n", "c.yml");
  ASSERT_TRUE(doc) << message(doc);
  EXPECT_EQ((*doc)["other"].items().at(0)["n"].as_int().error().message,
            "c.yml:2: other[0].n: expected a whole number, got 'x'");
}

TEST(Yaml, MergesMappings) {
  const auto doc = parse_yaml(
      "one: &one {a: 1, b: 1}\ntwo: &two {b: 2, c: 2}\n"
      "x: {<<: *one, a: 3}\ny: {<<: [*one, *two], d: 4}\nz: {'<<': 5}\n",
      "c.yml");
  ASSERT_TRUE(doc) << message(doc);
  const auto values = [&](const char* name) {
    std::string text;
    for (const auto& [key, value] : (*doc)[name].entries()) {
      text += key + value.as_string().value() + " ";
    }
    return text;
  };
  EXPECT_EQ(values("x"), "a3 b1 ");
  EXPECT_EQ(values("y"), "d4 a1 b1 c2 ");
  EXPECT_EQ(values("z"), "<<5 ");
  EXPECT_EQ((*doc)["x"]["b"].where(), "x.b");
  EXPECT_EQ(message(parse_yaml("x: {<<: 1}", "c.yml")),
            "c.yml:1: <<: expected a mapping or a list of mappings");
}

TEST(Yaml, TakesQuotedTextAsText) {
  const auto doc = parse_yaml("a: 'null'\nb: null\nc: ~\nd: ''\ne: |\n  two\n  lines\n", "c.yml");
  ASSERT_TRUE(doc) << message(doc);
  EXPECT_EQ((*doc)["a"].as_string().value(), "null");
  EXPECT_TRUE((*doc)["b"].is_null());
  EXPECT_TRUE((*doc)["c"].is_null());
  EXPECT_EQ((*doc)["d"].as_string().value(), "");
  EXPECT_EQ((*doc)["e"].as_string().value(), "two\nlines\n");
}

TEST(Yaml, SaysWhatEachGetterExpected) {
  const auto doc =
      parse_yaml("v: word\nn:\nm: {}\nl: [a, {}]\nd: 3l\ni: 99999999999999999999\n", "f");
  ASSERT_TRUE(doc) << message(doc);
  const auto at = [&](const char* key) { return (*doc)[key]; };
  EXPECT_EQ(at("v").as_bool().error().message, "f:1: v: expected true or false, got 'word'");
  EXPECT_EQ(at("v").as_double().error().message, "f:1: v: expected a number, got 'word'");
  EXPECT_EQ(at("v").as_string_list().error().message, "f:1: v: expected a list, got 'word'");
  EXPECT_EQ(at("n").as_string().error().message, "f:2: n: expected a text, got an empty value");
  EXPECT_EQ(at("m").as_string().error().message, "f:3: m: expected a text, got a mapping");
  EXPECT_EQ(at("l").as_string_list().error().message, "f:4: l[1]: expected a text, got a mapping");
  EXPECT_EQ(at("d").as_duration().error().message,
            "f:5: d: expected a duration such as 15m: unknown unit \"l\" in duration \"3l\"");
  EXPECT_EQ(at("i").as_int().error().message,
            "f:6: i: expected a whole number, got '99999999999999999999'");
  EXPECT_EQ(at("v").as_int().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(at("v").error("unknown resource manager").message, "f:1: v: unknown resource manager");
  EXPECT_EQ(Node().as_string().error().message, "configuration: expected a text, got nothing");
  EXPECT_TRUE(parse_yaml("b: on", "f").value()["b"].as_bool().value());
  EXPECT_EQ(at("v").only_keys({}).has_value(), true);
}

TEST(Yaml, ReadsFilesAndSaysWhyNot) {
  const testing::TempDir dir;
  const auto path = dir.write("c.yml", "a: $CEEMS_TEST_UNSET-x\n");
  EXPECT_EQ((*load_yaml(path.string(), true))["a"].as_string().value(), "-x");
  EXPECT_EQ((*load_yaml(path.string()))["a"].as_string().value(), "$CEEMS_TEST_UNSET-x");
  const std::string missing = (dir.path() / "none.yml").string();
  EXPECT_EQ(message(load_yaml(missing)), "open " + missing + ": No such file or directory");
  EXPECT_EQ(message(load_yaml("/dev/zero")), "/dev/zero: larger than 8 MiB");
  EXPECT_EQ(message(load_yaml(dir.path().string())),
            "read " + dir.path().string() + ": Is a directory");
}

TEST(Yaml, TellsQuotedScalarsFromPlainOnes) {
  const auto root = parse_yaml("a: 12\nb: '12'\nc: \"true\"\nd: !!str 1\ne: [x]\n", "f.yml");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_TRUE((*root)["a"].is_plain());
  EXPECT_TRUE((*root)["e"].items()[0].is_plain());
  for (const char* key : {"b", "c", "d", "e", "missing"}) {
    EXPECT_FALSE((*root)[key].is_plain()) << key;
  }
}

}  // namespace
}  // namespace ceems::config
