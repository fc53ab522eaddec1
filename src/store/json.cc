#include "store/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::store {
namespace {

constexpr int kMaxDepth = 32;

/// What does not stand for itself in our JSON strings.
bool needs_care(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20U || byte >= 0x80U || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes JSON tokens off the front of a text (RFC 8259).
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' ||
                              rest_.front() == '\n' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
  }
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) {
      return false;
    }
    rest_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] bool at(char c) {
    skip_blanks();
    return !rest_.empty() && rest_.front() == c;
  }
  [[nodiscard]] bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  bool string(std::string& out) {
    if (!take('"')) {
      return false;
    }
    out.clear();
    while (!rest_.empty()) {
      const std::size_t plain = std::min(rest_.find_first_of("\"\\"), rest_.size());
      for (const char c : rest_.substr(0, plain)) {
        if (static_cast<unsigned char>(c) < 0x20U) {
          return false;
        }
      }
      out.append(rest_.substr(0, plain));
      rest_.remove_prefix(plain);
      if (rest_.empty()) {
        return false;
      }
      if (rest_.front() == '"') {
        rest_.remove_prefix(1);
        return true;
      }
      if (!escape(out)) {
        return false;
      }
    }
    return false;
  }

  /// The text of a number in JSON's grammar; empty when there is none.
  std::string_view number() {
    skip_blanks();
    std::size_t i = 0;
    const auto digits = [this, &i] {
      const std::size_t begin = i;
      while (i < rest_.size() && is_digit(rest_[i])) {
        ++i;
      }
      return i - begin;
    };
    if (i < rest_.size() && rest_[i] == '-') {
      ++i;
    }
    const std::size_t first = i;
    const std::size_t whole = digits();
    if (whole == 0 || (whole > 1 && rest_[first] == '0')) {
      return {};
    }
    if (i < rest_.size() && rest_[i] == '.') {
      ++i;
      if (digits() == 0) {
        return {};
      }
    }
    if (i < rest_.size() && (rest_[i] == 'e' || rest_[i] == 'E')) {
      ++i;
      if (i < rest_.size() && (rest_[i] == '+' || rest_[i] == '-')) {
        ++i;
      }
      if (digits() == 0) {
        return {};
      }
    }
    const std::string_view text = rest_.substr(0, i);
    rest_.remove_prefix(i);
    return text;
  }

  /// A run of letters and signs, for the spellings of NaN and infinity.
  std::string_view bare_word() {
    skip_blanks();
    std::size_t i = 0;
    while (i < rest_.size() && rest_[i] != ',' && rest_[i] != '}' && rest_[i] != ' ' && i < 16) {
      ++i;
    }
    const std::string_view word = rest_.substr(0, i);
    rest_.remove_prefix(i);
    return word;
  }

 private:
  std::optional<std::uint32_t> hex4() {
    std::uint32_t value = 0;
    if (rest_.size() < 4) {
      return std::nullopt;
    }
    const char* const digits = rest_.data();
    const auto [end, error] = std::from_chars(digits, digits + 4, value, 16);
    if (error != std::errc{} || end != digits + 4) {
      return std::nullopt;
    }
    rest_.remove_prefix(4);
    return value;
  }

  bool escape(std::string& out) {
    rest_.remove_prefix(1);
    if (rest_.empty()) {
      return false;
    }
    const char kind = rest_.front();
    rest_.remove_prefix(1);
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = kNames.find(kind); i != std::string_view::npos) {
      out.push_back(kValues[i]);
      return true;
    }
    if (kind != 'u') {
      return false;
    }
    const auto first = hex4();
    if (!first) {
      return false;
    }
    std::uint32_t point = *first;
    if (point >= 0xD800U && point < 0xDC00U && rest_.starts_with("\\u")) {
      const std::string_view before = rest_;
      rest_.remove_prefix(2);
      const auto second = hex4();
      if (!second) {
        return false;
      }
      if (*second >= 0xDC00U && *second < 0xE000U) {
        point = 0x10000U + ((point - 0xD800U) << 10U) + (*second - 0xDC00U);
      } else {
        rest_ = before;
      }
    }
    // A lone surrogate, which has no UTF-8 form, becomes U+FFFD.
    append_utf8(out, point);
    return true;
  }

  std::string_view rest_;
};

bool append_value(std::string& out, Scanner& scanner, int depth);

bool append_object(std::string& out, Scanner& scanner, int depth) {
  std::vector<std::pair<std::string, std::string>> members;
  if (!scanner.take('}')) {
    do {
      std::pair<std::string, std::string> member;
      scanner.skip_blanks();
      if (!scanner.string(member.first) || !scanner.take(':') ||
          !append_value(member.second, scanner, depth + 1)) {
        return false;
      }
      members.push_back(std::move(member));
    } while (scanner.take(','));
    if (!scanner.take('}')) {
      return false;
    }
  }
  std::ranges::stable_sort(members, {}, &std::pair<std::string, std::string>::first);
  out.push_back('{');
  bool first = true;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i + 1 < members.size() && members[i + 1].first == members[i].first) {
      continue;  // the last of repeated keys wins, as in most readers
    }
    if (!first) {
      out.push_back(',');
    }
    first = false;
    append_json_string(out, members[i].first);
    out.push_back(':');
    out.append(members[i].second);
  }
  out.push_back('}');
  return true;
}

bool append_array(std::string& out, Scanner& scanner, int depth) {
  out.push_back('[');
  if (!scanner.take(']')) {
    bool first = true;
    do {
      if (!first) {
        out.push_back(',');
      }
      first = false;
      if (!append_value(out, scanner, depth + 1)) {
        return false;
      }
    } while (scanner.take(','));
    if (!scanner.take(']')) {
      return false;
    }
  }
  out.push_back(']');
  return true;
}

bool append_value(std::string& out, Scanner& scanner, int depth) {
  if (depth > kMaxDepth) {
    return false;
  }
  if (scanner.take('{')) {
    return append_object(out, scanner, depth);
  }
  if (scanner.take('[')) {
    return append_array(out, scanner, depth);
  }
  if (scanner.at('"')) {
    std::string text;
    if (!scanner.string(text)) {
      return false;
    }
    append_json_string(out, text);
    return true;
  }
  for (const std::string_view word : {"null", "true", "false"}) {
    if (scanner.take_word(word)) {
      out.append(word);
      return true;
    }
  }
  const std::string_view number = scanner.number();
  out.append(number);
  return !number.empty();
}

bool append_document(std::string& out, std::string_view text, bool object_only) {
  Scanner scanner(text);
  if (object_only && !scanner.at('{')) {
    return false;
  }
  const std::size_t begin = out.size();
  if (!append_value(out, scanner, 0) || !scanner.at_end()) {
    out.resize(begin);
    return false;
  }
  return true;
}

/// True for NaN, Inf and Infinity with or without sign, in any case.
bool is_not_finite(std::string_view word) {
  if (!word.empty() && (word.front() == '+' || word.front() == '-')) {
    word.remove_prefix(1);
  }
  const std::string lower = to_lower(word);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

std::optional<double> metric_value(Scanner& scanner) {
  if (scanner.at('"')) {
    std::string text;
    if (scanner.string(text) && is_not_finite(text)) {
      return 0;
    }
    return std::nullopt;
  }
  if (scanner.take_word("null")) {
    return 0;
  }
  const std::string_view number = scanner.number();
  if (number.empty()) {
    if (is_not_finite(scanner.bare_word())) {
      return 0;
    }
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc::result_out_of_range) {
    return 0;  // 1e999 is an infinity, 1e-999 is nothing
  }
  return value;
}

}  // namespace

void append_metric_number(std::string& out, double value) {
  constexpr double kBound = 9223372036854775808.0;  // 2^63
  if (!std::isfinite(value)) {
    out.push_back('0');
  } else if (value >= -kBound && value < kBound &&
             value == static_cast<double>(static_cast<std::int64_t>(value))) {
    fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(value));
  } else {
    fmt::format_to(std::back_inserter(out), "{:.8f}", value);
  }
}

namespace {

template <typename AppendNumber>
void append_map(std::string& out, const model::MetricMap& map, AppendNumber append_number) {
  out.push_back('{');
  bool first = true;
  for (const auto& [name, value] : map) {
    if (!first) {
      out.push_back(',');
    }
    first = false;
    append_json_string(out, name);
    out.push_back(':');
    append_number(out, value);
  }
  out.push_back('}');
}

}  // namespace

void append_metric_map(std::string& out, const model::MetricMap& map) {
  append_map(out, map, append_metric_number);
}

std::string metric_map_text(const model::MetricMap& map) {
  std::string out;
  append_map(out, map, [](std::string& to, double value) {
    if (std::isfinite(value) && value != std::trunc(value)) {
      std::array<char, 32> digits{};  // 17 of them, sign, point and exponent
      to.append(digits.data(), fmt::format_to(digits.data(), FMT_COMPILE("{}"), value));
    } else {
      append_metric_number(to, value);
    }
  });
  return out;
}

Result<model::MetricMap> parse_metric_map(std::string_view text) {
  model::MetricMap map;
  Scanner scanner(text);
  if (scanner.at_end()) {
    return map;
  }
  if (scanner.take_word("null") && scanner.at_end()) {
    return map;
  }
  const auto wrong = [&text] {
    return fail(ErrorCode::kParse, "expected a JSON object of numbers, got '{}'", printable(text));
  };
  if (!scanner.take('{')) {
    return wrong();
  }
  if (!scanner.take('}')) {
    std::string name;
    do {
      scanner.skip_blanks();
      if (!scanner.string(name) || !scanner.take(':')) {
        return wrong();
      }
      const auto value = metric_value(scanner);
      if (!value) {
        return wrong();
      }
      map[name] = *value;
    } while (scanner.take(','));
    if (!scanner.take('}')) {
      return wrong();
    }
  }
  if (!scanner.at_end()) {
    return wrong();
  }
  return map;
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const auto special = std::ranges::find_if(text, needs_care);
    const auto plain = static_cast<std::size_t>(special - text.begin());
    if (plain > 0) {
      out.append(text.substr(0, plain));
      text.remove_prefix(plain);
      continue;
    }
    const char c = text.front();
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out.append("\\n");
    } else if (c == '\r') {
      out.append("\\r");
    } else if (c == '\t') {
      out.append("\\t");
    } else if (static_cast<unsigned char>(c) < 0x20U || c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      const std::size_t length = utf8_length(text);
      const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
      if (length == 0) {
        out.append("\\ufffd");
      } else if (sequence == "\xE2\x80\xA8") {
        out.append("\\u2028");
      } else if (sequence == "\xE2\x80\xA9") {
        out.append("\\u2029");
      } else {
        out.append(sequence);
      }
      text.remove_prefix(sequence.size());
      continue;
    }
    text.remove_prefix(1);
  }
  out.push_back('"');
}

bool append_json(std::string& out, std::string_view text) {
  return append_document(out, text, false);
}

bool append_json_object(std::string& out, std::string_view text) {
  return append_document(out, text, true);
}

std::string string_list_text(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& item : list) {
    if (out.size() > 1) {
      out.push_back(',');
    }
    append_json_string(out, item);
  }
  out.push_back(']');
  return out;
}

Result<std::vector<std::string>> parse_string_list(std::string_view text) {
  std::vector<std::string> list;
  Scanner scanner(text);
  if (scanner.at_end() || (scanner.take_word("null") && scanner.at_end())) {
    return list;
  }
  const auto wrong = [&text] {
    return fail(ErrorCode::kParse, "expected a JSON array of strings, got '{}'", printable(text));
  };
  if (!scanner.take('[')) {
    return wrong();
  }
  if (!scanner.take(']')) {
    do {
      std::string item;
      if (scanner.at('"')) {
        if (!scanner.string(item)) {
          return wrong();
        }
        list.push_back(std::move(item));
      } else if (!append_value(item, scanner, 1)) {
        return wrong();
      }
    } while (scanner.take(','));
    if (!scanner.take(']')) {
      return wrong();
    }
  }
  if (!scanner.at_end()) {
    return wrong();
  }
  return list;
}

}  // namespace ceems::store
