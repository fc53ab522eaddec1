// Usage as a file for spreadsheets and other programs.
#include "api/endpoints/usage_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "base/strings.h"
#include "base/version.h"
#include "report/table.h"

namespace ceems::api {
namespace {

/// A day such as "2026-11-01".
report::Date date_of(std::string_view day) {
  return {.year = parse_int<int>(day.substr(0, 4)).value_or(1970),
          .month = parse_int<unsigned>(day.substr(5, 2)).value_or(1),
          .day = parse_int<unsigned>(day.substr(8, 2)).value_or(1)};
}

std::string column_name(UsageField field, const SiteOptions& site) {
  switch (field) {
    case UsageField::kKwh:
      return "energy (kWh)";
    case UsageField::kGrams:
      return "emissions (g CO2e)";
    case UsageField::kCost:
      return site.currency.empty() ? "cost" : fmt::format("cost ({})", site.currency);
    case UsageField::kCoreHours:
      return "CPU time (core-hours)";
    case UsageField::kGpuHours:
      return "GPU time (GPU-hours)";
    case UsageField::kIdleKwh:
      return "idle energy of the reservation (kWh)";
    case UsageField::kIdleOfKwh:
      return "energy where the idle energy is known (kWh)";
    case UsageField::kNotUsedKwh:
      return "idle energy not used (kWh)";
    case UsageField::kNotUsedOfKwh:
      return "energy where that is known (kWh)";
    case UsageField::kCoreHoursWithEnergy:
      return "CPU time with energy (core-hours)";
    case UsageField::kGpuHoursWithEnergy:
      return "GPU time with energy (GPU-hours)";
    case UsageField::kGramsOfKwh:
      return "energy with emissions (kWh)";
    case UsageField::kMarketGrams:
      return "emissions, market-based (g CO2e)";
    case UsageField::kMarketOfKwh:
      return "energy with market-based emissions (kWh)";
    case UsageField::kUnits:
      return "units";
  }
  return "";
}

report::Table table_of(const Services& services, const UsageTable& usage) {
  report::Table table{.name = fmt::format("Usage by {}", usage.step)};
  const bool grouped = usage.by != "none";
  table.columns.emplace_back(usage.step);
  if (grouped) {
    table.columns.emplace_back(usage.by);
  }
  for (const UsageField field : usage.fields) {
    table.columns.push_back(column_name(field, *services.site));
  }
  for (std::size_t time = 0; time < usage.times.size(); ++time) {
    for (std::size_t group = 0; group < usage.groups.size(); ++group) {
      std::vector<report::Cell> row;
      if (usage.step == "hour") {
        row.emplace_back(services.zone.local_with_offset(usage.times[time]));
      } else {
        row.emplace_back(date_of(services.zone.day(usage.times[time])));
      }
      if (grouped) {
        row.emplace_back(usage.groups[group]);
      }
      for (const auto& values : usage.values) {
        const std::optional<double>& value = values[group][time];
        row.push_back(value ? report::Cell(rounded(*value, 6)) : report::Cell());
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

/// The part of all energy that a column of energy holds. Nothing without one of the columns, or
/// without energy.
std::optional<double> share_of(const UsageTable& usage, UsageField field) {
  const auto sum = [&](UsageField of) {
    std::optional<double> total;
    const auto found = std::ranges::find(usage.fields, of);
    if (found != usage.fields.end()) {
      for (const auto& line :
           usage.values[static_cast<std::size_t>(found - usage.fields.begin())]) {
        for (const auto& value : line) {
          add_known(total, value);
        }
      }
    }
    return total;
  };
  const auto all = sum(UsageField::kKwh);
  const auto part = sum(field);
  return all && part && *all > 0 ? std::optional(*part / *all) : std::nullopt;
}

report::Notes notes_of(const Services& services, const UsageTable& usage) {
  const SiteOptions& site = *services.site;
  report::Notes notes;
  if (!site.name.empty()) {
    notes.emplace_back("Site", site.name);
  }
  notes.emplace_back("Written", services.zone.local_with_offset(services.now_ms()));
  notes.emplace_back("By", fmt::format("ceems_api_server {}", version().version));
  notes.emplace_back(
      "Time",
      "Each row begins at this day or hour in the time zone of the server. Units are "
      "counted on the day on which they were first seen.");
  if (usage.first_ms > 0) {
    notes.emplace_back("Known since", services.zone.day(usage.first_ms).substr(0, 10));
  }
  notes.emplace_back("Empty cells", "Not known. A zero is known to be zero.");
  notes.emplace_back("Energy",
                     "What the nodes drew for the units, as the exporters measured or modelled it, "
                     "without cooling and losses of the building.");
  if (usage.energy_coverage) {
    notes.emplace_back("Coverage",
                       fmt::format("The energy is known for {:.1f} % of the core-hours.",
                                   100 * *usage.energy_coverage));
  }
  notes.emplace_back("Emissions",
                     "Energy times the emission factor of its time and place (location-based).");
  if (const auto share = share_of(usage, UsageField::kMarketOfKwh)) {
    notes.emplace_back("Emissions, market-based",
                       fmt::format("Energy times the emissions per kWh of the bill for that day, "
                                   "or else of the configured factor. "
                                   "They are known for {:.1f} % of the energy.",
                                   100 * *share));
    const auto& rules = services.accounting->options().market;
    for (const auto& [source, kwh] : usage.market_kwh) {
      notes.emplace_back(
          "Factor, market-based",
          fmt::format("{}, for {:.6g} kWh",
                      source < rules.size() ? rules[source].source : "imported bills", kwh));
    }
  }
  if (services.accounting->priced()) {
    notes.emplace_back(
        "Cost",
        fmt::format(
            "Energy{} times its price, and the fixed parts for core-hours and GPU-hours. An "
            "internal estimate, no invoice.",
            site.pue ? fmt::format(" times {} (PUE)", *site.pue) : ""));
  }
  return notes;
}

void set_file(net::Response& response, std::string_view type, std::string_view name) {
  response.status = 200;
  response.set_header("Content-Type", std::string(type));
  response.set_header("Content-Disposition", fmt::format("attachment; filename=\"{}\"", name));
  response.set_header("X-Content-Type-Options", "nosniff");
}

}  // namespace

Result<std::optional<TableFormat>> parse_table_format(const Params& params) {
  const std::string_view format = params.text(Param::kFormat);
  if (format.empty() || format == "json") {
    return std::nullopt;
  }
  if (format == "csv") {
    return TableFormat::kCsv;
  }
  if (format == "xlsx") {
    return TableFormat::kXlsx;
  }
  return wrong_parameter("'format': expected 'json', 'csv' or 'xlsx'");
}

void answer_usage_table(const Services& services,
                        Call& call,
                        const UsageTable& usage,
                        TableFormat format) {
  const report::Table table = table_of(services, usage);
  if (format == TableFormat::kCsv) {
    set_file(*call.response, "text/csv; charset=utf-8; header=present", "usage.csv");
    call.response->body = report::to_csv(table);
    return;
  }
  auto workbook = report::to_xlsx(table, notes_of(services, usage));
  if (!workbook) {
    answer_failure(*call.response, workbook.error());
    return;
  }
  set_file(*call.response, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
           "usage.xlsx");
  call.response->body = std::move(*workbook);
}

}  // namespace ceems::api
