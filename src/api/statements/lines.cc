#include "api/statements/lines.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/statements/tables.h"

namespace ceems::api {
namespace {

using facility::MeterKind;
using facility::Ratio;
using statement::Document;
using statement::How;
using statement::Line;

constexpr double kGramsOfKg = 1000;

/// A sum over the months that have a value, and the part of the months' time that these are.
struct MonthSum {
  std::optional<double> value = {};
  double coverage = 0;
  std::string how = {};  ///< as in BillPart, of the last month
};

using OfMonth = std::function<std::optional<double>(const StatementMonth&)>;

MonthSum sum_months(const StatementInputs& inputs, const OfMonth& value_of) {
  MonthSum sum;
  double known = 0;
  double all = 0;
  for (const StatementMonth& month : inputs.months) {
    all += month.length();
    if (const auto value = value_of(month)) {
      sum.value = sum.value.value_or(0) + *value;
      known += month.length();
    }
  }
  sum.coverage = all > 0 ? known / all : 0;
  return sum;
}

MonthSum sum_part(const StatementInputs& inputs, std::string_view name) {
  std::string how;
  MonthSum sum = sum_months(inputs, [&](const StatementMonth& month) -> std::optional<double> {
    const auto part = std::ranges::find(month.table.parts, name, &BillPart::part);
    if (part == month.table.parts.end() || !part->kwh) {
      return std::nullopt;
    }
    how = how.empty() || part->how != "measured" ? part->how : how;
    return part->kwh;
  });
  sum.how = std::move(how);
  return sum;
}

How how_of(const std::string& how) {
  return how == "measured"     ? How::kMeasured
         : how == "modelled"   ? How::kModelled
         : how == "configured" ? How::kDeclared
                               : How::kDerived;
}

/// The mean of a share of the months, weighted by their time.
double mean_of(const StatementInputs& inputs, double StatementMonth::* member) {
  double sum = 0;
  double all = 0;
  for (const StatementMonth& month : inputs.months) {
    sum += month.length() * month.*member;
    all += month.length();
  }
  return all > 0 ? sum / all : 0;
}

/// "bill (2026-01 to 2026-06), meter (2026-07)"
std::string basis_text(const StatementInputs& inputs) {
  std::string text;
  std::string last;
  for (const StatementMonth& month : inputs.months) {
    const std::string basis = month.basis.empty() ? "not known" : month.basis;
    if (basis != last) {
      text += fmt::format("{}{} from {}", text.empty() ? "" : ", ", basis, month.name);
      last = basis;
    }
  }
  return text;
}

void add_part(const StatementInputs& inputs,
              std::string id,
              std::string label,
              std::string formula,
              std::string note,
              double StatementMonth::* coverage,
              Document& document) {
  const MonthSum sum = sum_part(inputs, id);
  document.add({.id = std::move(id),
                .section = "Energy",
                .label = std::move(label),
                .value = sum.value,
                .unit = "kWh",
                .how = how_of(sum.how),
                .note = std::move(note),
                .formula = std::move(formula),
                .coverage = sum.value ? std::optional(mean_of(inputs, coverage)) : std::nullopt});
}

void add_ratio(std::string id,
               std::string label,
               std::string unit,
               std::string standard,
               const Ratio& ratio,
               std::string formula,
               Document& document) {
  document.add(
      {.id = std::move(id),
       .section = "Facility",
       .label = std::move(label),
       .value = ratio.value,
       .unit = std::move(unit),
       .how = How::kDerived,
       .note = ratio.value ? fmt::format("{}; over the {:.0f} hours in which both meters were read",
                                         standard, ratio.hours)
                           : fmt::format("{}; {}", standard, ratio.missing),
       .formula = std::move(formula),
       .coverage = ratio.coverage});
}

/// Emissions of all energy by a factor of each month.
struct Emissions {
  std::optional<double> kg = {};
  double kwh = 0, all_kwh = 0;
};

Emissions emissions_of(const StatementInputs& inputs,
                       std::optional<double> StatementMonth::* factor) {
  Emissions sum;
  for (const StatementMonth& month : inputs.months) {
    if (!month.energy) {
      continue;
    }
    sum.all_kwh += *month.energy;
    if (const auto& grams = month.*factor) {
      sum.kg = sum.kg.value_or(0) + *month.energy * *grams / kGramsOfKg;
      sum.kwh += *month.energy;
    }
  }
  return sum;
}

std::optional<double> mean_factor(const Emissions& sum) {
  return sum.kg && sum.kwh > 0 ? std::optional(*sum.kg * kGramsOfKg / sum.kwh) : std::nullopt;
}

void add_scope(Line line, const Emissions& sum, std::string column, Document& document) {
  line.value = sum.kg;
  line.unit = "kg CO2e";
  line.formula = fmt::format("sum(months.{})", column);
  line.factor.value = mean_factor(sum);
  line.factor.unit = "g CO2e/kWh";
  line.coverage = sum.all_kwh > 0 ? std::optional(sum.kwh / sum.all_kwh) : std::nullopt;
  document.add(std::move(line));
}

std::string joined(const std::set<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Sums over days, of those that are known.
struct UseSums {
  double units = 0, core_hours = 0, gpu_hours = 0, core_hours_with_energy = 0;
  std::optional<double> kwh = {}, grams = {}, market_grams = {};
  double grams_of_kwh = 0, market_of_kwh = 0;
};

void add_known_value(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) {
    sum = sum.value_or(0) + *value;
  }
}

UseSums use_of(const StatementInputs& inputs) {
  UseSums sums;
  for (const StatementDay& day : inputs.days) {
    const store::UsageOfDay& usage = day.usage;
    const auto kwh = usage.kwh();
    sums.units += static_cast<double>(usage.units);
    sums.core_hours += usage.core_hours();
    sums.gpu_hours += usage.gpu_hours();
    sums.core_hours_with_energy += usage.core_hours_with_energy();
    add_known_value(sums.kwh, kwh);
    add_known_value(sums.grams, usage.grams());
    sums.grams_of_kwh += usage.grams() ? kwh.value_or(0) : 0;
    if (kwh && day.market) {
      add_known_value(sums.market_grams, *kwh * *day.market);
      sums.market_of_kwh += *kwh;
    }
  }
  return sums;
}

std::optional<double> share(double part, const std::optional<double>& all) {
  return all && *all > 0 ? std::optional(part / *all) : std::nullopt;
}

}  // namespace

void add_energy(const StatementInputs& inputs, Document& document) {
  add_part(inputs, "active", "jobs, active use",
           "sum(node_days.energy_kwh) - sum(node_days.idle_kwh) - sum(node_days.system_kwh) - "
           "sum(node_days.unallocated_kwh)",
           "counters of the nodes", &StatementMonth::node_coverage, document);
  add_part(inputs, "reserved_idle", "jobs, reserved and idle", "sum(node_days.idle_kwh)",
           "counters of the nodes", &StatementMonth::node_coverage, document);
  add_part(inputs, "system", "system (kernel, daemons)", "sum(node_days.system_kwh)",
           "counters of the nodes", &StatementMonth::node_coverage, document);
  add_part(inputs, "unallocated", "free nodes (unreserved)", "sum(node_days.unallocated_kwh)",
           "counters of the nodes", &StatementMonth::node_coverage, document);
  add_part(inputs, "nodes", "= compute nodes", "sum(node_days.energy_kwh)",
           "the sum of the four lines above; coverage is that of the node-hours",
           &StatementMonth::node_coverage, document);
  const AccountingOptions& options = *inputs.context.accounting;
  add_part(inputs, "other", "storage, network, service nodes", "sum(months.other_kwh)",
           options.other_power.empty() ? "accounting.other_power is not configured"
                                       : "query: " + options.other_power,
           &StatementMonth::other_coverage, document);
  add_part(inputs, "cooling", "cooling and losses", "sum(months.cooling_kwh)",
           !options.cooling_power.empty() ? "query: " + options.cooling_power
           : inputs.context.pue           ? fmt::format("PUE {} of ui.pue", *inputs.context.pue)
                                : "neither accounting.cooling_power nor ui.pue is configured",
           &StatementMonth::cooling_coverage, document);
  const MonthSum known = sum_months(inputs, [](const StatementMonth& month) {
    return month.any_known ? std::optional(month.known) : std::nullopt;
  });
  document.add(
      {.id = "known",
       .section = "Energy",
       .label = "= all that is known",
       .value = known.value,
       .unit = "kWh",
       .how = How::kDerived,
       .formula = "sum(months.nodes_kwh) + sum(months.other_kwh) + sum(months.cooling_kwh)",
       .coverage = mean_of(inputs, &StatementMonth::known_coverage)});
  const MonthSum unexplained =
      sum_months(inputs, [](const StatementMonth& month) { return month.unexplained; });
  document.add(
      {.id = "unexplained",
       .section = "Energy",
       .label = "unexplained",
       .value = unexplained.value,
       .unit = "kWh",
       .how = How::kDerived,
       .note = "the meter without all that is known of the same time; months in which "
               "nodes were read in less than 80 % of the hours are not compared",
       .formula = "sum(months.unexplained_kwh)",
       .coverage = unexplained.value ? std::optional(unexplained.coverage) : std::nullopt});
  const MonthSum meter =
      sum_months(inputs, [](const StatementMonth& month) { return month.meter; });
  document.add({.id = "meter",
                .section = "Energy",
                .label = "= utility meter",
                .value = meter.value,
                .unit = "kWh",
                .how = How::kMeasured,
                .note = meter.value ? "imported bills; bills over the ends of months count in "
                                      "proportion to their time"
                                    : "no bill of this time was imported",
                .formula = "sum(months.meter_kwh)",
                .coverage = meter.value
                                ? std::optional(mean_of(inputs, &StatementMonth::billed_share))
                                : std::nullopt});
  const MonthSum energy =
      sum_months(inputs, [](const StatementMonth& month) { return month.energy; });
  document.add({.id = "energy",
                .section = "Energy",
                .label = "energy of the site",
                .value = energy.value,
                .unit = "kWh",
                .how = How::kDerived,
                .note = "by month, the first that covers it: bill, meter of facility.yml, all that "
                        "is known: " +
                        basis_text(inputs),
                .formula = "sum(months.energy_kwh)",
                .coverage = mean_of(inputs, &StatementMonth::energy_coverage)});
  document.add_table(months_table(inputs), "months of the period, from the tables below");
  document.add_table(node_days_table(inputs),
                     "ceems_node_days, added up by day, cluster and class; `part` is the share of "
                     "the day that is in the period");
  document.add_table(bills_table(inputs), "ceems_bills that overlap the period");
}

void add_use(const StatementInputs& inputs, Document& document) {
  const UseSums sums = use_of(inputs);
  const auto add = [&](std::string id, std::string label, std::optional<double> value,
                       std::string unit, std::string formula, std::string note,
                       std::optional<double> coverage) {
    document.add({.id = std::move(id),
                  .section = "Use",
                  .label = std::move(label),
                  .value = value,
                  .unit = std::move(unit),
                  .how = How::kMeasured,
                  .note = std::move(note),
                  .formula = std::move(formula),
                  .coverage = coverage});
  };
  const bool any = !inputs.days.empty();
  const auto known = [any](double value) { return any ? std::optional(value) : std::nullopt; };
  add("units", "units (jobs, VMs, pods)", known(sums.units), "1", "sum(usage_days.units)",
      "on the day on which they were first seen", std::nullopt);
  add("core_hours", "CPU time", known(sums.core_hours), "core-hours", "sum(usage_days.core_hours)",
      "reserved", std::nullopt);
  add("gpu_hours", "GPU time", known(sums.gpu_hours), "GPU-hours", "sum(usage_days.gpu_hours)",
      "reserved", std::nullopt);
  add("units_kwh", "energy of units", sums.kwh, "kWh", "sum(usage_days.kwh)",
      "as on the page of the year; coverage is of the core-hours",
      sums.core_hours > 0 ? std::optional(sums.core_hours_with_energy / sums.core_hours)
                          : std::nullopt);
  document.add_table(usage_days_table(inputs), "daily_usage, added up by day and cluster");
}

void add_indicators(const StatementInputs& inputs, Document& document) {
  const auto& total = inputs.meter(MeterKind::kTotal);
  const auto& it = inputs.meter(MeterKind::kIt);
  std::set<std::string> categories;
  for (const facility::Meter& meter : inputs.context.accounting->facility.meters) {
    if (meter.kind == MeterKind::kIt && !meter.category.empty()) {
      categories.insert(meter.category);
    }
  }
  const std::string where =
      categories.empty() ? "" : fmt::format(", IT metered at: {}", joined(categories));
  add_ratio("pue", "power usage effectiveness (PUE)", "1", "EN 50600-4-2, ISO/IEC 30134-2" + where,
            facility::pue_of(total, it, inputs.hours),
            "sum(facility_days.pue_numerator) / sum(facility_days.pue_denominator)", document);
  add_ratio("wue", "water usage effectiveness (WUE)", "l/kWh", "ISO/IEC 30134-9",
            facility::wue_of(inputs.meter(MeterKind::kWater), it, inputs.hours),
            "1000 * sum(facility_days.wue_numerator) / sum(facility_days.wue_denominator)",
            document);
  add_ratio("erf", "energy reuse factor (ERF)", "1", "ISO/IEC 30134-6",
            facility::erf_of(inputs.meter(MeterKind::kHeatReused), total, inputs.hours),
            "sum(facility_days.erf_numerator) / sum(facility_days.erf_denominator)", document);
  add_ratio("ref", "renewable energy factor (REF)", "1", "ISO/IEC 30134-3",
            facility::ref_of(inputs.meter(MeterKind::kRenewable), total, inputs.hours),
            "sum(facility_days.ref_numerator) / sum(facility_days.ref_denominator)", document);
  document.add_table(
      facility_days_table(inputs),
      "hours of the meters of facility.yml, added up by day; the two of an indicator "
      "are over the hours in which both meters were read");
}

void add_meter(const StatementInputs& inputs,
               MeterKind kind,
               const std::string& section,
               const std::string& label,
               Document& document) {
  const bool water = kind == MeterKind::kWater;
  const std::string name(facility::name_of(kind));
  const std::string column = name + (water ? "_m3" : "_kwh");
  std::optional<double> sum;
  double hours = 0;
  const facility::Hours& values = inputs.meter(kind);
  for (auto hour = values.lower_bound(inputs.hours.from_ms);
       hour != values.end() && hour->first < inputs.hours.to_ms; ++hour) {
    sum = sum.value_or(0) + hour->second;
    hours += 1;
  }
  const auto expected = static_cast<double>(inputs.hours.to_ms - inputs.hours.from_ms) / 3'600'000;
  document.add({.id = column,
                .section = section,
                .label = label,
                .value = sum,
                .unit = water ? "m³" : "kWh",
                .how = How::kMeasured,
                .note = sum ? "of the hours that were read; nothing is added for the others"
                            : "facility.yml has no meter of this kind with readings",
                .formula = fmt::format("sum(facility_days.{})", column),
                .coverage = sum && expected > 0 ? std::optional(hours / expected) : std::nullopt});
}

void add_emissions(const StatementInputs& inputs, Document& document) {
  const std::string section = "Emissions";
  add_scope({.id = "scope2_location",
             .section = section,
             .label = "Scope 2, location-based",
             .how = How::kDerived,
             .note = "energy of the site × the factor of the grid, by month; the factor is that of "
                     "the energy of units, which have that of their hours",
             .factor = {.source = "emission factors of the exporters, by hour"}},
            emissions_of(inputs, &StatementMonth::location), "location_kg", document);
  std::set<std::string> sources;
  for (const StatementDay& day : inputs.days) {
    if (day.market && day.usage.kwh()) {
      sources.insert(day.market_source);
    }
  }
  add_scope({.id = "scope2_market",
             .section = section,
             .label = "Scope 2, market-based",
             .how = How::kDerived,
             .note = sources.empty() ? "neither a bill nor accounting.market says the emissions"
                                     : "energy of the site × the factor of bills and contracts, by "
                                       "month; nothing is assumed for days without",
             .factor = {.source = joined(sources)}},
            emissions_of(inputs, &StatementMonth::market), "market_kg", document);
  std::set<std::string> losses;
  std::set<std::string> dates;
  for (const StatementMonth& month : inputs.months) {
    if (month.losses) {
      losses.insert(month.losses_source);
      dates.insert(month.losses_date);
    }
  }
  add_scope({.id = "losses",
             .section = section,
             .label = "Scope 3 category 3, transmission and distribution",
             .how = How::kDerived,
             .note = losses.empty() ? "facility.yml has no transmission_losses for this time"
                                    : "energy of the site × the factor",
             .factor = {.source = joined(losses), .date = joined(dates)}},
            emissions_of(inputs, &StatementMonth::losses), "losses_kg", document);
  const UseSums sums = use_of(inputs);
  const auto add = [&](std::string id, std::string label, std::optional<double> grams,
                       std::string column, double of_kwh) {
    document.add({.id = std::move(id),
                  .section = section,
                  .label = std::move(label),
                  .value = grams ? std::optional(*grams / kGramsOfKg) : std::nullopt,
                  .unit = "kg CO2e",
                  .how = How::kDerived,
                  .note =
                      "a part of the above, as on the page of the year: without cooling, losses "
                      "and free nodes",
                  .formula = fmt::format("sum(usage_days.{}) / 1000", column),
                  .coverage = share(of_kwh, sums.kwh)});
  };
  add("units_location", "of it units, location-based", sums.grams, "grams", sums.grams_of_kwh);
  add("units_market", "of it units, market-based", sums.market_grams, "market_grams",
      sums.market_of_kwh);
}

void add_hardware(const StatementInputs& inputs, Document& document) {
  const facility::EmbodiedSum& sum = inputs.embodied;
  double known = 0;
  for (const auto& one : sum.classes) {
    known += one.hours.node_hours;
  }
  const double hours = known + sum.unknown_node_hours;
  const auto add = [&](std::string id, std::string label, double kg, std::string formula,
                       std::string note) {
    document.add({.id = std::move(id),
                  .section = "Making the hardware (estimate)",
                  .label = std::move(label),
                  .value = inputs.has_embodied && known > 0 ? std::optional(kg) : std::nullopt,
                  .unit = "kg CO2e",
                  .how = How::kModelled,
                  .note = inputs.has_embodied ? std::move(note)
                                              : "embodied.yml is missing; nothing is assumed",
                  .formula = std::move(formula),
                  .coverage = inputs.has_embodied && hours > 0 ? std::optional(known / hours)
                                                               : std::nullopt});
  };
  add("embodied", "Scope 3 category 2, capital goods: nodes", sum.total, "sum(hardware.kg)",
      "straight line over the lifetime, for internal use: the GHG Protocol books all of it in the "
      "year of the purchase. Not in the emissions above. Coverage is of the node-hours");
  add("embodied_projects", "of it reserved by projects", sum.total - sum.unallocated,
      "sum(projects.embodied_kg)",
      "by their part of the core-hours and GPU-hours that the nodes of the cluster had");
  add("embodied_unallocated", "of it unallocated: the site's", sum.unallocated,
      "sum(hardware.kg) - sum(projects.embodied_kg)", "what was not reserved");
  document.add_table(hardware_table(inputs),
                     "ceems_nodes by class, and embodied.yml; node_hours are those between the "
                     "first and the last reading of each node, within the period");
  document.add_table(projects_table(inputs),
                     "daily_usage, added up by project; embodied_kg from the table hardware");
}

}  // namespace ceems::api
