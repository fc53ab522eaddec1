// Syntax: https://github.com/google/re2/wiki/Syntax. Unknown syntax makes the language unbounded,
// never smaller than it is.

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "promql/matcher/matcher.h"
#include "promql/text/characters.h"

namespace ceems::promql {
namespace {

using Words = std::set<std::string, std::less<>>;

constexpr unsigned kMaxGroupDepth = 50;
constexpr std::size_t kMaxClass = 256;

/// Reads a pattern by recursive descent. Each function returns the words that its part accepts.
class WordsOf {
 public:
  WordsOf(std::string_view pattern, const LanguageLimits& limits, WorkBudget* work)
      : rest_(pattern), limits_(&limits), work_(work) {}

  std::optional<Words> run() {
    auto words = alternatives(true, 0);
    return words && rest_.empty() ? std::move(words) : std::nullopt;
  }

 private:
  /// `at_start`: nothing can precede this part, so ^ has no effect here.
  std::optional<Words> alternatives(bool at_start, unsigned depth) {
    if (depth > kMaxGroupDepth) {
      return std::nullopt;
    }
    Words all;
    std::size_t bytes = 0;
    while (true) {
      auto words = sequence(at_start, depth);
      if (!words || !take_steps(work_, 1 + words->size())) {
        return std::nullopt;
      }
      bytes += bytes_of(*words);
      if (all.empty()) {
        all = std::move(*words);
      } else {
        all.merge(*words);
        bytes -= bytes_of(*words);  // those that were known
      }
      if (all.size() > limits_->words || bytes > limits_->bytes) {
        return std::nullopt;
      }
      if (!take('|')) {
        return all;
      }
    }
  }

  std::optional<Words> sequence(bool at_start, unsigned depth) {
    Words words = {""};
    std::string literal;  // follows `words`; collects parts that accept one word only
    bool first = at_start;
    while (!rest_.empty() && rest_.front() != '|' && rest_.front() != ')') {
      if (rest_.front() == '^') {
        if (!first) {
          return std::nullopt;
        }
        rest_.remove_prefix(1);
        continue;
      }
      if (rest_.front() == '$') {
        // Only at the end of the pattern or of an alternative at its outermost level.
        rest_.remove_prefix(1);
        if (depth != 0 || !(rest_.empty() || rest_.front() == '|')) {
          return std::nullopt;
        }
        continue;
      }
      auto part = repeated(first, depth);
      if (!part) {
        return std::nullopt;
      }
      first = false;
      if (part->size() == 1) {
        if (!take_steps(work_, 1)) {
          return std::nullopt;
        }
        literal += *part->begin();
        if (literal.size() > limits_->bytes) {
          return std::nullopt;
        }
        continue;
      }
      auto joined = join(std::move(words), {std::exchange(literal, {})});
      joined = joined ? join(std::move(*joined), std::move(*part)) : std::nullopt;
      if (!joined) {
        return std::nullopt;
      }
      words = std::move(*joined);
    }
    return literal.empty() ? std::move(words) : join(std::move(words), {literal});
  }

  /// An atom with its quantifier.
  std::optional<Words> repeated(bool at_start, unsigned depth) {
    auto words = atom(at_start, depth);
    if (!words || rest_.empty()) {
      return words;
    }
    std::size_t at_least = 1;
    std::size_t at_most = 1;
    if (rest_.front() == '*' || rest_.front() == '+') {
      return std::nullopt;
    }
    if (take('?')) {
      at_least = 0;
    } else if (rest_.front() == '{') {
      if (!repetition(at_least, at_most)) {
        return std::nullopt;
      }
    } else {
      return words;
    }
    take('?');  // lazy: accepts the same words
    if (!rest_.empty() && (rest_.front() == '*' || rest_.front() == '+' || rest_.front() == '?' ||
                           rest_.front() == '{')) {
      return std::nullopt;
    }
    return repeat(*words, at_least, at_most);
  }

  /// {2} or {2,4}
  bool repetition(std::size_t& at_least, std::size_t& at_most) {
    rest_.remove_prefix(1);
    if (!number(at_least)) {
      return false;
    }
    at_most = at_least;
    if (take(',') && !number(at_most)) {
      return false;
    }
    return take('}') && at_least <= at_most;
  }

  /// A leading zero makes it a literal: RE2 reads "a{01}" as these five characters.
  bool number(std::size_t& value) {
    if (rest_.size() > 1 && rest_[0] == '0' && is_digit(rest_[1])) {
      return false;
    }
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value > limits_->words) {
      return false;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

  [[nodiscard]] std::optional<Words> repeat(const Words& words,
                                            std::size_t at_least,
                                            std::size_t at_most) const {
    Words all;
    Words power = {""};
    for (std::size_t times = 0; times <= at_most; ++times) {
      if (!take_steps(work_, 1 + 2 * power.size() + all.size() + words.size())) {
        return std::nullopt;
      }
      if (times >= at_least) {
        all.insert(power.begin(), power.end());
      }
      if (times == at_most) {
        break;
      }
      auto next = join(power, words);
      if (!next || !within_limits(all)) {
        return std::nullopt;
      }
      power = std::move(*next);
    }
    return within_limits(all) ? std::optional(std::move(all)) : std::nullopt;
  }

  std::optional<Words> atom(bool at_start, unsigned depth) {
    const char first = rest_.front();
    if (first == '(') {
      return group(at_start, depth);
    }
    if (first == '[') {
      return character_class();
    }
    if (first == '\\') {
      auto character = escaped();
      return character ? std::optional(Words{*character}) : std::nullopt;
    }
    if (has_meaning(first) && first != ']' && first != '}') {
      return std::nullopt;
    }
    return Words{character()};
  }

  std::optional<Words> group(bool at_start, unsigned depth) {
    rest_.remove_prefix(1);
    if (take('?')) {
      // (?:x), (?P<name>x) and (?<name>x) only; flags change what the rest means.
      if (take('P') || rest_.starts_with('<')) {
        const auto end = rest_.find('>');
        if (!rest_.starts_with('<') || end == std::string_view::npos) {
          return std::nullopt;
        }
        rest_.remove_prefix(end + 1);
      } else if (!take(':')) {
        return std::nullopt;
      }
    }
    auto words = alternatives(at_start, depth + 1);
    return words && take(')') ? std::move(words) : std::nullopt;
  }

  /// [abc], [a-c]: one-byte characters only, nothing negated or named.
  std::optional<Words> character_class() {
    rest_.remove_prefix(1);
    Words words;
    bool first = true;
    while (first || !rest_.starts_with(']')) {
      if (rest_.empty() || (first && rest_.front() == '^')) {
        return std::nullopt;
      }
      const auto low = class_character(first);
      if (!low) {
        return std::nullopt;
      }
      char high = *low;
      if (rest_.size() > 1 && rest_.front() == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        const auto end = class_character(false);
        if (!end || *end < *low) {
          return std::nullopt;
        }
        high = *end;
      }
      if (!take_steps(work_, 1 + static_cast<std::size_t>(high - *low))) {
        return std::nullopt;
      }
      for (char byte = *low; byte < high; ++byte) {
        words.emplace(1, byte);
      }
      words.emplace(1, high);
      first = false;
    }
    rest_.remove_prefix(1);
    return words.size() <= kMaxClass ? std::optional(std::move(words)) : std::nullopt;
  }

  std::optional<char> class_character(bool first) {
    if (rest_.empty() || rest_.starts_with("[:") || (!first && rest_.front() == ']')) {
      return std::nullopt;
    }
    if (rest_.front() == '\\') {
      const auto character = escaped();
      return character && character->size() == 1 ? std::optional(character->front()) : std::nullopt;
    }
    const char byte = rest_.front();
    if (static_cast<unsigned char>(byte) >= 0x80) {
      return std::nullopt;
    }
    rest_.remove_prefix(1);
    return byte;
  }

  /// A backslash before punctuation stands for that character. Before a letter or digit it has a
  /// special meaning.
  std::optional<std::string> escaped() {
    if (rest_.size() < 2) {
      return std::nullopt;
    }
    const char byte = rest_[1];
    const bool punctuation = (byte >= '!' && byte <= '/') || (byte >= ':' && byte <= '@') ||
                             (byte >= '[' && byte <= '`') || (byte >= '{' && byte <= '~');
    if (!punctuation || byte == '_') {
      return std::nullopt;
    }
    rest_.remove_prefix(2);
    return std::string(1, byte);
  }

  std::string character() {
    const std::size_t length = std::max<std::size_t>(utf8_length(rest_), 1);
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }

  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }

  static std::size_t bytes_of(const Words& words) {
    std::size_t bytes = 0;
    for (const std::string& word : words) {
      bytes += word.size();
    }
    return bytes;
  }

  /// Each word of `left` with each of `right` behind it.
  [[nodiscard]] std::optional<Words> join(Words left, Words right) const {
    constexpr std::size_t kBytesPerStep = 16;
    if (is_only_empty(left)) {
      return within_limits(right) ? std::optional(std::move(right)) : std::nullopt;
    }
    if (is_only_empty(right)) {
      return within_limits(left) ? std::optional(std::move(left)) : std::nullopt;
    }
    const std::size_t count = left.size() * right.size();
    const std::size_t bytes = bytes_of(left) * right.size() + bytes_of(right) * left.size();
    if (count > limits_->words || bytes > limits_->bytes ||
        !take_steps(work_, count + left.size() + right.size() + bytes / kBytesPerStep)) {
      return std::nullopt;
    }
    Words joined;
    for (const std::string& begin : left) {
      for (const std::string& end : right) {
        joined.insert(begin + end);
      }
    }
    return joined;
  }

  static bool is_only_empty(const Words& words) {
    return words.size() == 1 && words.begin()->empty();
  }

  [[nodiscard]] bool within_limits(const Words& words) const {
    return words.size() <= limits_->words && bytes_of(words) <= limits_->bytes;
  }

  std::string_view rest_;
  const LanguageLimits* limits_;
  WorkBudget* work_;
};

Language words_between_bars(std::string_view pattern,
                            const LanguageLimits& limits,
                            WorkBudget* work) {
  constexpr std::size_t kBytesPerStep = 16;
  const auto bars = static_cast<std::size_t>(std::ranges::count(pattern, '|'));
  if (!take_steps(work, 1 + bars + pattern.size() / kBytesPerStep)) {
    return std::nullopt;
  }
  std::vector<std::string> words;
  words.reserve(1 + bars);
  for (bool more = true; more;) {
    const std::size_t bar = pattern.find('|');
    words.emplace_back(pattern.substr(0, bar));
    more = bar != std::string_view::npos;
    pattern.remove_prefix(more ? bar + 1 : pattern.size());
  }
  std::ranges::sort(words);
  const auto repeated = std::ranges::unique(words);
  words.erase(repeated.begin(), repeated.end());
  std::size_t bytes = 0;
  for (const std::string& word : words) {
    bytes += word.size();
  }
  const bool few = words.size() <= limits.words && bytes <= limits.bytes;
  return few ? std::optional(std::move(words)) : std::nullopt;
}

}  // namespace

Language finite_language(std::string_view pattern, const LanguageLimits& limits, WorkBudget* work) {
  if (is_words(pattern)) {
    return words_between_bars(pattern, limits, work);
  }
  auto words = WordsOf(pattern, limits, work).run();
  if (!words) {
    return std::nullopt;
  }
  return std::vector<std::string>(words->begin(), words->end());
}

}  // namespace ceems::promql
