// The energy of a month against the meter of the utility.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/accounting/accounting.h"
#include "api/accounting/bill.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/ask_series.h"
#include "api/request/months.h"
#include "base/json.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

constexpr int kBillDigits = 10;

void append_rounded(JsonWriter& json, std::string_view name, std::optional<double> value) {
  json.key(name);
  append_number(json, value ? std::optional(rounded(*value, kBillDigits)) : value);
}

void append_nodes(JsonWriter& json, const BillTable& table) {
  json.member("nodes", static_cast<std::int64_t>(table.nodes));
  append_rounded(json, "coverage", table.coverage);
  append_rounded(json, "measured", table.measured);
  json.key("days").begin_array();
  for (const DayOfBill& day : table.days) {
    json.begin_array().value(day.day_ms);
    for (const double kwh : {day.active, day.reserved_idle, day.system, day.unallocated}) {
      append_number(json, rounded(kwh, kBillDigits));
    }
    json.end_array();
  }
  json.end_array();
}

void append_hints(JsonWriter& json, const BillTable& table) {
  json.key("hints").begin_array();
  for (const BillHint& hint : table.hints) {
    json.begin_object().member("kind", hint.kind);
    append_rounded(json, "kwh", hint.kwh);
    if (hint.kind == "uncovered_nodes") {
      append_rounded(json, "node_hours", hint.hours);
    }
    json.end_object();
  }
  json.end_array();
}

/// A decimal number as it was imported.
void append_amount(JsonWriter& json, std::string_view name, const std::string& amount) {
  json.key(name);
  append_number(json, parse_double(amount));
}

void append_meter(JsonWriter& json, const BillTable& table, const MeterReading& meter) {
  json.member("period_start", table.period.from_ms).member("period_end", table.period.to_ms);
  append_rounded(json, "factor", table.factor);
  append_rounded(json, "hours", table.hours);
  json.key("bills").begin_array();
  for (const store::Bill& bill : meter.bills) {
    json.begin_object().member("period_start", bill.start_ms).member("period_end", bill.end_ms);
    append_rounded(json, "kwh", static_cast<double>(bill.energy) * store::kKwhOfEnergy);
    append_amount(json, "cost", bill.cost);
    json.member("currency", bill.currency);
    append_amount(json, "kgco2_market", bill.kgco2);
    json.end_object();
  }
  json.end_array();
}

std::string bill_json(const BillTable& table, const MeterReading& meter, bool billed) {
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const BillPart& part : table.parts) {
    json.begin_object().member("part", part.part);
    append_rounded(json, "kwh", part.kwh);
    append_rounded(json, "share", part.share);
    json.key("how");
    if (part.how.empty()) {
      json.value(nullptr);
    } else {
      json.value(part.how);
    }
    if (billed) {
      append_rounded(json, "billed_kwh", part.billed_kwh);
    }
    if (part.part == "nodes") {
      append_nodes(json, table);
    } else if (part.part == "unexplained") {
      append_hints(json, table);
    } else if (part.part == "meter") {
      append_meter(json, table, meter);
    }
    json.end_object();
  }
  json.end_array();
  return data;
}

void get_bill(const Services& services, Call& call) {
  if (access::see_bill(call.identity) != access::Decision::kAllow) {
    answer_error(*call.response, ApiErrorType::kForbidden,
                 "current user does not have admin privileges");
    return;
  }
  const std::string now = services.zone.day(services.now_ms()).substr(0, 7);
  const std::string_view text = call.params.text(Param::kMonth);
  const auto named = month_named(text.empty() ? now : text, services.zone);
  const auto clusters = split_lists(call.params.clusters);
  if (!named) {
    answer_bad_request(call, named.error());
    return;
  }
  const BillPeriod month{.from_ms = named->from_ms, .to_ms = named->to_ms};
  QueryTimer timer(*services.metrics, Query::kCurrentUsage);
  auto bills = timer.run(
      [&] { return services.reader->bills({.from_ms = month.from_ms, .to_ms = month.to_ms}); });
  if (!bills) {
    answer_failure(*call.response, bills.error());
    return;
  }
  BillInput input{
      .meter = read_meter(bills_of(std::move(*bills), clusters.size() == 1 ? clusters.front() : "",
                                   services.site->clusters.size() == 1),
                          month),
      .now_ms = services.now_ms(),
      .zone = services.zone,
      .pue = services.site->pue,
      .billed = services.accounting->options().billed};
  const BillPeriod& period = input.meter.period;
  auto days = timer.run([&] {
    return services.reader->node_days(
        clusters, {.from_ms = services.zone.day_start(period.from_ms), .to_ms = period.to_ms - 1});
  });
  auto nodes =
      days ? timer.run([&] { return services.reader->known_nodes(clusters); }) : fail(days.error());
  if (!nodes) {
    answer_failure(*call.response, nodes.error());
    return;
  }
  input.days = std::move(*days);
  input.nodes = std::move(*nodes);
  const AccountingOptions& options = services.accounting->options();
  const AskSeries ask = ask_series(services);
  input.other = energy_of(ask, options.series_cluster, options.other_power, period, input.now_ms);
  input.cooling =
      energy_of(ask, options.series_cluster, options.cooling_power, period, input.now_ms);
  answer_data(*call.response, bill_json(make_bill(input), input.meter, input.billed));
}

}  // namespace

Endpoints insight_bill_endpoints() {
  return {
      {.path = "insight/bill/admin",
       .caller = Caller::kAdmin,
       .summary = "The energy of a month by what it was used for, against the utility's meter.",
       .handler = get_bill,
       .data =
           {.name = "BillPart",
            .definitions = R"json("BillPart": {
        "type": "object",
        "required": ["part", "kwh", "share", "how"],
        "additionalProperties": false,
        "properties": {
          "part": {"type": "string", "enum": ["active", "reserved_idle", "system", "unallocated", "nodes", "other", "cooling", "unexplained", "meter"], "description": "`nodes` is the sum of the four before; `meter` is that of all."},
          "kwh": {"type": ["number", "null"], "description": "Energy; null: not known."},
          "share": {"type": ["number", "null"], "description": "Part of the meter; without a bill, of all that is known."},
          "how": {"type": ["string", "null"], "enum": ["measured", "derived", "modelled", "configured", null], "description": "How it is known."},
          "billed_kwh": {"type": ["number", "null"], "description": "Scaled to the bill; only with `reconcile: factor`."},
          "nodes": {"type": "integer", "description": "Of `nodes`: how many were seen."},
          "coverage": {"type": ["number", "null"], "description": "Of `nodes`: part of the node-hours with readings."},
          "measured": {"type": ["number", "null"], "description": "Of `nodes`: part of the energy that was measured, not modelled."},
          "days": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}, "description": "Of `nodes`: [day, active, idle power of reservations, system, unallocated]."},
          "hints": {"type": "array", "description": "Of `unexplained`: what may explain it, the largest first.", "items": {"type": "object", "required": ["kind", "kwh"], "additionalProperties": false, "properties": {"kind": {"type": "string"}, "kwh": {"type": "number"}, "node_hours": {"type": "number"}}}},
          "period_start": {"type": "integer", "description": "Of `meter`: the period of the table, in milliseconds since 1970."},
          "period_end": {"type": "integer", "description": "Its end."},
          "factor": {"type": ["number", "null"], "description": "Meter by all that is known. null: not comparable, see hours."},
          "hours": {"type": ["number", "null"], "description": "Of `meter`: part of the hours of the period in which nodes were read. Below 0.8 the meter is not compared: shares are parts of all that is known."},
          "bills": {"type": "array", "description": "Of `meter`: the bills.", "items": {"type": "object", "required": ["period_start", "period_end", "kwh", "cost", "currency", "kgco2_market"], "additionalProperties": false, "properties": {"period_start": {"type": "integer"}, "period_end": {"type": "integer"}, "kwh": {"type": "number"}, "cost": {"type": ["number", "null"]}, "currency": {"type": "string"}, "kgco2_market": {"type": ["number", "null"]}}}}
        }
      })json",
            .example =
                R"({"part":"nodes","kwh":88700,"share":0.7517,"how":"measured","nodes":400,"coverage":0.998,)"
                R"("measured":0.97,"days":[[1793487600000,2041.3,482.6,103.6,329]]})"},
       .params = {Param::kClusterId, Param::kMonth},
       .tagged = false,
       .waits = true,
       .audited = false,
       .refusals = {ApiErrorType::kBadData}}};
}

}  // namespace ceems::api
