#include "api/answer/numbers.h"

#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "base/utf8.h"
#include "store/advice_rules.h"
#include "store/strip.h"

namespace ceems::api {
namespace {

constexpr int kDigits = 4;

using store::FactKind;

/// The rules of findings whose bits are set.
template <typename Each>
void each_rule(std::int64_t bits, const Each& each) {
  for (const auto& [id, mask] : store::advice_rules()) {
    if ((bits & mask) != 0) {
      each(id);
    }
  }
}

/// Empty: not known.
std::string_view verdict_word(std::int64_t stored) {
  constexpr std::array<std::string_view, 3> kWords{"fits", "smaller", "look"};
  return stored < 0 || stored > static_cast<std::int64_t>(store::Verdict::kLook)
             ? std::string_view()
             : kWords.at(static_cast<std::size_t>(stored));
}

/// The text of a cell that is one; nothing for the other kinds. A strip that is malformed, as after
/// a change by hand, counts as not known.
std::optional<std::string_view> text_of(FactKind kind, std::string_view text, std::int64_t number) {
  switch (kind) {
    case FactKind::kText:
      return text;
    case FactKind::kVerdict:
      return verdict_word(number);
    case FactKind::kStrip:
      return store::is_strip(text) ? text : std::string_view();
    default:
      return std::nullopt;
  }
}

}  // namespace

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) {
    return 0;
  }
  const double magnitude = std::floor(std::log10(std::abs(value)));
  const double scale = std::pow(10.0, magnitude - digits + 1);
  // Dividing by a power of ten gives the nearest number to the decimal one.
  return scale < 1 ? std::round(value / scale) / std::round(1 / scale)
                   : std::round(value / scale) * scale;
}

std::optional<double> value_of(FactKind kind, std::int64_t stored) {
  constexpr double kThousandths = 1000;
  constexpr double kHundredths = 100;
  constexpr double kNano = 1e9;
  constexpr double kMicro = 1e6;
  if (kind == FactKind::kMoment ? stored <= 0 : stored < 0) {
    return std::nullopt;
  }
  const auto number = static_cast<double>(stored);
  switch (kind) {
    case FactKind::kMilli:
      return number / kThousandths;
    case FactKind::kPercent:
      return rounded(number / kHundredths, kDigits);
    case FactKind::kMeasured:
      return rounded(number, kDigits);
    case FactKind::kEnergy:
      return rounded(number / kNano, kDigits);
    case FactKind::kGrams:
      return rounded(number / kMicro, kDigits);
    default:
      return number;
  }
}

void append_number(JsonWriter& json, std::optional<double> value) {
  if (!value) {
    json.value(nullptr);
  } else if (std::floor(*value) == *value && std::abs(*value) < 1e15) {
    json.value(static_cast<std::int64_t>(*value));
  } else {
    json.value(*value);
  }
}

void append_json_cell(JsonWriter& json, FactKind kind, std::string_view text, std::int64_t number) {
  if (const auto value = text_of(kind, text, number)) {
    if (value->empty()) {
      json.value(nullptr);
    } else {
      json.value(*value);
    }
  } else if (kind == FactKind::kAdvice) {
    json.begin_array();
    each_rule(number, [&json](std::string_view rule) { json.value(rule); });
    json.end_array();
  } else {
    append_number(json, value_of(kind, number));
  }
}

void append_csv_cell(std::string& out,
                     FactKind kind,
                     std::string_view text,
                     std::int64_t number,
                     const TimeZone& zone) {
  if (const auto cell = text_of(kind, text, number)) {
    out += csv_cell(*cell);
  } else if (kind == FactKind::kAdvice) {
    bool first = true;
    each_rule(number, [&](std::string_view rule) {
      out += first ? "" : " ";
      out += rule;
      first = false;
    });
  } else if (kind == FactKind::kMoment) {
    out += number > 0 ? zone.local_with_offset(number) : "";
  } else if (const auto value = value_of(kind, number)) {
    constexpr double kExact = 1e15;
    out += std::floor(*value) == *value && *value < kExact
               ? fmt::to_string(static_cast<std::int64_t>(*value))
               : fmt::to_string(*value);
  }
}

}  // namespace ceems::api
