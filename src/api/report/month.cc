#include "api/report/month.h"

#include <algorithm>
#include <chrono>

#include "base/time/time_text.h"
#include "store/fields.h"

namespace ceems::api {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

/// Clocks change within a month, so midnights are looked for this much around their time.
constexpr std::int64_t kSlackMs = std::int64_t{2} * 3'600'000;
constexpr std::size_t kLocalLength = std::string_view("2026-11-17T09:12:00").size();

std::size_t map_of(model::Metric metric) {
  return 1 + static_cast<std::size_t>(metric);  // after total_time_seconds
}

}  // namespace

std::optional<store::TimeRange> month_days(std::string_view local, std::int64_t at_ms) {
  const auto moment = parse_localz(local);
  if (!moment || local.size() < kLocalLength) {
    return std::nullopt;
  }
  const auto as_utc = parse_localz(std::string(local.substr(0, kLocalLength)) + "+0000");
  if (!as_utc) {
    return std::nullopt;
  }
  const std::int64_t offset = *as_utc - *moment;
  const year_month_day day{
      std::chrono::floor<days>(std::chrono::sys_time<milliseconds>(milliseconds(at_ms + offset)))};
  const sys_days first = day.year() / day.month() / 1;
  const sys_days last = day.year() / day.month() / std::chrono::last;
  const auto ms_of = [offset](sys_days at) {
    return std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count() - offset;
  };
  return store::TimeRange{.from_ms = ms_of(first) - kSlackMs, .to_ms = ms_of(last) + kSlackMs};
}

Result<bool> sees_project(store::Reader& reader,
                          const store::Scope& members,
                          const std::string& cluster_id,
                          const std::string& project) {
  const bool led = std::ranges::any_of(members.led_projects, [&](const auto& one) {
    return one.cluster_id == cluster_id && one.project == project;
  });
  if (members.everybody || led) {
    return true;
  }
  CEEMS_TRY(rows,
            reader.projects({.members = members, .projects = {project}, .clusters = {cluster_id}}));
  return rows->next();
}

Result<report::Number> project_month_kwh(store::Reader& reader,
                                         const model::Unit& unit,
                                         const store::Scope& members) {
  const auto month = month_days(unit.started_at, unit.ended_at_ts);
  if (!month || unit.ended_at_ts <= 0 || unit.project.empty()) {
    return std::nullopt;
  }
  CEEMS_TRY(sees, sees_project(reader, members, unit.cluster_id, unit.project));
  if (!sees) {
    return std::nullopt;
  }
  store::CurrentUsageQuery query;
  query.rows = {.members = members, .projects = {unit.project}, .clusters = {unit.cluster_id}};
  query.updated = *month;
  query.daily = true;
  const std::size_t cpu = map_of(model::Metric::kTotalCpuEnergyUsageKwh);
  const std::size_t gpu = map_of(model::Metric::kTotalGpuEnergyUsageKwh);
  query.maps.at(cpu) = query.maps.at(gpu) = true;
  CEEMS_TRY(groups, reader.current_usage(query));
  report::Number sum;
  for (const store::UsageGroup& group : groups) {
    for (const std::size_t map : {cpu, gpu}) {
      if (const auto total = group.maps.at(map).find("total"); total != group.maps.at(map).end()) {
        sum = sum.value_or(0) + total->second;
      }
    }
  }
  return sum;
}

Result<report::Number> MonthShares::share_of(const model::Unit& unit, const report::Number& kwh) {
  const auto month = month_days(unit.started_at, unit.ended_at_ts);
  if (!month || !kwh) {
    return std::nullopt;
  }
  const std::tuple key(unit.cluster_id, unit.project, month->from_ms);
  auto found = sums_.find(key);
  if (found == sums_.end()) {
    CEEMS_TRY(sum, project_month_kwh(reader_, unit, members_));
    found = sums_.emplace(key, sum).first;
  }
  const report::Number& sum = found->second;
  return sum && *sum >= *kwh && *sum > 0 ? report::Number(*kwh / *sum) : std::nullopt;
}

}  // namespace ceems::api
