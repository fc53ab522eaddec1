#include "config/yaml.h"

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
  EXPECT_EQ(item["z"].as_duration_ms().value(), 900'000);
  EXPECT_EQ(item["z"].where(), "b[0].z");
  EXPECT_EQ(item["z"].line(), 5);
  EXPECT_FALSE(item["missing"].present());
}

TEST(Yaml, SaysFileLineAndKeyOfAWrongType) {
  const auto doc = parse_yaml("a:\n  b: soon\n  c: [1]\n", "c.yml");
  EXPECT_EQ((*doc)["a"]["b"].as_int().error().message,
            "c.yml:2: a.b: expected a whole number, got 'soon'");
  EXPECT_EQ((*doc)["a"]["b"].as_duration_ms().error().message,
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
            "c.yml: expected one YAML document, got 2");
}

TEST(Yaml, ReadsFilesAndSaysWhyNot) {
  const testing::TempDir dir;
  const auto path = dir.write("c.yml", "a: $CEEMS_TEST_UNSET-x\n");
  EXPECT_EQ((*load_yaml(path.string(), true))["a"].as_string().value(), "-x");
  EXPECT_EQ((*load_yaml(path.string()))["a"].as_string().value(), "$CEEMS_TEST_UNSET-x");
  const std::string missing = (dir.path() / "none.yml").string();
  EXPECT_EQ(message(load_yaml(missing)), "open " + missing + ": No such file or directory");
  EXPECT_EQ(message(load_yaml(dir.path().string())),
            "read " + dir.path().string() + ": Is a directory");
}

TEST(ExpandEnvironment, FollowsTheRulesOfTheReference) {
  const auto lookup = [](const std::string& name) {
    return name == "A" ? std::string("1") : std::string();
  };
  EXPECT_EQ(expand_environment("$A ${A} $B. $$ $1x ${A", lookup).value(), "1 1 . $ x A");
  EXPECT_EQ(expand_environment("100$ ${} $-", lookup).value(), "100$  ");
  EXPECT_EQ(
      expand_environment("x [[{$}]]", lookup).error().message,
      "expanding env vars is not supported with literal template token [[{$}]] in the config file");
}

TEST(Duration, ReadsPrometheusSyntax) {
  EXPECT_EQ(parse_duration_ms("1d12h").value(), 129'600'000);
  EXPECT_EQ(parse_duration_ms("0").value(), 0);
  EXPECT_EQ(parse_duration_ms("1h30m15s500ms").value(), 5'415'500);
  EXPECT_EQ(parse_duration_ms("3l").error().message, "unknown unit \"l\" in duration \"3l\"");
  EXPECT_EQ(parse_duration_ms("1m1h").error().message, "not a valid duration string: \"1m1h\"");
  EXPECT_EQ(parse_duration_ms("").error().message, "empty duration string");
  EXPECT_EQ(parse_duration_ms("15").error().message, "unknown unit \"\" in duration \"15\"");
  EXPECT_EQ(parse_duration_ms("300000000000y").error().message,
            "duration out of range: \"300000000000y\"");
  EXPECT_FALSE(parse_duration_ms("-1s"));
}

TEST(Duration, PrintsLikeGo) {
  EXPECT_EQ(go_duration(3'600'000), "1h0m0s");
  EXPECT_EQ(go_duration(15'000), "15s");
  EXPECT_EQ(go_duration(60'000), "1m0s");
  EXPECT_EQ(go_duration(500), "500ms");
  EXPECT_EQ(go_duration(1'500), "1.5s");
  EXPECT_EQ(go_duration(0), "0s");
  EXPECT_EQ(go_duration(24'672'000), "6h51m12s");
}

}  // namespace
}  // namespace ceems::config
