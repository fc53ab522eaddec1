#include "api/request/months.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::api {
namespace {

std::string name_of(int year, int month) {
  return fmt::format("{:04}-{:02}", year, month);
}

std::int64_t start_of(const std::string& name, const TimeZone& zone) {
  return zone.parse_local(name + "-01T00:00:00").value_or(0);
}

}  // namespace

Result<Month> month_named(std::string_view name, const TimeZone& zone) {
  constexpr std::size_t kLength = std::string_view("2026-11").size();
  constexpr int kLast = 12;
  bool shaped = name.size() == kLength;
  for (std::size_t i = 0; shaped && i < name.size(); ++i) {
    shaped = i == 4 ? name[i] == '-' : name[i] >= '0' && name[i] <= '9';
  }
  const int year = shaped ? parse_int<int>(name.substr(0, 4)).value_or(0) : 0;
  const int month = shaped ? parse_int<int>(name.substr(5)).value_or(0) : 0;
  if (year < 1971 || year > 9998 || month < 1 || month > kLast) {
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'month': expected a month such as 2026-11");
  }
  const std::string next = month == kLast ? name_of(year + 1, 1) : name_of(year, month + 1);
  return Month{.name = std::string(name),
               .from_ms = start_of(std::string(name), zone),
               .to_ms = start_of(next, zone)};
}

Month month_at(std::int64_t ms, const TimeZone& zone) {
  return month_named(zone.local(ms).substr(0, 7), zone).value_or(Month{});
}

Month month_before(const Month& month, const TimeZone& zone) {
  return month_at(month.from_ms - 1, zone);
}

}  // namespace ceems::api
