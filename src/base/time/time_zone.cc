#include "base/time/time_zone.h"

#include <chrono>
#include <exception>
#include <filesystem>
#include <system_error>

#include <date/date.h>
#include <date/tz.h>
#include <fmt/format.h>

#include "base/strings.h"

namespace ceems {
namespace {

using std::chrono::seconds;

date::sys_seconds at(std::int64_t ms) {
  return date::floor<seconds>(
      date::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(ms)));
}

seconds offset_at(const date::time_zone* zone, date::sys_seconds time) {
  return zone == nullptr ? seconds(0) : zone->get_info(time).offset;
}

date::local_seconds to_local(const date::time_zone* zone, date::sys_seconds time) {
  return date::local_seconds((time + offset_at(zone, time)).time_since_epoch());
}

date::sys_seconds to_sys(const date::time_zone* zone,
                         date::local_seconds time,
                         date::choose choose) {
  if (zone == nullptr) {
    return date::sys_seconds(time.time_since_epoch());
  }
  return zone->to_sys(time, choose);
}

std::int64_t to_ms(date::sys_seconds time) {
  return std::chrono::milliseconds(time.time_since_epoch()).count();
}

std::string text_of(date::local_seconds time) {
  const auto day = date::floor<date::days>(time);
  const date::year_month_day ymd(day);
  const date::hh_mm_ss<seconds> clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(ymd.year()),
                     static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name) {
  TimeZone result;
  if (name.empty() || name == "UTC") {
    return result;
  }
  try {
    result.zone_ = name == "Local" ? date::current_zone() : date::locate_zone(std::string(name));
    // The library reads the rules of a zone on first use. Do it here, so that a broken zone file is
    // found now and not in a request handler.
    static_cast<void>(result.zone_->get_info(date::sys_seconds()));
  } catch (const std::exception&) {
    if (std::error_code error;
        name == "Local" && !std::filesystem::exists("/etc/localtime", error)) {
      return TimeZone();  // UTC, as for localtime(3), for example in a container
    }
    return fail(ErrorCode::kInvalidArgument, "unknown time zone {}", printable(name));
  }
  return result;
}

std::string TimeZone::local(std::int64_t ms) const {
  return text_of(to_local(zone_, at(ms)));
}

std::string TimeZone::local_with_offset(std::int64_t ms) const {
  const std::int64_t minutes = offset_at(zone_, at(ms)).count() / 60;
  const std::int64_t size = minutes < 0 ? -minutes : minutes;
  return fmt::format("{}{}{:02}{:02}", local(ms), minutes < 0 ? '-' : '+', size / 60, size % 60);
}

std::optional<std::int64_t> TimeZone::parse_local(std::string_view text) const {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() != kForm.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) {
      return std::nullopt;
    }
  }
  const auto number = [text](std::size_t begin, std::size_t size) {
    return parse_int<int>(text.substr(begin, size)).value_or(0);
  };
  const date::year_month_day ymd(date::year(number(0, 4)),
                                 date::month(static_cast<unsigned>(number(5, 2))),
                                 date::day(static_cast<unsigned>(number(8, 2))));
  const int hour = number(11, 2);
  const int minute = number(14, 2);
  const int second = number(17, 2);
  if (!ymd.ok() || hour > 23 || minute > 59 || second > 60) {
    return std::nullopt;
  }
  const date::local_seconds local = date::local_days(ymd) + std::chrono::hours(hour) +
                                    std::chrono::minutes(minute) + seconds(second);
  return to_ms(to_sys(zone_, local, date::choose::latest));
}

std::int64_t TimeZone::day_start(std::int64_t ms) const {
  const auto day = date::floor<date::days>(to_local(zone_, at(ms)));
  return to_ms(to_sys(zone_, date::local_seconds(day), date::choose::earliest));
}

std::string TimeZone::day(std::int64_t ms) const {
  return text_of(date::local_seconds(date::floor<date::days>(to_local(zone_, at(ms)))));
}

}  // namespace ceems
