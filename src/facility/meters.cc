#include "facility/meters.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "base/time/rfc3339.h"
#include "base/time/time_text.h"

namespace ceems::facility {
namespace {

constexpr double kMaxAmount = 1e9;  // of an interval

std::optional<std::int64_t> moment_of(std::string_view text, const TimeZone& zone) {
  if (const auto local = complete_local(text)) {
    return zone.parse_local(*local);
  }
  return parse_rfc3339_ms(text);
}

class MeterReading {
 public:
  MeterReading(std::string_view file, std::int64_t every_ms, const TimeZone& zone)
      : file_(file), every_ms_(every_ms), zone_(zone) {}

  Result<Hours> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) {  // a spreadsheet wrote it
      text.remove_prefix(3);
    }
    bool head = false;
    for (std::string_view line : split(text, '\n')) {
      ++line_;
      line = trim(line);
      if (line.empty()) {
        continue;
      }
      if (!std::exchange(head, true)) {
        if (line != "time,value") {
          return wrong("expected the line 'time,value'");
        }
        continue;
      }
      CEEMS_TRY(read_line(line));
    }
    if (!head) {
      return wrong("expected the line 'time,value', and one for each interval");
    }
    finish_hour();
    return std::move(hours_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view message) const {
    return fail(ErrorCode::kInvalidArgument, "{}:{}: {}", file_, line_, message);
  }

  Result<> read_line(std::string_view line) {
    const auto cells = split(line, ',');
    if (cells.size() != 2) {
      return wrong(fmt::format("expected a time and a value, got {} cells", cells.size()));
    }
    const auto start = moment_of(trim(cells[0]), zone_);
    if (!start) {
      return wrong("expected a time such as 2026-11-01T06:00 or 2026-11-01T06:00:00+01:00");
    }
    const auto value = parse_double(trim(cells[1]));
    if (!value || !(*value >= 0 && *value <= kMaxAmount)) {
      return wrong("expected a value from 0 to 1e9, without unit");
    }
    const bool daily = every_ms_ == kDayMs;
    if (daily ? zone_.day_start(*start) != *start : *start % every_ms_ != 0) {
      return wrong(daily ? "expected a day, which begins at midnight"
                         : "expected a time at the beginning of an interval");
    }
    if (last_ms_ && *start <= *last_ms_) {
      return wrong(
          "expected a time after that of the line before: where clocks are set back, write times "
          "with their offset");
    }
    last_ms_ = start;
    add(*start, *value, daily);
    return {};
  }

  void add(std::int64_t start, double value, bool daily) {
    if (!daily) {
      const std::int64_t hour = start - start % kHourMs;
      if (hour != hour_) {
        finish_hour();
        hour_ = hour;
      }
      sum_ += value;
      read_ms_ += every_ms_;
      return;
    }
    const std::int64_t end = zone_.day_start(start + kDayMs * 3 / 2);
    const std::int64_t hours = (end - start) / kHourMs;
    const auto count = static_cast<double>(hours);
    for (std::int64_t hour = start; hour < end; hour += kHourMs) {
      hours_[(hour + kHourMs - 1) / kHourMs * kHourMs] = value / count;
    }
  }

  void finish_hour() {
    if (read_ms_ == kHourMs) {
      hours_[hour_] = sum_;
    }
    sum_ = 0;
    read_ms_ = 0;
  }

  std::string_view file_;
  std::int64_t every_ms_;
  TimeZone zone_;
  int line_ = 0;
  std::optional<std::int64_t> last_ms_;
  std::int64_t hour_ = -1, read_ms_ = 0;
  double sum_ = 0;
  Hours hours_;
};

}  // namespace

std::string_view name_of(MeterKind kind) {
  constexpr std::array<std::string_view, kMeterKinds> kNames{"total", "it",          "cooling",
                                                             "water", "heat_reused", "renewable"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Result<Hours> parse_meter_file(std::string_view text,
                               std::string_view file,
                               std::int64_t every_ms,
                               const TimeZone& zone) {
  return MeterReading(file, every_ms, zone).read(text);
}

Hours sum_of(const Hours& a, const Hours& b) {
  Hours sum;
  for (const auto& [hour, value] : a) {
    if (const auto other = b.find(hour); other != b.end()) {
      sum.emplace_hint(sum.end(), hour, value + other->second);
    }
  }
  return sum;
}

}  // namespace ceems::facility
