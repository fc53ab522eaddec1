#include "base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace ceems {
namespace {

constexpr int kMaxDepth = 32;

bool append_document(std::string& out, std::string_view text, bool object_only) {
  JsonScanner scanner(text);
  if (object_only && !scanner.at('{')) {
    return false;
  }
  const std::size_t begin = out.size();
  if (!scanner.value(out, 0) || !scanner.at_end()) {
    out.resize(begin);
    return false;
  }
  return true;
}

}  // namespace

void JsonScanner::skip_blanks() {
  while (rest_.starts_with(' ') || rest_.starts_with('\t') || rest_.starts_with('\n') ||
         rest_.starts_with('\r')) {
    rest_.remove_prefix(1);
  }
}

bool JsonScanner::take(char c) {
  if (!at(c)) {
    return false;
  }
  rest_.remove_prefix(1);
  return true;
}

bool JsonScanner::take_word(std::string_view word) {
  skip_blanks();
  if (!rest_.starts_with(word)) {
    return false;
  }
  rest_.remove_prefix(word.size());
  return true;
}

bool JsonScanner::at(char c) {
  skip_blanks();
  return rest_.starts_with(c);
}

bool JsonScanner::at_end() {
  skip_blanks();
  return rest_.empty();
}

bool JsonScanner::string(std::string& out) {
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

std::string_view JsonScanner::number() {
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

std::string_view JsonScanner::bare_word() {
  skip_blanks();
  std::size_t i = 0;
  while (i < rest_.size() && rest_[i] != ',' && rest_[i] != '}' && rest_[i] != ' ' && i < 16) {
    ++i;
  }
  const std::string_view word = rest_.substr(0, i);
  rest_.remove_prefix(i);
  return word;
}

std::optional<std::uint32_t> JsonScanner::hex4() {
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

bool JsonScanner::escape(std::string& out) {
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

bool JsonScanner::object(std::string& out, int depth) {
  std::vector<std::pair<std::string, std::string>> members;
  if (!take('}')) {
    do {
      auto& [name, content] = members.emplace_back();
      if (!string(name) || !take(':') || !value(content, depth + 1)) {
        return false;
      }
    } while (take(','));
    if (!take('}')) {
      return false;
    }
  }
  std::ranges::stable_sort(members, {}, &std::pair<std::string, std::string>::first);
  JsonWriter json(out);
  json.begin_object();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i + 1 == members.size() || members[i + 1].first != members[i].first) {
      json.raw_member(members[i].first, members[i].second);
    }
  }
  json.end_object();
  return true;
}

bool JsonScanner::array(std::string& out, int depth) {
  JsonWriter json(out);
  json.begin_array();
  if (!take(']')) {
    do {
      if (!value(json.begin_value(), depth + 1)) {
        return false;
      }
    } while (take(','));
    if (!take(']')) {
      return false;
    }
  }
  json.end_array();
  return true;
}

bool JsonScanner::value(std::string& out, int depth) {
  if (depth > kMaxDepth) {
    return false;
  }
  if (take('{')) {
    return object(out, depth);
  }
  if (take('[')) {
    return array(out, depth);
  }
  if (at('"')) {
    std::string text;
    if (!string(text)) {
      return false;
    }
    append_json_string(out, text);
    return true;
  }
  for (const std::string_view word : {"null", "true", "false"}) {
    if (take_word(word)) {
      out.append(word);
      return true;
    }
  }
  const std::string_view text = number();
  out.append(text);
  return !text.empty();
}

bool append_json(std::string& out, std::string_view text) {
  return append_document(out, text, false);
}

bool append_json_object(std::string& out, std::string_view text) {
  return append_document(out, text, true);
}

}  // namespace ceems
