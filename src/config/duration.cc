#include "config/duration.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace ceems::config {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};

// From the largest to the smallest.
constexpr std::array<Unit, 7> kUnits{{{"y", 365LL * 24 * 3600 * 1000},
                                      {"w", 7LL * 24 * 3600 * 1000},
                                      {"d", 24LL * 3600 * 1000},
                                      {"h", 3600LL * 1000},
                                      {"m", 60LL * 1000},
                                      {"s", 1000},
                                      {"ms", 1}}};

// The longest duration of Go, which counts nanoseconds in 64 bits.
constexpr std::int64_t kMaxMs = std::numeric_limits<std::int64_t>::max() / 1'000'000;

/// Removes the leading digits (or, with `digits` false, everything before the next digit) and
/// returns them.
std::string_view take_run(std::string_view& rest, bool digits) {
  const auto* const end = std::ranges::find_if(rest, [&](char c) { return is_digit(c) != digits; });
  const std::string_view run = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(run.size());
  return run;
}

std::unexpected<Error> not_valid(std::string_view text) {
  return fail(ErrorCode::kInvalidArgument, "not a valid duration string: \"{}\"", printable(text));
}

/// Nothing if the text is not a duration of Go.
std::optional<std::chrono::milliseconds> go_syntax(std::string_view rest) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kGoUnits{{{"ns", 1e-6},
                                                                         {"us", 1e-3},
                                                                         {"\u00b5s", 1e-3},
                                                                         {"\u03bcs", 1e-3},
                                                                         {"ms", 1},
                                                                         {"s", 1e3},
                                                                         {"m", 6e4},
                                                                         {"h", 3.6e6}}};
  double total = 0;
  bool any = false;
  rest.remove_prefix(rest.starts_with('+') ? 1 : 0);
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const auto count = parse_double(rest.substr(0, size));
    rest.remove_prefix(size);
    const std::string_view name = rest.substr(0, rest.find_first_of("0123456789."));
    const auto* const unit =
        std::ranges::find(kGoUnits, name, &std::pair<std::string_view, double>::first);
    if (!count || unit == kGoUnits.end()) {
      return std::nullopt;
    }
    rest.remove_prefix(name.size());
    total += *count * unit->second;
    any = true;
  }
  if (!any || total > static_cast<double>(kMaxMs)) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(total + 1e-6));
}

}  // namespace

Result<std::chrono::milliseconds> parse_flag_duration(std::string_view text) {
  auto parsed = parse_duration(text);
  if (!parsed) {
    if (const auto duration = go_syntax(text)) {
      return *duration;
    }
  }
  return parsed;
}

Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text.empty()) {
    return fail(ErrorCode::kInvalidArgument, "empty duration string");
  }
  if (text == "0") {
    return std::chrono::milliseconds(0);
  }
  std::int64_t total = 0;
  const auto* next_unit = kUnits.begin();
  for (std::string_view rest = text; !rest.empty();) {
    const auto count = parse_int<std::int64_t>(take_run(rest, true));
    const std::string_view name = take_run(rest, false);
    if (!count || name.empty()) {
      return not_valid(text);
    }
    const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end()) {
      return fail(ErrorCode::kInvalidArgument, "unknown unit \"{}\" in duration \"{}\"",
                  printable(name), printable(text));
    }
    if (unit < next_unit) {
      return not_valid(text);
    }
    next_unit = unit + 1;
    if (*count > (kMaxMs - total) / unit->ms) {
      return fail(ErrorCode::kInvalidArgument, "duration out of range");
    }
    total += *count * unit->ms;
  }
  return std::chrono::milliseconds(total);
}

std::string go_duration(std::chrono::milliseconds duration) {
  if (duration.count() == 0) {
    return "0s";
  }
  const bool negative = duration.count() < 0;
  // The minimum value cannot be negated as a signed number.
  const auto bits = static_cast<std::uint64_t>(duration.count());
  const std::uint64_t ms = negative ? 0 - bits : bits;
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
  if (const std::uint64_t fraction = ms % 1000; fraction != 0) {
    std::string digits = fmt::format("{:03}", fraction);
    digits.erase(digits.find_last_not_of('0') + 1);
    out += "." + digits;
  }
  return out + "s";
}

std::string prometheus_duration(std::chrono::milliseconds duration) {
  const bool whole = duration.count() % 1000 == 0;
  return whole ? go_duration(duration) : fmt::format("{}ms", duration.count());
}

}  // namespace ceems::config
