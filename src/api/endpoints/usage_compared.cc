// Usage over a period against the one before: like with like.
#include "api/endpoints/usage_compared.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "api/answer/numbers.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

double coverage_of(const UsageSums& sums) {
  if (sums.first_ms == 0 || sums.times.empty() || sums.end_ms <= sums.times.front()) {
    return 0;
  }
  return static_cast<double>(sums.end_ms - std::max(sums.first_ms, sums.times.front())) /
         static_cast<double>(sums.end_ms - sums.times.front());
}

/// The share of the days on which anything ran that have a value of units that ended.
double ended_coverage_of(const UsageSums& sums, UsageField field) {
  std::size_t used = 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < sums.times.size(); ++i) {
    const auto value_of = [i](const auto& group, UsageField of) {
      return group.second[i].at(static_cast<std::size_t>(of));
    };
    if (std::ranges::any_of(sums.groups, [&](const auto& group) {
          return value_of(group, UsageField::kCoreHours).value_or(0) > 0;
        })) {
      used += 1;
      known +=
          std::ranges::any_of(sums.groups,
                              [&](const auto& group) { return value_of(group, field).has_value(); })
              ? 1
              : 0;
    }
  }
  return used > 0 ? static_cast<double>(known) / static_cast<double>(used) : 0;
}

std::optional<double> sum_of(const std::vector<std::optional<double>>& values) {
  std::optional<double> sum;
  for (const auto& value : values) {
    add_known(sum, value);
  }
  return sum;
}

}  // namespace

Result<std::optional<ComparedUsage>> read_compared_usage(const Services& services,
                                                         const Call& call,
                                                         const UsageRequest& request,
                                                         const UsageSums& sums) {
  const TimeZone& zone = services.zone;
  const std::int64_t today = zone.day_start(services.now_ms());
  UsageRequest now = request;
  now.step = UsageStep::kDay;
  now.from_ms = sums.times.front();
  now.to_ms = std::min(sums.end_ms, today) - 1;
  if (now.to_ms <= now.from_ms) {
    return std::nullopt;
  }
  UsageRequest before = now;
  // The beginnings of the days or months before, the earliest first, and their end.
  std::vector<std::int64_t> earlier{sums.times.front()};
  for (std::size_t i = 0; i < sums.times.size(); ++i) {
    earlier.insert(earlier.begin(),
                   time_before(earlier.front(), request.step == UsageStep::kMonth, zone));
  }
  before.from_ms = earlier.front();
  const std::int64_t end = now.to_ms + 1;
  const auto last = static_cast<std::size_t>(std::ranges::upper_bound(sums.times, now.to_ms) -
                                             sums.times.begin()) -
                    1;
  std::int64_t before_end = earlier.at(last + 1);
  if (request.step == UsageStep::kMonth && zone.day(end).substr(8, 2) != "01") {
    // Of a month that is asked for in part, or has not ended, as many days.
    std::int64_t day = earlier.at(last);
    for (std::int64_t begin = sums.times.at(last); begin < end && day < before_end;
         begin = zone.day_start(begin + kDayMs * 3 / 2)) {
      day = zone.day_start(day + kDayMs * 3 / 2);
    }
    before_end = day;
  }
  before.to_ms = before_end - 1;
  if (before.from_ms < 0 || before.to_ms <= before.from_ms) {
    return std::nullopt;
  }
  ComparedUsage compared;
  CEEMS_TRY(now_sums, read_usage_days(services, call, now));
  CEEMS_TRY(before_sums, read_usage_days(services, call, before));
  compared.days = now_sums.times.size();
  compared.now = std::move(now_sums);
  compared.before = std::move(before_sums);
  return compared;
}

void append_compared_usage(JsonWriter& json,
                           const ComparedUsage& compared,
                           const UsageRequest& request,
                           const std::vector<std::string>& shown,
                           bool others,
                           bool priced) {
  const auto share = [&](std::string_view name, const auto& of) {
    json.member(name, rounded(std::min(of(compared.now), of(compared.before)), 3));
  };
  json.key("compared").begin_object();
  json.member("days", static_cast<std::int64_t>(compared.days));
  share("coverage", coverage_of);
  share("energy_coverage",
        [](const UsageSums& sums) { return sums.energy_coverage().value_or(0); });
  const auto share_of_ended = [&](std::string_view name, UsageField field) {
    if (request.wants(field)) {
      json.member(name, rounded(std::min(ended_coverage_of(compared.now, field),
                                         ended_coverage_of(compared.before, field)),
                                3));
    }
  };
  share_of_ended("idle_coverage", UsageField::kIdleKwh);
  share_of_ended("not_used_coverage", UsageField::kNotUsedKwh);
  for (const auto& [name, sums] :
       {std::pair("now", &compared.now), std::pair("before", &compared.before)}) {
    json.key(name).begin_object();
    for (const UsageField field : request.fields) {
      json.key(name_of(field)).begin_array();
      const bool unknown = is_of_ended(field) || (field == UsageField::kCost && !priced);
      const bool measured = is_measured(field);
      const auto hours = sums->rows(shown, others, UsageField::kCoreHours);
      const auto rows = sums->rows(shown, others, field);
      for (std::size_t group = 0; group < rows.size(); ++group) {
        const bool gap = measured && sum_of(hours[group]).value_or(0) > 0;
        std::optional<double> total = unknown || gap ? std::nullopt : std::optional(0.0);
        add_known(total, sum_of(rows[group]));
        append_number(json, total ? std::optional(rounded(*total, 6)) : total);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
}

}  // namespace ceems::api
