#include <array>
#include <limits>

#include "base/strings.h"
#include "config/yaml.h"

namespace ceems::config {
namespace {

struct DurationUnit {
  std::string_view name;
  std::int64_t ms;
};

// Biggest first: a text may only go down this list.
constexpr std::array<DurationUnit, 7> kUnits{{{"y", 365LL * 24 * 3600 * 1000},
                                              {"w", 7LL * 24 * 3600 * 1000},
                                              {"d", 24LL * 3600 * 1000},
                                              {"h", 3600LL * 1000},
                                              {"m", 60LL * 1000},
                                              {"s", 1000},
                                              {"ms", 1}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

Result<std::int64_t> parse_duration_ms(std::string_view text) {
  if (text.empty()) {
    return fail(ErrorCode::kInvalidArgument, "empty duration string");
  }
  if (text == "0") {
    return 0;
  }
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t digits = 0;
    while (digits < rest.size() && is_digit(rest[digits])) {
      ++digits;
    }
    const auto count = parse_int<std::int64_t>(rest.substr(0, digits));
    if (digits == 0 || !count) {
      return fail(ErrorCode::kInvalidArgument, "not a valid duration string: \"{}\"",
                  printable(text));
    }
    rest.remove_prefix(digits);
    std::size_t letters = 0;
    while (letters < rest.size() && !is_digit(rest[letters])) {
      ++letters;
    }
    if (letters == 0) {
      return fail(ErrorCode::kInvalidArgument, "not a valid duration string: \"{}\"",
                  printable(text));
    }
    const std::string_view name = rest.substr(0, letters);
    rest.remove_prefix(letters);
    std::size_t unit = 0;
    while (unit < kUnits.size() && kUnits[unit].name != name) {
      ++unit;
    }
    if (unit == kUnits.size()) {
      return fail(ErrorCode::kInvalidArgument, "unknown unit \"{}\" in duration \"{}\"",
                  printable(name), printable(text));
    }
    if (unit < next_unit) {
      return fail(ErrorCode::kInvalidArgument, "not a valid duration string: \"{}\"",
                  printable(text));
    }
    next_unit = unit + 1;
    std::int64_t part = 0;
    if (__builtin_mul_overflow(*count, kUnits[unit].ms, &part) ||
        __builtin_add_overflow(total, part, &total) ||
        total > std::numeric_limits<std::int64_t>::max() / 1'000'000) {
      return fail(ErrorCode::kInvalidArgument, "duration out of range");
    }
  }
  return total;
}

std::string go_duration(std::int64_t milliseconds) {
  if (milliseconds == 0) {
    return "0s";
  }
  const bool negative = milliseconds < 0;
  const auto ms = negative ? std::uint64_t{0} - static_cast<std::uint64_t>(milliseconds)
                           : static_cast<std::uint64_t>(milliseconds);
  std::string out = negative ? "-" : "";
  if (ms < 1000) {
    return out + fmt::format("{}ms", ms);
  }
  const std::uint64_t hours = ms / 3'600'000;
  const std::uint64_t minutes = ms / 60'000 % 60;
  if (hours > 0) {
    out += fmt::format("{}h", hours);
  }
  if (hours > 0 || minutes > 0) {
    out += fmt::format("{}m", minutes);
  }
  out += fmt::format("{}", ms / 1000 % 60);
  if (std::uint64_t fraction = ms % 1000; fraction != 0) {
    std::string digits = fmt::format("{:03}", fraction);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += "." + digits;
  }
  return out + "s";
}

}  // namespace ceems::config
