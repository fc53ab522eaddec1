#include "kube/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/strings.h"

namespace ceems::kube {
namespace {

constexpr std::size_t kMaxLength = 64;

std::optional<double> factor_of(std::string_view suffix) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kFactors = {{
      {"", 1},
      {"n", 1e-9},
      {"u", 1e-6},
      {"m", 1e-3},
      {"k", 1e3},
      {"M", 1e6},
      {"G", 1e9},
      {"T", 1e12},
      {"P", 1e15},
      {"E", 1e18},
      {"Ki", 0x1p10},
      {"Mi", 0x1p20},
      {"Gi", 0x1p30},
      {"Ti", 0x1p40},
      {"Pi", 0x1p50},
      {"Ei", 0x1p60},
  }};
  const auto* const found =
      std::ranges::find(kFactors, suffix, &std::pair<std::string_view, double>::first);
  if (found == kFactors.end()) {
    return std::nullopt;
  }
  return found->second;
}

/// Whether this is an exponent: "e3", "E-3", "e+3". A bare "E" is a suffix.
bool is_exponent(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix.front() != 'e' && suffix.front() != 'E')) {
    return false;
  }
  suffix.remove_prefix(suffix[1] == '+' || suffix[1] == '-' ? 2 : 1);
  return !suffix.empty() && std::ranges::all_of(suffix, is_digit);
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text) {
  if (text.size() > kMaxLength) {
    return std::nullopt;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const auto* const end =
      std::ranges::find_if_not(text, [](char c) { return is_digit(c) || c == '.'; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  std::string number(text.substr(0, length));
  const std::string_view suffix = text.substr(length);
  if (std::ranges::none_of(number, is_digit) || std::ranges::count(number, '.') > 1) {
    return std::nullopt;
  }
  std::optional<double> factor = 1;
  if (is_exponent(suffix)) {
    number += suffix;
  } else {
    factor = factor_of(suffix);
  }
  const auto value = parse_double(number.front() == '.' ? "0" + number : number);
  if (!value || !factor || !std::isfinite(*value * *factor)) {
    return std::nullopt;
  }
  // Division makes "100m" the double nearest to 0.1.
  return *factor < 1 ? *value / std::round(1 / *factor) : *value * *factor;
}

}  // namespace ceems::kube
