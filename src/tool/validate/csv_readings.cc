#include "tool/validate/csv_readings.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/rfc3339.h"

namespace ceems::tool::validate {
namespace {

constexpr std::size_t kMaxShownLine = 80;

std::optional<double> time_of(std::string_view text) {
  if (const auto seconds = parse_double(text)) {
    return seconds;
  }
  const auto ms = parse_rfc3339_ms(text);
  return ms ? std::optional(static_cast<double>(*ms) / kSecondMs) : std::nullopt;
}

std::optional<WattReading> reading_of(std::string_view line) {
  const auto fields = split(line, line.find(';') == std::string_view::npos ? ',' : ';');
  if (fields.size() < 2) {
    return std::nullopt;
  }
  const auto time = time_of(trim(fields[0]));
  const auto watts = parse_double(trim(fields[1]));
  return time && watts ? std::optional(WattReading{.time = *time, .watts = *watts}) : std::nullopt;
}

}  // namespace

Result<double> checked_watts(double watts) {
  if (!(watts > 0 && watts <= kMaxMeterWatts)) {
    return fail(ErrorCode::kParse, "expected watts above 0 and up to {}, got {}", kMaxMeterWatts,
                watts);
  }
  return watts;
}

Result<std::vector<WattReading>> parse_csv_readings(std::string_view text, double offset) {
  std::vector<WattReading> readings;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = trim(take_until(text, '\n'));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto reading = reading_of(line);
    if (!reading && number == 1) {
      continue;
    }
    if (!reading) {
      return fail(ErrorCode::kParse, "line {}: expected 'time,watts', got '{}'", number,
                  printable(line, kMaxShownLine));
    }
    CEEMS_TRY_IN(fmt::format("line {}", number), watts, checked_watts(reading->watts));
    readings.push_back({.time = reading->time + offset, .watts = watts});
  }
  if (readings.empty()) {
    return fail(ErrorCode::kParse, "no readings");
  }
  std::ranges::stable_sort(readings, {}, &WattReading::time);
  return readings;
}

}  // namespace ceems::tool::validate
