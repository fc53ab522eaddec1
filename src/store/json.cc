#include "store/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/strings.h"

namespace ceems::store {
namespace {

/// True for NaN, Inf and Infinity with or without sign, in any case.
bool is_not_finite(std::string_view word) {
  if (!word.empty() && (word.front() == '+' || word.front() == '-')) {
    word.remove_prefix(1);
  }
  const std::string lower = to_lower(word);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

std::optional<double> metric_value(JsonScanner& scanner) {
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
    return 0;  // 1e999 overflows, 1e-999 is too small
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
    const fmt::format_int digits(static_cast<std::int64_t>(value));
    out.append(digits.data(), digits.size());
  } else {
    fmt::format_to(std::back_inserter(out), "{:.8f}", value);
  }
}

namespace {

template <typename AppendNumber>
void append_map(std::string& out, const model::MetricMap& map, AppendNumber append_number) {
  JsonWriter json(out);
  json.begin_object();
  for (const auto& [name, value] : map) {
    append_number(json.key(name).begin_value(), value);
  }
  json.end_object();
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
  JsonScanner scanner(text);
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

std::string string_list_text(const std::vector<std::string>& list) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const std::string& item : list) {
    json.value(item);
  }
  json.end_array();
  return out;
}

Result<std::vector<std::string>> parse_string_list(std::string_view text) {
  std::vector<std::string> list;
  JsonScanner scanner(text);
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
      } else if (!scanner.value(item, 1)) {
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
