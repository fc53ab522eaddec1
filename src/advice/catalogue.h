#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "advice/template.h"
#include "advice/value.h"
#include "base/result.h"

namespace ceems::advice {

/// The languages of texts. The first is the default.
inline constexpr std::array<std::string_view, 3> kLanguages{"en", "de", "fr"};

/// The texts of one language.
struct Catalogue {
  std::string language = "en";
  Notation notation = {};
  /// What the rules that the program carries say, by their id (data/advice/rules/).
  std::map<std::string, std::string, std::less<>> advice = {};
  /// The words of reports, digests and mails (data/advice/en.yml).
  std::map<std::string, std::string, std::less<>> words = {};

  /// The words with this key; the key itself if there are none.
  [[nodiscard]] std::string_view word(std::string_view key) const;
};

/// Parses the YAML of a catalogue, which has no texts of rules. kInvalidArgument with file and
/// line.
Result<Catalogue> parse_catalogue(std::string_view text, std::string_view file);

/// The catalogue of a language; English for any other name.
const Catalogue& catalogue(std::string_view language);

/// Why a text may not be said (insults, orders, longer than 240 characters); empty if it may. Each
/// language has its list of words, compared in any case.
std::string tone_of(std::string_view language, std::string_view text);

}  // namespace ceems::advice
