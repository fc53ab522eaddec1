#include "advice/template.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/strings.h"
#include "base/time/time_text.h"

namespace ceems::advice {
namespace {

constexpr std::array<std::pair<std::string_view, Form>, 12> kForms{{{"percent", Form::kPercent},
                                                                    {"bytes", Form::kBytes},
                                                                    {"duration", Form::kDuration},
                                                                    {"G", Form::kGigabytes},
                                                                    {"GB", Form::kLsfBytes},
                                                                    {"gb", Form::kPbsBytes},
                                                                    {"Gi", Form::kK8sBytes},
                                                                    {"M", Form::kMebi},
                                                                    {"m", Form::kMilli},
                                                                    {"clock", Form::kClock},
                                                                    {"hm", Form::kHours},
                                                                    {"hms", Form::kSeconds}}};

// Beyond this, numbers come from damaged data; it keeps conversions to integers defined.
constexpr double kMaxNumber = 1e15;
constexpr double kMebi = 1024.0 * 1024.0;

std::string with_comma(std::string text, char comma) {
  std::ranges::replace(text, '.', comma);
  return text;
}

/// At most `decimals` of them, without zeros at the end.
std::string trimmed(double number, int decimals) {
  std::string text = fmt::format("{:.{}f}", number, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) {
      text.pop_back();
    }
  }
  return text;
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1023.95 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", trimmed(bytes, bytes < 99.95 && unit > 0 ? 1 : 0), kUnits.at(unit));
}

/// Whole gibibytes, otherwise mebibytes, rounded up.
std::string size_text(double bytes, std::string_view gibi, std::string_view mebi) {
  const std::int64_t count = std::llround(std::ceil(bytes / kMebi));
  return count % 1024 == 0 ? fmt::format("{}{}", count / 1024, gibi)
                           : fmt::format("{}{}", count, mebi);
}

/// Hours and minutes, and the seconds too if there is room for them.
std::string hours_text(double seconds, bool with_seconds) {
  constexpr std::int64_t kHourSeconds = 3600;
  std::int64_t total = std::llround(std::ceil(std::max(seconds, 0.0)));
  if (with_seconds) {
    return fmt::format("{:02}:{:02}:{:02}", total / kHourSeconds, total % kHourSeconds / 60,
                       total % 60);
  }
  total += 59;
  return fmt::format("{}:{:02}", total / kHourSeconds, total % kHourSeconds / 60);
}

std::string milli_text(double number) {
  const std::int64_t milli = std::llround(std::ceil(number * 1000 - 1e-6));
  return milli % 1000 == 0 ? fmt::format("{}", milli / 1000) : fmt::format("{}m", milli);
}

/// The end of the placeholder that begins at `open`; npos if there is none.
std::size_t close_of(std::string_view text, std::size_t open) {
  const std::size_t close = text.find_first_of("{}", open + 1);
  return close == std::string_view::npos || text[close] != '}' ? std::string_view::npos : close;
}

std::optional<Placeholder> parse_placeholder(std::string_view inner) {
  Placeholder found;
  const std::size_t bar = inner.find('|');
  if (bar != std::string_view::npos) {
    const std::size_t second = inner.find('|', bar + 1);
    if (second == std::string_view::npos || inner.find('|', second + 1) != std::string_view::npos) {
      return std::nullopt;
    }
    found.words.emplace(inner.substr(bar + 1, second - bar - 1), inner.substr(second + 1));
    inner = inner.substr(0, bar);
  }
  const std::size_t colon = found.words ? std::string_view::npos : inner.find(':');
  found.name = inner.substr(0, colon);
  if (found.name.empty() ||
      found.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") != std::string::npos) {
    return std::nullopt;
  }
  if (colon == std::string_view::npos) {
    return found;
  }
  for (const auto& [word, form] : kForms) {
    if (inner.substr(colon + 1) == word) {
      found.form = form;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string format_number(double number, Form form, const Notation& notation) {
  number = std::clamp(std::isfinite(number) ? number : 0.0, -kMaxNumber, kMaxNumber);
  switch (form) {
    case Form::kPlain:
      return with_comma(trimmed(number, 2), notation.comma);
    case Form::kPercent:
      return fmt::format("{} %", trimmed(number * 100, 0));
    case Form::kBytes:
      return with_comma(bytes_text(number), notation.comma);
    case Form::kDuration:
      return duration_text(number, notation.day, notation.comma);
    case Form::kGigabytes:
      return size_text(number, "G", "M");
    case Form::kLsfBytes:
      return size_text(number, "GB", "MB");
    case Form::kPbsBytes:
      return size_text(number, "gb", "mb");
    case Form::kK8sBytes:
      return size_text(number, "Gi", "Mi");
    case Form::kMebi:
      return fmt::format("{}", std::llround(std::ceil(number / kMebi)));
    case Form::kMilli:
      return milli_text(number);
    case Form::kClock:
      return elapsed_text(std::llround(number));
    case Form::kHours:
      return hours_text(number, false);
    case Form::kSeconds:
      return hours_text(number, true);
  }
  return {};
}

Result<std::vector<Placeholder>> placeholders(std::string_view text) {
  std::vector<Placeholder> all;
  for (std::size_t at = text.find_first_of("{}"); at != std::string_view::npos;
       at = text.find_first_of("{}", at)) {
    const std::size_t close = text[at] == '{' ? close_of(text, at) : std::string_view::npos;
    if (close == std::string_view::npos) {
      return fail(ErrorCode::kInvalidArgument, "braces that do not match");
    }
    auto found = parse_placeholder(text.substr(at + 1, close - at - 1));
    if (!found) {
      return fail(
          ErrorCode::kInvalidArgument,
          "malformed placeholder '{}', expected {{name}}, {{name|one|other}}, or "
          "{{name:form}} with a form of percent, bytes, duration, G, GB, gb, Gi, M, m, clock, "
          "hm, hms",
          printable(text.substr(at, close - at + 1), 60));
    }
    all.push_back(std::move(*found));
    at = close + 1;
  }
  return all;
}

std::optional<std::string> fill(std::string_view text,
                                const Names& names,
                                const Notation& notation) {
  std::string out;
  while (true) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) {
      return out;
    }
    const std::size_t close = close_of(text, open);
    const auto placeholder = close == std::string_view::npos
                                 ? std::nullopt
                                 : parse_placeholder(text.substr(open + 1, close - open - 1));
    if (!placeholder) {
      return std::nullopt;
    }
    const Value value = names.value_of(placeholder->name);
    if (const auto& words = placeholder->words) {
      const double* number = std::get_if<double>(&value);
      out += number != nullptr && *number == 1 ? words->first : words->second;
    } else if (const double* number = std::get_if<double>(&value)) {
      out += format_number(*number, placeholder->form, notation);
    } else if (const auto* word = std::get_if<std::string_view>(&value)) {
      out += *word;
    } else {
      return std::nullopt;
    }
    text.remove_prefix(close + 1);
  }
}

}  // namespace ceems::advice
