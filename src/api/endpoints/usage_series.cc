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
#include "api/accounting/market.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/usage_compared.h"
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

constexpr std::array<std::string_view, kUsageFields> kFields{"kwh",
                                                             "grams",
                                                             "cost",
                                                             "core_hours",
                                                             "gpu_hours",
                                                             "idle_kwh",
                                                             "units",
                                                             "idle_of_kwh",
                                                             "not_used_kwh",
                                                             "not_used_of_kwh",
                                                             "core_hours_with_energy",
                                                             "gpu_hours_with_energy",
                                                             "grams_of_kwh",
                                                             "market_grams",
                                                             "market_of_kwh"};
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
      return wrong_parameter(fmt::format("'field': expected some of {}", fmt::join(kFields, ", ")));
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
  const auto daily = std::ranges::find_if(request.fields, [](Field field) {
    return field == Field::kGrams || field == Field::kCoreHoursWithEnergy ||
           field == Field::kGpuHoursWithEnergy || field == Field::kGramsOfKwh ||
           field == Field::kMarketGrams || field == Field::kMarketOfKwh || is_of_ended(field);
  });
  if (hourly && daily != request.fields.end()) {
    return wrong_parameter(
        fmt::format("'field': {} is known by day and month, not by hour", name_of(*daily)));
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

Result<Sums> read_sums(const Services& services, const Call& call, const UsageRequest& request) {
  return request.step == Step::kHour
             ? read_usage_hours(services, call, request,
                                hours_of(request.from_ms, request.to_ms, services.zone))
             : read_usage_days(services, call, request);
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

/// The values of a field as they are answered, by group and time.
std::vector<std::vector<std::optional<double>>> shown_values(const Sums& sums,
                                                             const UsageRequest& request,
                                                             const std::vector<std::string>& shown,
                                                             bool others,
                                                             Field field,
                                                             bool priced) {
  const auto hours = sums.rows(shown, others, Field::kCoreHours);
  auto rows = sums.rows(shown, others, field);
  // A day without a row is a day without use, except where nothing was measured. An hour has a
  // value wherever it is known.
  const bool unknown =
      request.step == Step::kHour || is_of_ended(field) || (field == Field::kCost && !priced);
  const bool measured = is_measured(field);
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
    const std::string_view name = name_of(field);
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

/// Where market-based factors come from, for how much energy.
void append_market(JsonWriter& json,
                   const Sums& sums,
                   const UsageRequest& request,
                   const std::vector<MarketRule>& rules) {
  if (!request.wants(Field::kMarketGrams)) {
    return;
  }
  json.key("market").begin_array();
  for (const auto& [source, kwh] : sums.market_kwh) {
    json.begin_object().member("bills", source == MarketFactor::kBills);
    json.member("source", source < rules.size() ? rules[source].source : "");
    json.key("kwh");
    append_number(json, rounded(kwh, 6));
    json.end_object();
  }
  json.end_array();
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
  return read_usage_days(services, call, earlier);
}

/// Clusters that are left out of hours.
void append_gaps(JsonWriter& json, const Sums& sums) {
  json.raw_member("missing", clusters_json(sums.missing));
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
  UsageTable table{.step = kSteps.at(static_cast<std::size_t>(request.step)),
                   .by = kBy.at(static_cast<std::size_t>(request.by)),
                   .fields = request.fields,
                   .times = sums.times,
                   .first_ms = sums.first_ms,
                   .energy_coverage = sums.energy_coverage(),
                   .market_kwh = sums.market_kwh};
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
  std::optional<ComparedUsage> compared;
  if (before && request->step != Step::kHour) {
    auto read = read_compared_usage(services, call, *request, *sums);
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
  append_market(json, *sums, *request, services.accounting->options().market);
  if (hourly) {
    append_gaps(json, *sums);
  }
  if (before) {
    json.key("previous").begin_object();
    append_sums(json, *before, *request, shown, others, priced);
    if (hourly) {
      append_gaps(json, *before);
    }
    json.end_object();
  }
  if (compared) {
    append_compared_usage(json, *compared, *request, shown, others, priced);
  }
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

std::string_view name_of(UsageField field) {
  return kFields.at(static_cast<std::size_t>(field));
}

bool is_of_ended(UsageField field) {
  return field == Field::kIdleKwh || field == Field::kIdleOfKwh || field == Field::kNotUsedKwh ||
         field == Field::kNotUsedOfKwh;
}

bool is_measured(UsageField field) {
  return field == Field::kKwh || field == Field::kGrams || field == Field::kMarketGrams ||
         field == Field::kCost;
}

bool UsageRequest::wants(UsageField field) const {
  return std::ranges::find(fields, field) != fields.end();
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
          "market": {
            "type": "array",
            "description": "With `market_grams`: where its factors come from.",
            "items": {
              "type": "object",
              "required": ["bills", "source", "kwh"],
              "additionalProperties": false,
              "properties": {
                "bills": {"type": "boolean", "description": "Imported bills, not the configuration."},
                "source": {"type": "string", "description": "What the configuration says of the factor; empty: bills."},
                "kwh": {"type": "number", "description": "The energy that has this factor."}
              }
            }
          },
          "missing": {"$ref": "#/components/schemas/MissingClusters"},
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
              "not_used_coverage": {"type": "number", "description": "With `not_used_kwh`: the same of what they did not use."},
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
              "missing": {"$ref": "#/components/schemas/MissingClusters"},
              "partial": {"type": "boolean"}
            }
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
