#include "promql/matcher/pattern_cost.h"

#include <algorithm>
#include <charconv>

#include "promql/text/characters.h"

namespace ceems::promql {
namespace {

// Steps, each of 0.2 µs.
constexpr std::size_t kEachPattern = 40;
constexpr std::size_t kUnicodeClass = 4200;  // \pL: 1200 instructions
constexpr std::size_t kAnyCharacter = 11;    // "." and "[^": 8 instructions for UTF-8
constexpr std::size_t kFoldedByte = 12;      // behind (?i)
/// RE2 refuses a larger product of nested repetitions.
constexpr std::size_t kMaxRepeats = 1000;
/// RE2 refuses programs with more instructions, in addition to one for each byte of the pattern.
constexpr std::size_t kMaxInstructions = 1400;
/// Steps are the square of the number of parts that may be empty, divided by this.
constexpr std::size_t kEmptyPartsPerStep = 80;
constexpr std::string_view kEmptyEscapes = "bBAz";
constexpr std::string_view kLargeEscapes = "DSWC";

class Counter {
 public:
  explicit Counter(std::string_view pattern) : pattern_(pattern) {}

  std::size_t run() {
    for (at_ = 0; at_ < pattern_.size(); ++at_) {
      count();
    }
    const std::size_t bytes = pattern_.size();
    const std::size_t empty = std::min(empty_parts_ * repeats_, kMaxInstructions + bytes);
    return kEachPattern + (folds_ ? kFoldedByte * bytes : bytes + bytes / 2) + steps_ +
           empty * empty / kEmptyPartsPerStep;
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }

  /// A part that is judged by its bytes alone. Where a byte has no special meaning, as in a class,
  /// the result is larger than necessary.
  void count() {
    switch (pattern_[at_]) {
      case '\\':
        escape();
        return;
      case '.':
        steps_ += kAnyCharacter;
        return;
      case '[':
        steps_ += peek(1) == '^' ? kAnyCharacter : 0;
        return;
      case '?':
      case '*':
      case '^':
      case '$':
        ++empty_parts_;
        return;
      case '{':
        repetition();
        return;
      case '|':
      case '(':
        alternative();
        return;
      default:
        return;
    }
  }

  void escape() {
    const char name = peek(1);
    if (name == 'p' || name == 'P') {
      steps_ += kUnicodeClass;
    } else if (kEmptyEscapes.contains(name)) {
      ++empty_parts_;
    } else if (kLargeEscapes.contains(name)) {
      steps_ += kAnyCharacter;
    }
    ++at_;
  }

  /// After '|' or '(': an empty alternative, or flags.
  void alternative() {
    const char next = peek(1);
    const char before = at_ == 0 ? '\0' : pattern_[at_ - 1];
    if (next == '?') {
      folds_ = folds_ || (peek(2) != ':' && peek(2) != 'P' && peek(2) != '<');
      ++at_;
    } else if (next == ')' || next == '|' || next == '\0' ||
               (pattern_[at_] == '|' &&
                (before == '(' || before == ':' || before == '>' || before == '\0'))) {
      ++empty_parts_;
    }
  }

  /// {2}, {2,} or {2,4}
  void repetition() {
    std::size_t low = 0;
    std::size_t high = 0;
    std::size_t length = 1 + number(1, low);
    if (length == 1) {
      return;
    }
    high = low;
    if (peek(length) == ',') {
      ++length;
      const std::size_t digits = number(length, high);
      high = digits == 0 ? low + 1 : high;
    }
    high = std::min(high, kMaxRepeats);
    steps_ += high;
    empty_parts_ += low == 0 ? std::max<std::size_t>(high, 1) : high - std::min(low, high);
    repeats_ = std::min(repeats_ * std::max<std::size_t>(high, 1), kMaxRepeats);
  }

  /// Returns the number of digits. Numbers that are too large are kMaxRepeats.
  std::size_t number(std::size_t ahead, std::size_t& value) const {
    const std::string_view rest = pattern_.substr(std::min(at_ + ahead, pattern_.size()));
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::result_out_of_range) {
      value = kMaxRepeats;
    }
    return static_cast<std::size_t>(end - rest.data());
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::size_t steps_ = 0;
  std::size_t empty_parts_ = 0;  ///< parts that may be empty
  std::size_t repeats_ = 1;      ///< how often a part may be copied at most
  bool folds_ = false;
};

}  // namespace

std::size_t compile_steps(std::string_view pattern) {
  return Counter(pattern).run();
}

std::size_t program_steps(int instructions) {
  return static_cast<std::size_t>(std::max(instructions, 0)) * 5 / 2;
}

}  // namespace ceems::promql
