#include "api/report/month.h"

#include <algorithm>
#include <chrono>

#include "api/report/evidence_numbers.h"
#include "base/time/time_text.h"
#include "store/facts.h"

namespace ceems::api {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;

/// Clocks change within a month, so midnights are looked for this much around their time.
constexpr std::int64_t kSlackMs = std::int64_t{2} * 3'600'000;
constexpr std::size_t kLocalLength = std::string_view("2026-11-17T09:12:00").size();

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
  CEEMS_TRY(used, reader.usage_by_day({.members = members,
                                       .projects = {unit.project},
                                       .clusters = {unit.cluster_id},
                                       .days = *month}));
  report::Number sum;
  for (const store::UsageOfDay& day : used) {
    add_to(sum, day.kwh());
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
