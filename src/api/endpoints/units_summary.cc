// Sums over units.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_filter.h"
#include "api/request/list_params.h"
#include "base/json.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using store::Fact;
using store::FactKind;

struct FacetName {
  std::string_view name;
  Fact fact;
};
constexpr std::array<FacetName, 6> kFacets{{{"state", Fact::kState},
                                            {"project", Fact::kProject},
                                            {"user", Fact::kUser},
                                            {"cluster", Fact::kClusterId},
                                            {"partition", Fact::kPartition},
                                            {"advice", Fact::kAdvice}}};

Result<> read_facets(const Params& params, store::SummaryQuery& query) {
  for (const std::string& name : params.list(Param::kFacets)) {
    const auto found = std::ranges::find(kFacets, std::string_view(name), &FacetName::name);
    if (found == kFacets.end()) {
      return fail(ErrorCode::kInvalidArgument,
                  "query parameter 'facets': expected some of state, project, user, cluster, "
                  "partition, advice");
    }
    query.facets.push_back(found->fact);
  }
  return {};
}

Result<> read_heat(const Params& params, store::SummaryQuery& query) {
  const auto names = split_lists({std::string(params.text(Param::kHeat))});
  if (names.empty()) {
    return {};
  }
  std::array<Fact, 2> both{};
  for (std::size_t i = 0; i < both.size() && names.size() == both.size(); ++i) {
    const auto fact = store::find_fact(names[i]);
    if (fact && store::column_of(*fact).kind == FactKind::kPercent && *fact != Fact::kGpuIdle) {
      both.at(i) = *fact;
    }
  }
  if (std::ranges::find(both, Fact::kClusterId) != both.end()) {  // not set
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'heat': expected two of cpu, mem, gpu, gpu_mem");
  }
  query.heat = both;
  CEEMS_TRY(bins, parse_number("bins", params.text(Param::kBins), 2, 50, 20));
  query.bins = bins;
  return {};
}

void append_facet(JsonWriter& json, const std::vector<store::FacetValue>& values) {
  constexpr std::size_t kShown = 20;
  json.begin_array();
  store::FacetValue others{.value = "(others)"};
  const auto append = [&json](const store::FacetValue& value) {
    json.begin_array();
    append_json_cell(json, FactKind::kText, value.value, 0);
    json.value(value.units);
    append_number(json, rounded(value.kwh, 6));
    json.end_array();
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i < kShown) {
      append(values[i]);
    } else {
      others.units += values[i].units;
      others.kwh += values[i].kwh;
    }
  }
  if (others.units > 0) {
    append(others);
  }
  json.end_array();
}

/// The sum of the costs that are known. Where the price changes with time, the units are read one
/// by one; of very many the cost is not known.
Result<std::optional<double>> total_cost(const Services& services,
                                         const store::FactFilter& filter,
                                         const store::UnitSummary& sums) {
  constexpr std::size_t kMaxPricedUnits = 200'000;
  Costs costs = services.accounting->costs();
  if (!costs.any()) {
    return std::optional<double>();
  }
  if (costs.constant() && costs.of_energy()) {
    // What a unit without energy costs is not known.
    const auto kwh = sums.measured > 0 ? std::optional(sums.kwh) : std::nullopt;
    return costs.of("", 0, 0, kwh, sums.cpu_seconds_with_energy / kHourSeconds,
                    sums.gpu_seconds_with_energy / kHourSeconds);
  }
  if (costs.constant()) {
    return costs.of("", 0, 0, sums.kwh, sums.cpu_seconds / kHourSeconds,
                    sums.gpu_seconds / kHourSeconds);
  }
  if (sums.units > static_cast<std::int64_t>(kMaxPricedUnits)) {
    return std::optional<double>();
  }
  store::FactListQuery query{.filter = filter,
                             .columns = {kCostFacts.begin(), kCostFacts.end()},
                             .limit = kMaxPricedUnits};
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run([&] { return services.reader->unit_facts(query); });
  std::optional<double> sum;
  while (rows) {
    CEEMS_TRY(row, timer.run([&] { return (*rows)->next(); }));
    if (!row) {
      return sum ? std::optional(rounded(*sum, 6)) : std::nullopt;
    }
    if (const auto cost = cost_of(costs, **rows, 0, services.now_ms())) {
      sum = sum.value_or(0) + *cost;
    }
  }
  return fail(rows.error());
}

std::string summary_json(const store::UnitSummary& sums,
                         const store::SummaryQuery& query,
                         std::optional<double> cost,
                         std::string_view notes) {
  std::string data;
  JsonWriter json(data);
  const auto number = [&json](std::string_view name, double value) {
    json.key(name);
    append_number(json, rounded(value, 6));
  };
  json.begin_object().member("count", sums.units).member("running", sums.running);
  const auto known = [&json](std::string_view name, double value, std::int64_t units) {
    json.key(name);
    append_number(json, units > 0 ? std::optional(rounded(value, 6)) : std::nullopt);
  };
  known("kwh", sums.kwh, sums.measured);
  known("cpu_kwh", sums.cpu_kwh, sums.cpu_measured);
  known("gpu_kwh", sums.gpu_kwh, sums.gpu_measured);
  known("grams", sums.grams, sums.grams_known);
  json.member("measured", sums.measured);
  json.key("cost");
  append_number(json, cost);
  number("core_hours", sums.cpu_seconds / kHourSeconds);
  number("core_hours_measured", sums.cpu_seconds_measured / kHourSeconds);
  number("core_hours_used", sums.cpu_seconds_used / kHourSeconds);
  number("core_hours_with_energy", sums.cpu_seconds_with_energy / kHourSeconds);
  number("gpu_hours", sums.gpu_seconds / kHourSeconds);
  number("gpu_hours_measured", sums.gpu_seconds_measured / kHourSeconds);
  number("gpu_hours_used", sums.gpu_seconds_used / kHourSeconds);
  number("gpu_hours_with_energy", sums.gpu_seconds_with_energy / kHourSeconds);
  known("idle_kwh", sums.idle_kwh, sums.idle_units);
  number("idle_of_kwh", sums.idle_of_kwh);
  json.member("idle_measured", sums.idle_units);
  known("not_used_kwh", sums.not_used_kwh, sums.not_used_units);
  number("not_used_of_kwh", sums.not_used_of_kwh);
  json.member("not_used_measured", sums.not_used_units).key("facets").begin_object();
  for (std::size_t i = 0; i < query.facets.size() && i < sums.facets.size(); ++i) {
    const auto name = std::ranges::find(kFacets, query.facets[i], &FacetName::fact);
    append_facet(json.key(name->name), sums.facets[i]);
  }
  json.end_object();
  if (query.heat) {
    json.key("heat").begin_object();
    json.member("x", store::column_of((*query.heat)[0]).name);
    json.member("y", store::column_of((*query.heat)[1]).name);
    json.member("bins", static_cast<std::int64_t>(query.bins)).key("cells").begin_array();
    for (const auto& cell : sums.heat) {
      json.begin_array().value(static_cast<std::int64_t>(cell.x));
      json.value(static_cast<std::int64_t>(cell.y)).value(cell.units);
      append_number(json, rounded(cell.kwh, 4));
      json.end_array();
    }
    json.end_array().end_object();
  }
  data += notes;
  json.end_object();
  return data;
}

void get_unit_summary(const Services& services, Call& call) {
  auto filter = parse_fact_filter(call.params, call.window);
  if (!filter) {
    answer_bad_request(call, filter.error());
    return;
  }
  store::SummaryQuery query{.filter = std::move(*filter)};
  for (const auto read : {read_facets, read_heat}) {
    if (auto done = read(call.params, query); !done) {
      answer_bad_request(call, done.error());
      return;
    }
  }
  set_owners(call, query.filter);
  const auto notes = notes_if_answerable(services, call, query.filter);
  if (!notes) {
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto sums = timer.run([&] { return services.reader->unit_summary(query); });
  if (!sums) {
    answer_failure(*call.response, sums.error());
    return;
  }
  const auto cost = total_cost(services, query.filter, *sums);
  if (!cost) {
    answer_failure(*call.response, cost.error());
    return;
  }
  answer_data(*call.response, summary_json(*sums, query, *cost, *notes));
}

}  // namespace

Endpoints units_summary_endpoints() {
  const Endpoint sums{
      .handler = get_unit_summary,
      .data =
          {.name = "UnitSums",
           .one = true,
           .definitions = R"json("UnitSums": {
        "type": "object",
        "required": ["count", "running", "kwh", "cpu_kwh", "gpu_kwh", "grams", "measured", "cost", "core_hours", "core_hours_measured", "core_hours_used", "core_hours_with_energy", "gpu_hours", "gpu_hours_measured", "gpu_hours_used", "gpu_hours_with_energy", "idle_kwh", "idle_of_kwh", "idle_measured", "not_used_kwh", "not_used_of_kwh", "not_used_measured", "facets"],
        "additionalProperties": false,
        "properties": {
          "count": {"type": "integer", "description": "Number of units."},
          "running": {"type": "integer", "description": "Of them, those that run."},
          "kwh": {"type": ["number", "null"], "description": "Energy of the units for which it was measured; null: of none."},
          "cpu_kwh": {"type": ["number", "null"], "description": "Energy without that of GPUs; null: not measured."},
          "gpu_kwh": {"type": ["number", "null"], "description": "Energy of GPUs; null: not measured."},
          "grams": {"type": ["number", "null"], "description": "Emissions in g CO2e; null: not known."},
          "measured": {"type": "integer", "description": "Number of units for which the energy was measured."},
          "cost": {"type": ["number", "null"], "description": "Cost, if there is a price."},
          "core_hours": {"type": "number", "description": "Allocated."},
          "core_hours_measured": {"type": "number", "description": "Of units whose use is known."},
          "core_hours_used": {"type": "number", "description": "Of these, used."},
          "core_hours_with_energy": {"type": "number", "description": "Of units whose energy is known."},
          "gpu_hours": {"type": "number", "description": "Allocated."},
          "gpu_hours_measured": {"type": "number", "description": "Of units whose use is known."},
          "gpu_hours_used": {"type": "number", "description": "Of these, used."},
          "gpu_hours_with_energy": {"type": "number", "description": "Of units whose energy is known."},
          "idle_kwh": {"type": ["number", "null"], "description": "Energy of the idle power of what was reserved."},
          "idle_of_kwh": {"type": "number", "description": "All energy of the units for which it was measured."},
          "idle_measured": {"type": "integer", "description": "Number of these units."},
          "not_used_kwh": {"type": ["number", "null"], "description": "Energy of the idle power of what was reserved and not used at that time; null: known of none."},
          "not_used_of_kwh": {"type": "number", "description": "All energy of the units for which it is known."},
          "not_used_measured": {"type": "integer", "description": "Number of these units."},
          "facets": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "array"}}, "description": "By facet: value, number of units, kWh."},
          "heat": {
            "type": "object",
            "required": ["x", "y", "bins", "cells"],
            "additionalProperties": false,
            "properties": {
              "x": {"type": "string"},
              "y": {"type": "string"},
              "bins": {"type": "integer"},
              "cells": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}, "description": "x, y, number of units, kWh."}
            }
          },
          "partial": {"const": true, "description": "Units of an old database are still missing."},
          "searched": {"const": "ids", "description": "Only ids were searched for the words."}
        }
      })json",
           .example =
               R"({"count":12408,"running":31,"kwh":3104.2,"cpu_kwh":1200.1,"gpu_kwh":1904.1,)"
               R"("grams":161000,"measured":12100,"cost":null,"core_hours":210000,"core_hours_measured":209000,)"
               R"("core_hours_used":128000,"core_hours_with_energy":208000,"gpu_hours":4100,)"
               R"("gpu_hours_measured":4100,"gpu_hours_used":1560,"gpu_hours_with_energy":4100,)"
               R"("idle_kwh":900.5,"idle_of_kwh":3080.4,"idle_measured":12000,)"
               R"("not_used_kwh":410.2,"not_used_of_kwh":3050.1,"not_used_measured":11800,)"
               R"("facets":{"state":[["COMPLETED",9120,2210.1],["RUNNING",31,12.5]]},)"
               R"("heat":{"x":"cpu","y":"mem","bins":20,"cells":[[0,1,31,402.2]]}})"},
      .params = kUnitFilterParams.with({Param::kFacets, Param::kHeat, Param::kBins}),
      .window = WindowKind::kListed,
      .priced = true};
  return {sums.for_users("units/summary",
                         "Sums over the caller's units, and how many there are of each kind.",
                         {Param::kScope}),
          sums.for_admins("units/summary/admin",
                          "Sums over everybody's units, and how many there are of each kind.")};
}

}  // namespace ceems::api
