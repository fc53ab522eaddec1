#include "advice/catalogue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "advice/rule_files.h"
#include "advice/template.h"
#include "advice/texts.h"
#include "base/check.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "config/section.h"

namespace ceems::advice {
namespace {

constexpr std::size_t kMaxCharacters = 240;

using Texts = std::map<std::string, std::string, std::less<>>;

Result<> read_texts(const config::Node& node, Texts& texts) {
  if (!node.is_map()) {
    return fail(node.error("expected a mapping of texts"));
  }
  for (const auto& [key, value] : node.entries()) {
    CEEMS_TRY(text, value.as_string());
    if (const auto valid = placeholders(text); !valid) {
      return fail(value.error(valid.error().message));
    }
    texts[key] = std::move(text);
  }
  return {};
}

const std::vector<std::string_view>& unkind_words(std::string_view language) {
  static const std::vector<std::string_view> kEnglish{
      "waste", "wasting", "abuse",       "violation",      "offend",     "guilty",
      "penal", "must",    "immediately", "please resolve", "your fault", "☹"};
  static const std::vector<std::string_view> kGerman{
      "verschwend", "vergeud", "missbrauch", "verstoß",  "verstoss",   "schuld", "straf",
      "muss ",      "müssen",  "sofort",     "umgehend", "gefälligst", "☹"};
  static const std::vector<std::string_view> kFrench{
      "gaspill", "abus",          "violation", "infraction", "coupable", "faute",
      "pénal",   "immédiatement", "devez",     "il faut",    "☹"};
  return language == "de" ? kGerman : (language == "fr" ? kFrench : kEnglish);
}

std::size_t characters_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string_view Catalogue::word(std::string_view key) const {
  const auto found = words.find(key);
  return found == words.end() ? key : std::string_view(found->second);
}

Result<Catalogue> parse_catalogue(std::string_view text, std::string_view file) {
  CEEMS_TRY(document, config::parse_yaml(text, file));
  Catalogue catalogue;
  std::string comma = ".";
  config::Section section(document);
  section.only({"language", "decimal", "day", "words"})
      .text("language", catalogue.language)
      .text("decimal", comma)
      .text("day", catalogue.notation.day)
      .refuse(comma.size() != 1, "decimal", "expected one character");
  section.also(read_texts(document["words"], catalogue.words));
  if (!section.ok()) {
    return fail(section.done().error());
  }
  catalogue.notation.comma = comma.front();
  return catalogue;
}

const Catalogue& catalogue(std::string_view language) {
  static const auto kAll = [] {
    std::vector<Catalogue> all;
    for (const std::string_view words : {kEnYml, kDeYml, kFrYml}) {
      auto parsed = parse_catalogue(words, "catalogue");
      CEEMS_CHECK(parsed.has_value());
      for (const config::Node& rule : core_documents()) {
        if (auto text = rule["text"][parsed->language].as_string()) {
          parsed->advice.emplace(rule["id"].as_string().value_or(""), std::move(*text));
        }
      }
      all.push_back(std::move(*parsed));
    }
    return all;
  }();
  const auto found = std::ranges::find(kAll, language, &Catalogue::language);
  return found == kAll.end() ? kAll.front() : *found;
}

std::string tone_of(std::string_view language, std::string_view text) {
  if (characters_of(text) > kMaxCharacters) {
    return fmt::format("longer than {} characters", kMaxCharacters);
  }
  const std::string lower = to_lower(text);
  for (const std::string_view word : unkind_words(language)) {
    if (lower.find(word) != std::string::npos) {
      return fmt::format("says '{}'", word);
    }
  }
  return {};
}

}  // namespace ceems::advice
