// Usage over days and months, from the sums by day and the facts of units that ended.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "access/lists.h"
#include "api/accounting/accounting.h"
#include "api/accounting/market.h"
#include "api/endpoints/usage_series.h"
#include "api/request/list_params.h"
#include "base/time/durations.h"
#include "store/facts.h"
#include "store/nodes.h"

namespace ceems::api {
namespace {

/// The beginnings of the days or months that overlap the period.
std::vector<std::int64_t> times_of(const UsageRequest& request, const TimeZone& zone) {
  constexpr std::int64_t kNoonMs = kDayMs / 2;
  std::vector<std::int64_t> times;
  std::int64_t day = zone.day_start(request.from_ms);
  while (day <= request.to_ms) {
    const bool first_of_month = zone.day(day).substr(8, 2) == "01";
    if (request.step != UsageStep::kMonth || first_of_month || times.empty()) {
      times.push_back(day);
    }
    day = zone.day_start(day + kDayMs + kNoonMs);  // a day has 23 to 25 hours
  }
  if (request.step == UsageStep::kMonth && !times.empty()) {
    // The first month begins before the period.
    std::int64_t start = times.front();
    while (zone.day(start).substr(8, 2) != "01") {
      start = zone.day_start(start - kNoonMs);
    }
    times.front() = start;
  }
  return times;
}

store::UsageBy stored_by(UsageGroups by) {
  switch (by) {
    case UsageGroups::kProject:
      return store::UsageBy::kProject;
    case UsageGroups::kUser:
      return store::UsageBy::kUser;
    case UsageGroups::kCluster:
      return store::UsageBy::kCluster;
    default:
      return store::UsageBy::kNothing;
  }
}

/// Energy of CPUs and of GPUs, where it was measured.
void add_components(const store::UsageOfDay& day, std::size_t time, UsageSums& sums) {
  sums.add_to("cpu", time, UsageField::kCoreHours, day.core_hours());
  if (!day.kwh()) {
    return;
  }
  sums.add_to("cpu", time, UsageField::kKwh, day.cpu_kwh);
  sums.add_to("gpu", time, UsageField::kKwh, day.gpu_kwh);
  if (day.grams()) {
    sums.add_to("cpu", time, UsageField::kGrams, day.cpu_grams);
    sums.add_to("gpu", time, UsageField::kGrams, day.gpu_grams);
  }
}

/// Emissions by the factor for the middle of the day: bills may begin at any hour.
void add_market(const store::UsageOfDay& day,
                std::size_t time,
                const std::string& group,
                std::optional<MarketFactors>& market,
                UsageSums& sums) {
  const auto kwh = day.kwh();
  const auto factor =
      market && kwh ? market->at(day.cluster, day.day_ms + kDayMs / 2) : std::nullopt;
  if (factor) {
    sums.market_kwh[factor->source] += *kwh;
    sums.add_to(group, time, UsageField::kMarketGrams, *kwh * factor->grams);
    sums.add_to(group, time, UsageField::kMarketOfKwh, kwh);
  }
}

}  // namespace

bool UsageSums::knows(std::size_t time) const {
  const std::int64_t end = time + 1 < times.size() ? times[time + 1] : end_ms;
  return first_ms == 0 || end_ms == 0 || end > first_ms;
}

std::optional<double>& UsageSums::at(const std::string& group, std::size_t time, UsageField field) {
  auto [found, fresh] = groups.try_emplace(group);
  if (fresh) {
    found->second.resize(times.size());
  }
  return found->second.at(time).at(static_cast<std::size_t>(field));
}

void UsageSums::add_to(const std::string& group,
                       std::size_t time,
                       UsageField field,
                       std::optional<double> value) {
  add_known(at(group, time, field), value);
}

std::optional<double> UsageSums::total(const std::string& group, UsageField field) const {
  std::optional<double> sum;
  if (const auto found = groups.find(group); found != groups.end()) {
    for (const Values& values : found->second) {
      add_known(sum, values.at(static_cast<std::size_t>(field)));
    }
  }
  return sum;
}

std::optional<double> UsageSums::energy_coverage() const {
  return hours > 0 ? std::optional(hours_with_energy / hours) : std::nullopt;
}

std::vector<std::vector<std::optional<double>>> UsageSums::rows(
    const std::vector<std::string>& shown, bool others, UsageField field) const {
  std::vector<std::vector<std::optional<double>>> all(
      shown.size() + (others ? 1 : 0), std::vector<std::optional<double>>(times.size()));
  for (const auto& [name, values] : groups) {
    const auto found = std::ranges::find(shown, name);
    if (found == shown.end() && !others) {
      continue;
    }
    auto& row = all.at(static_cast<std::size_t>(found - shown.begin()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      add_known(row[i], values[i].at(static_cast<std::size_t>(field)));
    }
  }
  return all;
}

std::int64_t time_before(std::int64_t time_ms, bool monthly, const TimeZone& zone) {
  std::int64_t day = zone.day_start(time_ms - kDayMs / 2);
  while (monthly && zone.day(day).substr(8, 2) != "01") {
    day = zone.day_start(day - kDayMs / 2);
  }
  return day;
}

Result<UsageSums> read_usage_days(const Services& services,
                                  const Call& call,
                                  const UsageRequest& request) {
  const TimeZone& zone = services.zone;
  UsageSums sums{.times = times_of(request, zone), .groups = {}};
  if (sums.times.empty()) {
    return sums;
  }
  const store::TimeRange period{sums.times.front(),
                                zone.day_start(zone.day_start(request.to_ms) + kDayMs * 3 / 2) - 1};
  store::UsageSeriesQuery query{
      .members = call.admin_route
                     ? access::chosen_rows(call.identity, {}, {})
                     : access::own_projects(call.identity, access::parse_part(call.params.scope)),
      .projects = split_lists(call.params.projects),
      .clusters = split_lists(call.params.clusters),
      .users = split_lists(call.params.users),
      .days = period,
      .ended = period,
      .by = stored_by(request.by),
      .idle = std::ranges::any_of(request.fields, is_of_ended)};
  QueryTimer timer(*services.metrics, Query::kCurrentUsage);
  CEEMS_TRY(days, timer.run([&] { return services.reader->usage_by_day(query); }));
  if (query.members.everybody && query.projects.empty() && query.users.empty()) {
    sums.first_ms = days.empty() || days.front().idle_kwh ? 0 : days.front().day_ms;
  } else {
    // Before the first day on which anyone used anything, nothing is known. It tells nothing about
    // any of them.
    CEEMS_TRY(first, timer.run([&] {
      return services.reader->first_usage_day(query.days, query.clusters);
    }));
    sums.first_ms = first;
  }
  sums.end_ms = period.to_ms + 1;
  std::optional<MarketFactors> market;
  if (request.wants(UsageField::kMarketGrams) || request.wants(UsageField::kMarketOfKwh)) {
    CEEMS_TRY(bills, timer.run([&] { return services.reader->bills(period); }));
    market.emplace(bills, services.accounting->options().market);
  }
  Costs costs = services.accounting->costs();
  const std::int64_t now_ms = services.now_ms();
  std::set<std::string> priced;
  for (const store::UsageOfDay& day : days) {
    const auto after = std::ranges::upper_bound(sums.times, day.day_ms);
    if (after == sums.times.begin()) {
      continue;
    }
    const auto time = static_cast<std::size_t>(after - sums.times.begin()) - 1;
    if (request.by == UsageGroups::kComponent) {
      add_components(day, time, sums);
      continue;
    }
    const std::string group = request.by == UsageGroups::kNone ? std::string(kAllUsage) : day.group;
    if (day.idle_kwh) {
      sums.add_to(group, time, UsageField::kIdleKwh, day.idle_kwh);
      sums.add_to(group, time, UsageField::kIdleOfKwh, day.idle_of_kwh);
      sums.add_to(group, time, UsageField::kNotUsedKwh, day.not_used_kwh);
      sums.add_to(group, time, UsageField::kNotUsedOfKwh, day.not_used_of_kwh);
      continue;
    }
    std::optional<double> cost;
    if (request.wants(UsageField::kCost)) {
      if (priced.insert(day.cluster).second) {
        // Of the whole period, because a series of prices is read a few times only.
        static_cast<void>(
            costs.price(day.cluster, period.from_ms, std::min(period.to_ms + 1, now_ms)));
      }
      cost = cost_of(costs, day, zone, now_ms);
    }
    sums.hours += day.core_hours();
    sums.hours_with_energy += day.core_hours_with_energy();
    sums.add_to(group, time, UsageField::kKwh, day.kwh());
    sums.add_to(group, time, UsageField::kGrams, day.grams());
    sums.add_to(group, time, UsageField::kGramsOfKwh, day.grams() ? day.kwh() : std::nullopt);
    add_market(day, time, group, market, sums);
    sums.add_to(group, time, UsageField::kCost, cost);
    sums.add_to(group, time, UsageField::kCoreHours, day.core_hours());
    sums.add_to(group, time, UsageField::kGpuHours, day.gpu_hours());
    sums.add_to(group, time, UsageField::kCoreHoursWithEnergy, day.core_hours_with_energy());
    sums.add_to(group, time, UsageField::kGpuHoursWithEnergy, day.gpu_hours_with_energy());
    sums.add_to(group, time, UsageField::kUnits, static_cast<double>(day.units));
  }
  return sums;
}

}  // namespace ceems::api
