#include "store/strip.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ceems::store {
namespace {

constexpr std::string_view kDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
constexpr char kUnknown = '.';

bool is_known(const std::optional<double>& part) {
  const double share = part.value_or(-1);
  return std::isfinite(share) && share >= 0;
}

char digit_of(const std::optional<double>& part) {
  if (!is_known(part)) {
    return kUnknown;
  }
  constexpr double kMaxDigit = kDigits.size() - 1;
  return kDigits.at(
      static_cast<std::size_t>(std::lround(std::min(part.value_or(0), 1.0) * kMaxDigit)));
}

}  // namespace

std::string strip_text(const Strip& strip) {
  std::string text;
  const bool gpu = std::ranges::any_of(strip.gpu, is_known);
  if (!gpu && std::ranges::none_of(strip.cpu, is_known)) {
    return text;
  }
  std::ranges::transform(strip.cpu, std::back_inserter(text), digit_of);
  if (gpu) {
    std::ranges::transform(strip.gpu, std::back_inserter(text), digit_of);
  }
  return text;
}

bool is_strip(std::string_view text) {
  return (text.size() == kStripParts || text.size() == 2 * kStripParts) &&
         std::ranges::all_of(
             text, [](char c) { return c == kUnknown || kDigits.find(c) != kDigits.npos; });
}

}  // namespace ceems::store
