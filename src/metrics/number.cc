#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::metrics {
namespace {

// The decimal exponents that are printed without "e", like Go's %g with the shortest digits.
constexpr int kMinPlainExponent = -4;
constexpr int kMaxPlainExponent = 5;
constexpr double kPlainIntegerLimit = 1e6;

/// Places the decimal point among the digits: "123.45", "0.00123".
void append_plain(std::string& out, std::string_view digits, int exponent) {
  if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
    return;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    out.append(digits).append(whole - digits.size(), '0');
    return;
  }
  out.append(digits.substr(0, whole)).append(".").append(digits.substr(whole));
}

}  // namespace

void append_number(std::string& out, double value) {
  std::array<char, 32> text{};
  if (std::isnan(value)) {
    out.append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out.append(value > 0 ? "+Inf" : "-Inf");
    return;
  }
  if (std::abs(value) < kPlainIntegerLimit && value == std::trunc(value) && !std::signbit(value)) {
    const auto [end, error] =
        std::to_chars(text.data(), text.data() + text.size(), static_cast<int>(value));
    out.append(text.data(), end);
    return;
  }
  // "d.ddde+NN" with the shortest digits that round-trip.
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific);
  const std::string_view scientific(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  std::from_chars(scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1), end, exponent);
  if (exponent < kMinPlainExponent || exponent > kMaxPlainExponent) {
    out.append(scientific);
    return;
  }
  std::string_view mantissa = scientific.substr(0, e);
  if (mantissa.front() == '-') {
    out.push_back('-');
    mantissa.remove_prefix(1);
  }
  std::array<char, 24> digits{};
  const auto last = std::ranges::copy_if(mantissa, digits.begin(), [](char c) { return c != '.'; });
  append_plain(out, {digits.data(), static_cast<std::size_t>(last.out - digits.begin())}, exponent);
}

}  // namespace ceems::metrics
