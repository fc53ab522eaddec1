// Usage over days, months and hours.
#include "api/endpoints/usage_series.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/usage_table.h"
#include "api/request/list_params.h"
#include "api/tsdb/hour_energy.h"
#include "base/json.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {
constexpr std::int64_t kMaxDays = 2000;
constexpr std::int64_t kDefaultDays = 30;
constexpr std::int64_t kMaxDaysOfHours = 14;
constexpr std::int64_t kDefaultHours = 24;

using Field = UsageField;
using By = UsageGroups;
using Step = UsageStep;
using Sums = UsageSums;

constexpr std::array<std::string_view, kUsageFields> kFields{
    "kwh", "grams", "cost", "core_hours", "gpu_hours", "idle_kwh", "units"};
constexpr std::array<std::string_view, 5> kBy{"none", "project", "user", "cluster", "component"};
constexpr std::array<std::string_view, 3> kSteps{"hour", "day", "month"};

Result<UsageRequest> read_request(const Params& params, std::int64_t now_ms) {
  UsageRequest request;
  const auto from = parse_seconds("from", params.from);
  const auto to = parse_seconds("to", params.to);
  if (!from || !to) {
    return fail((from ? to : from).error());
  }
  if (const std::string_view step = params.text(Param::kStep); !step.empty()) {
    const auto found = std::ranges::find(kSteps, step);
    if (found == kSteps.end()) {
      return wrong_parameter("'step': expected 'hour', 'day' or 'month'");
    }
    request.step = static_cast<Step>(found - kSteps.begin());
  }
  const bool hourly = request.step == Step::kHour;
  request.to_ms = to->value_or(now_ms / kSecondMs) * kSecondMs;
  const std::optional<std::int64_t>& since = *from;
  request.from_ms = since ? *since * kSecondMs
                          : request.to_ms - (hourly ? (kDefaultHours - 1) * kUsageHourMs
                                                    : (kDefaultDays - 1) * kDayMs);
  if (request.from_ms > request.to_ms || request.from_ms < 0) {
    return wrong_parameter("'from': expected a time before 'to'");
  }
  const std::int64_t most = hourly ? kMaxDaysOfHours : kMaxDays;
  if (request.to_ms - request.from_ms > most * kDayMs) {
    return wrong_parameter(
        fmt::format("'from': expected at most {} days{}", most, hourly ? " of hours" : ""));
  }
  if (const std::string_view by = params.text(Param::kBy); !by.empty()) {
    const auto found = std::ranges::find(kBy, by);
    if (found == kBy.end()) {
      return wrong_parameter("'by': expected none, project, user, cluster or component");
    }
    request.by = static_cast<By>(found - kBy.begin());
  }
  for (const std::string& name : split_lists(params.fields)) {
    const auto found = std::ranges::find(kFields, std::string_view(name));
    if (found == kFields.end()) {
      return wrong_parameter(
          "'field': expected some of kwh, grams, cost, core_hours, gpu_hours, idle_kwh, units");
    }
    request.fields.push_back(static_cast<Field>(found - kFields.begin()));
  }
  if (request.fields.empty()) {
    request.fields = {Field::kKwh};
  }
  if (request.by == By::kComponent && std::ranges::any_of(request.fields, [](Field field) {
        return field != Field::kKwh && field != Field::kGrams;
      })) {
    return wrong_parameter("'field': only kwh and grams are known by component");
  }
  if (hourly && (request.wants(Field::kGrams) || request.wants(Field::kIdleKwh))) {
    return wrong_parameter("'field': grams and idle_kwh are known by day and month, not by hour");
  }
  CEEMS_TRY(top, parse_number("top", params.text(Param::kTop), 1, 50, 5));
  request.top = top;
  request.previous = params.has(Param::kPrevious);
  CEEMS_TRY(table, parse_table_format(params));
  request.table = table;
  if (table && params.text(Param::kTop).empty()) {
    request.top = kMaxTableGroups;
  }
  return request;
}

/// The beginnings of the days or months that overlap the period.
std::vector<std::int64_t> times_of(const UsageRequest& request, const TimeZone& zone) {
  constexpr std::int64_t kNoonMs = kDayMs / 2;
  std::vector<std::int64_t> times;
  std::int64_t day = zone.day_start(request.from_ms);
  while (day <= request.to_ms) {
    const bool first_of_month = zone.day(day).substr(8, 2) == "01";
    if (request.step != Step::kMonth || first_of_month || times.empty()) {
      times.push_back(day);
    }
    day = zone.day_start(day + kDayMs + kNoonMs);  // a day has 23 to 25 hours
  }
  if (request.step == Step::kMonth && !times.empty()) {
    // The first month begins before the period.
    std::int64_t start = times.front();
    while (zone.day(start).substr(8, 2) != "01") {
      start = zone.day_start(start - kNoonMs);
    }
    times.front() = start;
  }
  return times;
}

/// The beginning of the day or month before the one that begins then.
std::int64_t time_before(std::int64_t time_ms, bool monthly, const TimeZone& zone) {
  std::int64_t day = zone.day_start(time_ms - kDayMs / 2);
  while (monthly && zone.day(day).substr(8, 2) != "01") {
    day = zone.day_start(day - kDayMs / 2);
  }
  return day;
}

store::UsageBy stored_by(By by) {
  switch (by) {
    case By::kProject:
      return store::UsageBy::kProject;
    case By::kUser:
      return store::UsageBy::kUser;
    case By::kCluster:
      return store::UsageBy::kCluster;
    default:
      return store::UsageBy::kNothing;
  }
}

Result<Sums> read_sums(const Services& services, const Call& call, const UsageRequest& request) {
  const TimeZone& zone = services.zone;
  if (request.step == Step::kHour) {
    return read_usage_hours(services, call, request,
                            hours_of(request.from_ms, request.to_ms, zone));
  }
  Sums sums{.times = times_of(request, zone), .groups = {}};
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
      .idle = request.wants(Field::kIdleKwh)};
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
  Costs costs = services.accounting->costs();
  const std::int64_t now_ms = services.now_ms();
  std::set<std::string> priced;
  for (const store::UsageOfDay& day : days) {
    const auto after = std::ranges::upper_bound(sums.times, day.day_ms);
    if (after == sums.times.begin()) {
      continue;
    }
    const auto time = static_cast<std::size_t>(after - sums.times.begin()) - 1;
    if (request.by == By::kComponent) {
      sums.add_to("cpu", time, Field::kCoreHours, day.cpu_seconds / kHourSeconds);
      if (day.cpu_kwh + day.gpu_kwh <= 0 && day.cpu_seconds > 0) {
        continue;
      }
      sums.add_to("cpu", time, Field::kKwh, day.cpu_kwh);
      sums.add_to("gpu", time, Field::kKwh, day.gpu_kwh);
      sums.add_to("cpu", time, Field::kGrams, day.cpu_grams);
      sums.add_to("gpu", time, Field::kGrams, day.gpu_grams);
      continue;
    }
    const std::string group = request.by == By::kNone ? std::string(kAllUsage) : day.group;
    if (day.idle_kwh) {
      sums.add_to(group, time, Field::kIdleKwh, day.idle_kwh);
      continue;
    }
    const double kwh = day.cpu_kwh + day.gpu_kwh;
    const double core_hours = day.cpu_seconds / kHourSeconds;
    const double gpu_hours = day.gpu_seconds / kHourSeconds;
    std::optional<double> cost;
    if (request.wants(Field::kCost)) {
      if (priced.insert(day.cluster).second) {
        // Of the whole period, because a series of prices is read a few times only.
        static_cast<void>(
            costs.price(day.cluster, period.from_ms, std::min(period.to_ms + 1, now_ms)));
      }
      const std::int64_t end = zone.day_start(day.day_ms + kDayMs * 3 / 2);
      cost = costs.of(day.cluster, day.day_ms, std::min(end, now_ms), kwh, core_hours, gpu_hours);
    }
    sums.hours += core_hours;
    // What ran used energy: none is not measured.
    const bool measured = kwh > 0 || core_hours <= 0;
    if (measured) {
      sums.energy_hours += core_hours;
      sums.add_to(group, time, Field::kKwh, kwh);
      sums.add_to(group, time, Field::kGrams, day.cpu_grams + day.gpu_grams);
    }
    sums.add_to(group, time, Field::kCost, cost);
    sums.add_to(group, time, Field::kCoreHours, core_hours);
    sums.add_to(group, time, Field::kGpuHours, gpu_hours);
    sums.add_to(group, time, Field::kUnits, static_cast<double>(day.units));
  }
  return sums;
}

constexpr std::string_view kOthers = "(others)";

/// The groups that are shown one by one, the largest first.
std::vector<std::string> largest_groups(const Sums& sums, const UsageRequest& request) {
  std::vector<std::pair<double, std::string>> groups;
  groups.reserve(sums.groups.size());
  for (const auto& [name, values] : sums.groups) {
    groups.emplace_back(-sums.total(name, request.fields.front()).value_or(0), name);
  }
  std::ranges::sort(groups);
  std::vector<std::string> names;
  for (const auto& [total, name] : groups) {
    if (names.size() < request.top) {
      names.push_back(name);
    }
  }
  return names;
}

/// The values of a field: of the shown groups, then of all others together.
std::vector<std::vector<std::optional<double>>> rows_of(const Sums& sums,
                                                        const std::vector<std::string>& shown,
                                                        bool others,
                                                        Field field) {
  std::vector<std::vector<std::optional<double>>> rows(
      shown.size() + (others ? 1 : 0), std::vector<std::optional<double>>(sums.times.size()));
  for (const auto& [name, values] : sums.groups) {
    const auto found = std::ranges::find(shown, name);
    if (found == shown.end() && !others) {
      continue;
    }
    auto& row = rows.at(static_cast<std::size_t>(found - shown.begin()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      add_known(row[i], values[i].at(static_cast<std::size_t>(field)));
    }
  }
  return rows;
}

/// The values of a field as they are answered, by group and time.
std::vector<std::vector<std::optional<double>>> shown_values(const Sums& sums,
                                                             const UsageRequest& request,
                                                             const std::vector<std::string>& shown,
                                                             bool others,
                                                             Field field,
                                                             bool priced) {
  const auto hours = rows_of(sums, shown, others, Field::kCoreHours);
  auto rows = rows_of(sums, shown, others, field);
  // A day without a row is a day without use, except where nothing was measured. An hour has a
  // value wherever it is known.
  const bool unknown =
      request.step == Step::kHour || field == Field::kIdleKwh || (field == Field::kCost && !priced);
  const bool measured = field == Field::kKwh || field == Field::kGrams;
  for (std::size_t group = 0; group < rows.size(); ++group) {
    for (std::size_t i = 0; i < rows[group].size(); ++i) {
      std::optional<double>& value = rows[group][i];
      // Hours without energy were not measured; before the first day nothing is known.
      const bool gap = (measured && hours[group][i].value_or(0) > 0) || !sums.knows(i);
      if (!value && !gap && !unknown) {
        value = 0.0;
      }
    }
  }
  return rows;
}

void append_sums(JsonWriter& json,
                 const Sums& sums,
                 const UsageRequest& request,
                 const std::vector<std::string>& shown,
                 bool others,
                 bool priced) {
  json.key("times").begin_array();
  for (const std::int64_t time : sums.times) {
    json.value(time);
  }
  json.end_array();
  std::string totals;
  JsonWriter total_json(totals);
  total_json.begin_object();
  json.key("values").begin_object();
  for (const Field field : request.fields) {
    const std::string_view name = kFields.at(static_cast<std::size_t>(field));
    json.key(name).begin_array();
    total_json.key(name).begin_array();
    for (const auto& values : shown_values(sums, request, shown, others, field, priced)) {
      std::optional<double> total;
      json.begin_array();
      for (const auto& value : values) {
        add_known(total, value);
        append_number(json, value ? std::optional(rounded(*value, 6)) : value);
      }
      json.end_array();
      append_number(total_json, total ? std::optional(rounded(*total, 6)) : total);
    }
    json.end_array();
    total_json.end_array();
  }
  json.end_object();
  total_json.end_object();
  json.raw_member("totals", totals);
}

/// The same number of days, months or hours before.
Result<Sums> read_before(const Services& services,
                         const Call& call,
                         const UsageRequest& request,
                         const Sums& sums) {
  UsageRequest earlier = request;
  earlier.to_ms = sums.times.front() - 1;
  earlier.from_ms = sums.times.front();
  if (request.step == Step::kHour) {
    std::vector<std::int64_t> hours = sums.times;
    for (std::int64_t& hour : hours) {
      hour -= static_cast<std::int64_t>(sums.times.size()) * kUsageHourMs;
    }
    return read_usage_hours(services, call, earlier, hours);
  }
  for (std::size_t i = 0; i < sums.times.size(); ++i) {
    earlier.from_ms = time_before(earlier.from_ms, request.step == Step::kMonth, services.zone);
  }
  earlier.from_ms = std::max<std::int64_t>(earlier.from_ms, 0);
  return read_sums(services, call, earlier);
}

/// The same days of this period and of the one before, without a day that has not ended. Two
/// periods that are not known for 80 % of their days are not compared.
struct Compared {
  std::size_t days = 0;
  Sums now, before;
};

double coverage_of(const Sums& sums) {
  if (sums.first_ms == 0 || sums.times.empty() || sums.end_ms <= sums.times.front()) {
    return 0;
  }
  return static_cast<double>(sums.end_ms - std::max(sums.first_ms, sums.times.front())) /
         static_cast<double>(sums.end_ms - sums.times.front());
}

double energy_coverage_of(const Sums& sums) {
  return sums.hours > 0 ? sums.energy_hours / sums.hours : 0;
}

/// The share of the days on which anything ran that have an idle energy of units that ended.
double idle_coverage_of(const Sums& sums) {
  std::size_t used = 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < sums.times.size(); ++i) {
    const auto any = [&](Field field) {
      return std::ranges::any_of(sums.groups, [&](const auto& group) {
        return group.second[i].at(static_cast<std::size_t>(field)).value_or(0) > 0;
      });
    };
    if (any(Field::kCoreHours)) {
      used += 1;
      known += any(Field::kIdleKwh) ? 1 : 0;
    }
  }
  return used > 0 ? static_cast<double>(known) / static_cast<double>(used) : 0;
}

Result<std::optional<Compared>> read_compared(const Services& services,
                                              const Call& call,
                                              const UsageRequest& request,
                                              const Sums& sums) {
  const TimeZone& zone = services.zone;
  const std::int64_t today = zone.day_start(services.now_ms());
  UsageRequest now = request;
  now.step = Step::kDay;
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
                   time_before(earlier.front(), request.step == Step::kMonth, zone));
  }
  before.from_ms = earlier.front();
  const std::int64_t end = now.to_ms + 1;
  const auto last = static_cast<std::size_t>(std::ranges::upper_bound(sums.times, now.to_ms) -
                                             sums.times.begin()) -
                    1;
  std::int64_t before_end = earlier.at(last + 1);
  if (request.step == Step::kMonth && zone.day(end).substr(8, 2) != "01") {
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
  Compared compared;
  CEEMS_TRY(now_sums, read_sums(services, call, now));
  CEEMS_TRY(before_sums, read_sums(services, call, before));
  compared.days = now_sums.times.size();
  compared.now = std::move(now_sums);
  compared.before = std::move(before_sums);
  return compared;
}

void append_compared(JsonWriter& json,
                     const Compared& compared,
                     const UsageRequest& request,
                     const std::vector<std::string>& shown,
                     bool others,
                     bool priced) {
  const auto share = [&](double (*of)(const Sums&)) {
    return rounded(std::min(of(compared.now), of(compared.before)), 3);
  };
  json.key("compared").begin_object();
  json.member("days", static_cast<std::int64_t>(compared.days));
  json.member("coverage", share(coverage_of));
  json.member("energy_coverage", share(energy_coverage_of));
  if (request.wants(Field::kIdleKwh)) {
    json.member("idle_coverage", share(idle_coverage_of));
  }
  for (const auto& [name, sums] :
       {std::pair("now", &compared.now), std::pair("before", &compared.before)}) {
    json.key(name).begin_object();
    for (const Field field : request.fields) {
      json.key(kFields.at(static_cast<std::size_t>(field))).begin_array();
      const bool unknown = field == Field::kIdleKwh || (field == Field::kCost && !priced);
      for (const auto& row : rows_of(*sums, shown, others, field)) {
        std::optional<double> total = unknown ? std::nullopt : std::optional(0.0);
        for (const auto& value : row) {
          add_known(total, value);
        }
        append_number(json, total ? std::optional(rounded(*total, 6)) : total);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
}

/// Clusters that are left out of hours.
void append_missing(JsonWriter& json, const Sums& sums) {
  json.key("missing").begin_array();
  for (const Sums::Missing& one : sums.missing) {
    json.begin_object().member("cluster_id", one.cluster).member("reason", one.reason).end_object();
  }
  json.end_array();
  if (sums.partial) {
    json.member("partial", true);
  }
}

void answer_wrong(Call& call, const Error& error) {
  if (error.code == ErrorCode::kInvalidArgument) {
    answer_bad_request(call, error);
  } else {
    answer_failure(*call.response, error);
  }
}

/// Answers with a table of all groups.
void answer_table(const Services& services,
                  Call& call,
                  const UsageRequest& request,
                  const Sums& sums,
                  TableFormat format) {
  UsageTable table{
      .step = kSteps.at(static_cast<std::size_t>(request.step)),
      .by = kBy.at(static_cast<std::size_t>(request.by)),
      .fields = request.fields,
      .times = sums.times,
      .first_ms = sums.first_ms,
      .energy_coverage = sums.hours > 0 ? std::optional(energy_coverage_of(sums)) : std::nullopt};
  table.groups = largest_groups(sums, request);
  if (table.times.size() * table.groups.size() > kMaxTableRows) {
    answer_bad_request(
        call, {.code = ErrorCode::kInvalidArgument,
               .message = fmt::format("the table has more than {} rows: choose a shorter period, "
                                      "'step=month' or 'top'",
                                      kMaxTableRows)});
    return;
  }
  const bool others = sums.groups.size() > table.groups.size();
  for (const Field field : request.fields) {
    table.values.push_back(
        shown_values(sums, request, table.groups, others, field, services.accounting->priced()));
  }
  if (others) {
    table.groups.emplace_back(kOthers);
  }
  answer_usage_table(services, call, table, format);
}

void get_usage_series(const Services& services, Call& call) {
  const auto request = read_request(call.params, services.now_ms());
  if (!request) {
    answer_bad_request(call, request.error());
    return;
  }
  const auto sums = read_sums(services, call, *request);
  if (!sums) {
    answer_wrong(call, sums.error());
    return;
  }
  if (const auto format = request->table) {
    answer_table(services, call, *request, *sums, *format);
    return;
  }
  std::optional<Sums> before;
  if (request->previous && !sums->times.empty()) {
    auto read = read_before(services, call, *request, *sums);
    if (!read) {
      answer_wrong(call, read.error());
      return;
    }
    before = std::move(*read);
  }
  std::optional<Compared> compared;
  if (before && request->step != Step::kHour) {
    auto read = read_compared(services, call, *request, *sums);
    if (!read) {
      answer_wrong(call, read.error());
      return;
    }
    compared = std::move(*read);
  }
  const auto shown = largest_groups(*sums, *request);
  const bool others = sums->groups.size() > shown.size() ||
                      (before && std::ranges::any_of(before->groups, [&shown](const auto& group) {
                         return std::ranges::find(shown, group.first) == shown.end();
                       }));
  const bool priced = services.accounting->priced();
  const bool hourly = request->step == Step::kHour;
  std::string data;
  JsonWriter json(data);
  json.begin_object().member("step", kSteps.at(static_cast<std::size_t>(request->step)));
  json.key("groups").begin_array();
  for (const std::string& name : shown) {
    json.value(name);
  }
  if (others) {
    json.value(kOthers);
  }
  json.end_array();
  append_sums(json, *sums, *request, shown, others, priced);
  if (hourly) {
    append_missing(json, *sums);
  }
  if (before) {
    json.key("previous").begin_object();
    append_sums(json, *before, *request, shown, others, priced);
    if (hourly) {
      append_missing(json, *before);
    }
    json.end_object();
  }
  if (compared) {
    append_compared(json, *compared, *request, shown, others, priced);
  }
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

bool UsageSums::knows(std::size_t time) const {
  const std::int64_t end = time + 1 < times.size() ? times[time + 1] : end_ms;
  return first_ms == 0 || end_ms == 0 || end > first_ms;
}

bool UsageRequest::wants(UsageField field) const {
  return std::ranges::find(fields, field) != fields.end();
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

Endpoints usage_series_endpoints() {
  const Endpoint series{
      .handler = get_usage_series,
      .data =
          {.name = "UsageSeries",
           .one = true,
           .definitions = R"json("UsageSums": {
        "type": "object",
        "description": "By field: a list for each group, with a value for each time.",
        "additionalProperties": {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}}
      },
      "UsageTotals": {
        "type": "object",
        "description": "By field: the sum of each group.",
        "additionalProperties": {"type": "array", "items": {"type": ["number", "null"]}}
      },
      "UsageSeries": {
        "type": "object",
        "required": ["step", "groups", "times", "values", "totals"],
        "additionalProperties": false,
        "properties": {
          "step": {"enum": ["hour", "day", "month"]},
          "groups": {"type": "array", "items": {"type": "string"}},
          "times": {"type": "array", "items": {"type": "integer"}, "description": "Beginnings of the hours, days or months, in milliseconds since 1970."},
          "values": {"$ref": "#/components/schemas/UsageSums"},
          "totals": {"$ref": "#/components/schemas/UsageTotals"},
          "missing": {"$ref": "#/components/schemas/UsageMissing"},
          "partial": {"type": "boolean", "description": "With `step=hour`: true while the facts of an old database are being written."},
          "compared": {
            "type": "object",
            "required": ["days", "coverage", "energy_coverage", "now", "before"],
            "additionalProperties": false,
            "description": "With `previous`: sums of the same days of this period and the one before, of those that have ended.",
            "properties": {
              "days": {"type": "integer"},
              "coverage": {"type": "number", "description": "Share of these days that the database covers, of the period with less."},
              "energy_coverage": {"type": "number", "description": "Share of the core-hours whose energy is known, of the period with less."},
              "idle_coverage": {"type": "number", "description": "With `idle_kwh`: share of the days with use on which the idle energy of units that ended is known, of the period with less."},
              "now": {"$ref": "#/components/schemas/UsageTotals"},
              "before": {"$ref": "#/components/schemas/UsageTotals"}
            }
          },
          "previous": {
            "type": "object",
            "required": ["times", "values", "totals"],
            "additionalProperties": false,
            "properties": {
              "times": {"type": "array", "items": {"type": "integer"}},
              "values": {"$ref": "#/components/schemas/UsageSums"},
              "totals": {"$ref": "#/components/schemas/UsageTotals"},
              "missing": {"$ref": "#/components/schemas/UsageMissing"},
              "partial": {"type": "boolean"}
            }
          }
        }
      },
      "UsageMissing": {
        "type": "array",
        "description": "With `step=hour`: clusters whose energy is not in the sums.",
        "items": {
          "type": "object",
          "required": ["cluster_id", "reason"],
          "additionalProperties": false,
          "properties": {
            "cluster_id": {"type": "string"},
            "reason": {"enum": ["no_tsdb", "unavailable"]}
          }
        }
      })json",
           .example =
               R"x({"step":"day","groups":["p07","(others)"],"times":[1933113600000,1933200000000],)x"
               R"("values":{"kwh":[[12.5,0],[3.25,8]]},"totals":{"kwh":[12.5,11.25]}})"},
      .params = {Param::kClusterId, Param::kProject, Param::kUser, Param::kFrom, Param::kTo,
                 Param::kField, Param::kStep, Param::kBy, Param::kTop, Param::kPrevious,
                 Param::kFormat},
      .window = WindowKind::kOwn,
      .priced = true};
  return {series.for_users("usage/series",
                           "Usage by the members of the caller's projects, by hour, day or month.",
                           {Param::kScope}),
          series.for_admins("usage/series/admin", "Usage by all users, by hour, day or month.")};
}

}  // namespace ceems::api
