#include "api/statements/tables.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using facility::MeterKind;
using report::Cell;
using report::cell_of;

std::string day_name(const StatementInputs& inputs, std::int64_t ms) {
  return inputs.context.zone.day(ms).substr(0, 10);
}

std::optional<double> product(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional(*a * *b / 1000) : std::nullopt;
}

/// Two meters that make an indicator.
struct Pair {
  std::string_view name;
  MeterKind numerator, denominator;
};
constexpr std::array<Pair, 4> kPairs{{{"pue", MeterKind::kTotal, MeterKind::kIt},
                                      {"wue", MeterKind::kWater, MeterKind::kIt},
                                      {"erf", MeterKind::kHeatReused, MeterKind::kTotal},
                                      {"ref", MeterKind::kRenewable, MeterKind::kTotal}}};

}  // namespace

report::Table months_table(const StatementInputs& inputs) {
  report::Table table{.name = "months",
                      .columns = {"month",
                                  "from",
                                  "to",
                                  "active_kwh",
                                  "reserved_idle_kwh",
                                  "system_kwh",
                                  "unallocated_kwh",
                                  "nodes_kwh",
                                  "other_kwh",
                                  "cooling_kwh",
                                  "billed_share",
                                  "meter_kwh",
                                  "known_billed_kwh",
                                  "unexplained_kwh",
                                  "energy_kwh",
                                  "basis",
                                  "location_g_kwh",
                                  "location_kg",
                                  "market_g_kwh",
                                  "market_kg",
                                  "losses_g_kwh",
                                  "losses_kg"}};
  for (const StatementMonth& month : inputs.months) {
    std::vector<Cell> row{month.name, inputs.context.zone.local_with_offset(month.period.from_ms),
                          inputs.context.zone.local_with_offset(month.period.to_ms)};
    for (const std::string_view part :
         {"active", "reserved_idle", "system", "unallocated", "nodes", "other", "cooling"}) {
      row.push_back(cell_of(month.table.kwh(part)));
    }
    row.emplace_back(month.billed_share);
    for (const auto& value : {month.meter, month.known_billed, month.unexplained, month.energy}) {
      row.push_back(cell_of(value));
    }
    row.emplace_back(month.basis);
    for (const auto& factor : {month.location, month.market, month.losses}) {
      row.push_back(cell_of(factor));
      row.push_back(cell_of(product(month.energy, factor)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

report::Table node_days_table(const StatementInputs& inputs) {
  report::Table table{
      .name = "node_days",
      .columns = {"day", "cluster", "class", "nodes", "part", "energy_kwh", "idle_kwh",
                  "system_kwh", "unallocated_kwh", "modelled_kwh", "covered_hours"}};
  for (const store::NodeDay& day : inputs.node_days) {
    const double part = inputs.part_of(day.day_ms);
    if (part <= 0) {
      continue;
    }
    const auto kwh = [part](std::int64_t energy) {
      return static_cast<double>(energy) * store::kKwhOfEnergy * part;
    };
    const store::NodeEnergy& sum = day.sum;
    table.rows.push_back({day_name(inputs, day.day_ms), day.cluster_id, day.node_class,
                          static_cast<double>(day.nodes), part, kwh(sum.energy), kwh(sum.idle),
                          kwh(sum.system), kwh(sum.unallocated), kwh(sum.modelled),
                          static_cast<double>(sum.covered_ms) * part / kHourMs});
  }
  return table;
}

report::Table bills_table(const StatementInputs& inputs) {
  report::Table table{
      .name = "bills",
      .columns = {"cluster", "from", "to", "kwh", "cost", "currency", "kgco2_market"}};
  for (const store::Bill& bill : inputs.bills) {
    table.rows.push_back({bill.cluster_id, inputs.context.zone.local_with_offset(bill.start_ms),
                          inputs.context.zone.local_with_offset(bill.end_ms),
                          static_cast<double>(bill.energy) * store::kKwhOfEnergy,
                          cell_of(parse_double(bill.cost)), bill.currency,
                          cell_of(parse_double(bill.kgco2))});
  }
  return table;
}

report::Table usage_days_table(const StatementInputs& inputs) {
  report::Table table{
      .name = "usage_days",
      .columns = {"day", "cluster", "units", "core_hours", "gpu_hours", "core_hours_with_energy",
                  "kwh", "grams", "grams_of_kwh", "market_g_kwh", "market_grams", "market_of_kwh",
                  "market_source"}};
  for (const StatementDay& day : inputs.days) {
    const store::UsageOfDay& usage = day.usage;
    const auto kwh = usage.kwh();
    const bool market = kwh && day.market;
    table.rows.push_back({day_name(inputs, usage.day_ms), usage.cluster,
                          static_cast<double>(usage.units), usage.core_hours(), usage.gpu_hours(),
                          usage.core_hours_with_energy(), cell_of(kwh), cell_of(usage.grams()),
                          usage.grams() ? cell_of(kwh) : Cell(), cell_of(day.market),
                          market ? Cell(*kwh * *day.market) : Cell(), market ? Cell(*kwh) : Cell(),
                          day.market_source});
  }
  return table;
}

report::Table facility_days_table(const StatementInputs& inputs) {
  report::Table table{.name = "facility_days", .columns = {"day"}};
  for (std::size_t i = 0; i < facility::kMeterKinds; ++i) {
    const auto kind = static_cast<MeterKind>(i);
    const char* unit = kind == MeterKind::kWater ? "m3" : "kwh";
    table.columns.push_back(fmt::format("{}_{}", facility::name_of(kind), unit));
    table.columns.push_back(fmt::format("{}_hours", facility::name_of(kind)));
  }
  for (const Pair& pair : kPairs) {
    for (const std::string_view what : {"numerator", "denominator", "hours"}) {
      table.columns.push_back(fmt::format("{}_{}", pair.name, what));
    }
  }
  const std::size_t width = table.columns.size();
  std::map<std::int64_t, std::vector<double>> days;
  const auto row_of = [&](std::int64_t hour) -> std::vector<double>& {
    std::vector<double>& row = days[inputs.context.zone.day_start(hour)];
    row.resize(width - 1);
    return row;
  };
  const auto each_hour = [&](MeterKind kind, const auto& take) {
    const facility::Hours& hours = inputs.meter(kind);
    for (auto hour = hours.lower_bound(inputs.hours.from_ms);
         hour != hours.end() && hour->first < inputs.hours.to_ms; ++hour) {
      take(hour->first, hour->second);
    }
  };
  std::size_t column = 0;
  for (std::size_t i = 0; i < facility::kMeterKinds; ++i) {
    each_hour(static_cast<MeterKind>(i), [&](std::int64_t hour, double value) {
      std::vector<double>& row = row_of(hour);
      row.at(column) += value;
      row.at(column + 1) += 1;
    });
    column += 2;
  }
  for (const Pair& pair : kPairs) {
    const facility::Hours& others = inputs.meter(pair.denominator);
    each_hour(pair.numerator, [&](std::int64_t hour, double value) {
      if (const auto other = others.find(hour); other != others.end()) {
        std::vector<double>& row = row_of(hour);
        row.at(column) += value;
        row.at(column + 1) += other->second;
        row.at(column + 2) += 1;
      }
    });
    column += 3;
  }
  for (const auto& [day, values] : days) {
    std::vector<Cell> row{day_name(inputs, day)};
    row.insert(row.end(), values.begin(), values.end());
    table.rows.push_back(std::move(row));
  }
  return table;
}

report::Table hardware_table(const StatementInputs& inputs) {
  report::Table table{
      .name = "hardware",
      .columns = {"cluster", "class", "nodes", "node_hours", "core_hours", "gpu_hours",
                  "kg_per_node", "lifetime_hours", "gpu_share", "kg", "source", "date"}};
  for (const auto& one : inputs.embodied.classes) {
    table.rows.push_back({one.hours.cluster, one.hours.node_class, one.hours.nodes,
                          one.hours.node_hours, one.hours.core_hours, one.hours.gpu_hours,
                          one.made.kg, one.made.lifetime_hours, one.made.gpu_share, one.kg,
                          one.made.source, one.made.date});
  }
  return table;
}

report::Table projects_table(const StatementInputs& inputs) {
  report::Table table{.name = "projects",
                      .columns = {"project", "units", "core_hours", "gpu_hours", "kwh", "grams",
                                  "grams_of_kwh", "embodied_kg"}};
  for (const StatementProject& project : inputs.projects) {
    table.rows.push_back({project.name, project.units, project.core_hours, project.gpu_hours,
                          cell_of(project.kwh), cell_of(project.grams),
                          cell_of(project.grams_of_kwh), cell_of(project.embodied)});
  }
  return table;
}

}  // namespace ceems::api
