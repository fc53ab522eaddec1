#include "advice/catalogue.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/rule.h"
#include "advice/rule_files.h"
#include "advice/template.h"

namespace ceems::advice {
namespace {

using ::testing::HasSubstr;

/// Of the values. Which words depend on a number is different in each language.
std::vector<std::string> placeholder_names(std::string_view text) {
  std::vector<std::string> names;
  const auto found = placeholders(text);
  for (const Placeholder& placeholder : *found) {
    if (!placeholder.words) {
      names.push_back(placeholder.name);
    }
  }
  std::ranges::sort(names);
  return names;
}

TEST(Catalogue, HasTheSameKeysAndValuesInEveryLanguage) {
  const Catalogue& english = catalogue("en");
  ASSERT_FALSE(english.advice.empty());
  for (const std::string_view language : kLanguages) {
    const Catalogue& other = catalogue(language);
    EXPECT_EQ(other.language, language);
    ASSERT_EQ(other.advice.size(), english.advice.size()) << language;
    ASSERT_EQ(other.words.size(), english.words.size()) << language;
    for (const auto texts : {&Catalogue::advice, &Catalogue::words}) {
      for (const auto& [key, text] : english.*texts) {
        const auto found = (other.*texts).find(key);
        ASSERT_NE(found, (other.*texts).end()) << language << " lacks " << key;
        EXPECT_EQ(placeholder_names(found->second), placeholder_names(text)) << language << key;
      }
    }
  }
  EXPECT_EQ(catalogue("tlh").language, "en");
}

TEST(Catalogue, HasATextForEachRuleAndNoOther) {
  const RuleSet& rules = core_rules();
  const Catalogue& english = catalogue("en");
  EXPECT_EQ(english.advice.size(), rules.rules.size());
  for (const Rule& rule : rules.rules) {
    EXPECT_TRUE(english.advice.contains(rule.say)) << rule.id;
  }
}

/// The web page calls the rule so.
TEST(Catalogue, HasANameForEachRule) {
  for (const config::Node& rule : core_documents()) {
    const std::string id = rule["id"].as_string().value_or("");
    EXPECT_EQ(rule["name"].entries().size(), kLanguages.size()) << id;
    for (const std::string_view language : kLanguages) {
      const config::Node name = rule["name"][language];
      EXPECT_TRUE(name.is_plain()) << id << " " << language;  // web/rules.mjs knows no quotes
      const std::string text = name.as_string().value_or("");
      EXPECT_GT(text.size(), 3U) << id << " " << language;
      EXPECT_LT(text.size(), 50U) << id << " " << language;
      EXPECT_EQ(tone_of(language, text), "") << id << " " << language;
    }
  }
}

TEST(Catalogue, NoTextBlamesAnybody) {
  for (const std::string_view language : kLanguages) {
    for (const auto texts : {&Catalogue::advice, &Catalogue::words}) {
      for (const auto& [key, text] : catalogue(language).*texts) {
        EXPECT_EQ(tone_of(language, text), "") << language << " " << key << ": " << text;
      }
    }
  }
}

/// A text says what happens when something is changed: each holds a verb of help.
TEST(Catalogue, EachSuggestionOffersHelp) {
  const std::map<std::string_view, std::vector<std::string_view>> offers{
      {"en", {"start", "help", "more done", "shows", "may show", "Check", "nothing to change"}},
      {"de", {"start", "hilf", "helf", "schaff", "zeigt", "nichts zu ändern"}},
      {"fr", {"démarr", "aide", "avancer", "montre", "rien à changer"}}};
  for (const std::string_view language : kLanguages) {
    for (const auto& [key, text] : catalogue(language).advice) {
      EXPECT_TRUE(std::ranges::any_of(offers.at(language),
                                      [&](auto word) { return text.find(word) != text.npos; }))
          << language << " " << key << ": " << text;
    }
  }
}

TEST(Catalogue, FindsUnkindWordsInAnyCase) {
  EXPECT_EQ(tone_of("en", "You WASTED energy"), "says 'waste'");
  EXPECT_EQ(tone_of("de", "Das ist Verschwendung"), "says 'verschwend'");
  EXPECT_EQ(tone_of("fr", "un Gaspillage"), "says 'gaspill'");
  EXPECT_EQ(tone_of("en", "☹"), "says '☹'");
  EXPECT_THAT(tone_of("en", std::string(241, 'a')), HasSubstr("longer than 240"));
  EXPECT_EQ(tone_of("fr",
                    [] {
                      std::string accents;
                      for (int i = 0; i < 240; ++i) {
                        accents += "é";
                      }
                      return accents;
                    }()),
            "");
}

TEST(Catalogue, MalformedFilesAreErrorsWithALine) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"words: {a: x}\nword: {}\n", "f.yml:2: word: unknown key"},
           {"words: {a: '{'}\n", "f.yml:1: words.a: braces that do not match"},
           {"decimal: ', '\n", "f.yml:1: decimal: expected one character"},
           {"words: [1]\n", "expected a mapping"}}) {
    const auto parsed = parse_catalogue(text, "f.yml");
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace ceems::advice
