#include "gate/selector_rules.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/utf8.h"
#include "promql/matcher/matcher.h"
#include "promql/text/characters.h"

namespace ceems::gate {
namespace {

using promql::Matcher;
using promql::MatchOperator;

constexpr std::string_view kInternal = "__";
constexpr promql::ByteSet kInRawName = promql::ByteSet::letters_digits_and(".:/-");
/// Behind a backslash these are characters in a pattern and no escape in a string of Go.
constexpr promql::ByteSet kNoEscape(".+*?()[]{}|^$-/");

bool is_control(char byte) {
  constexpr unsigned char kBlank = 0x20;
  constexpr unsigned char kDelete = 0x7F;
  const auto code = static_cast<unsigned char>(byte);
  return code < kBlank || code == kDelete;
}

/// "__" where a name may begin: at the start, or behind what is no literal.
bool begins_internal_somewhere(std::string_view pattern) {
  for (std::size_t at = pattern.find(kInternal); at != std::string_view::npos;
       at = pattern.find(kInternal, at + 1)) {
    if (at == 0 || !promql::kInMetric.contains(pattern[at - 1])) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool survives_raw(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, [](char byte) {
           return byte == '"' || byte == '\\' || is_control(byte);
         });
}

bool survives_raw(const Matcher& matcher) {
  if (matcher.op == MatchOperator::kEqual || matcher.op == MatchOperator::kNotEqual) {
    return survives_raw(std::string_view(matcher.value));
  }
  std::string plain;  // without the backslashes that will do, and what they stand before
  const std::string_view pattern = matcher.value;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size() && kNoEscape.contains(pattern[i + 1])) {
      ++i;
    } else {
      plain += pattern[i];
    }
  }
  return survives_raw(std::string_view(plain));
}

bool is_raw_name(std::string_view name) {
  return kInRawName.contains_all(name);
}

bool may_name_internal(const Matcher& matcher) {
  const std::string_view value = matcher.value;
  if (value.starts_with(kInternal)) {
    return true;
  }
  if (matcher.op != MatchOperator::kMatches) {
    return false;
  }
  if (promql::is_words(value)) {
    return value.contains("|__");
  }
  const auto words = promql::finite_language(value);
  return words ? std::ranges::any_of(
                     *words, [](const std::string& word) { return word.starts_with(kInternal); })
               : begins_internal_somewhere(value);
}

Refusal raw_text() {
  return bad_data(
      "selectors of profiles must hold no quotes, control characters or backslashes, but those "
      "before punctuation in patterns",
      "raw_text");
}

Refusal internal_label(std::string_view label) {
  return {.message = fmt::format("'{}' is an internal name: users may not select by it", label),
          .reason = "internal_label"};
}

}  // namespace ceems::gate
