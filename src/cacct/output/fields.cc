#include "cacct/output/fields.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/spelling.h"

namespace ceems::cacct {
namespace {

constexpr std::size_t kMaxWidth = 1000;

/// Titles, widths and order follow the reference. `allocation` and `totalTime` came later; fields
/// of custom metrics are ours. In the order of the members of Field.
std::vector<Field> make_fields() {
  using enum FieldKind;
  return {
      {"jobid", "jobID", "uuid", "Job ID", 3, 7, kText, true, true, "Job ID"},
      {"slurmid", "slurmID", "slurm_id", "SLURM ID", 5, 12, kText, false, true,
       "ID of a task of an array or a part of a heterogeneous job as squeue and sacct show it"},
      {"name", "Name", "name", "Name", 5, 8, kText, false, true, "Name of the job"},
      {"account", "Account", "project", "Account", 5, 8, kText, true, true, "Account (project)"},
      {"group", "group", "groupname", "Group", 5, 5, kText, false, true, "Group of the user"},
      {"user", "user", "username", "User", 5, 5, kText, false, true, "User"},
      {"createdat", "createdAt", "created_at", "Created", 5, 8, kText, false, true,
       "Time of submission"},
      {"startedat", "startedAt", "started_at", "Started", 5, 12, kText, false, true, "Start time"},
      {"endedat", "endedAt", "ended_at", "Ended", 5, 12, kText, false, true, "End time"},
      {"elapsed", "elapsed", "elapsed", "Elapsed", 5, 12, kText, true, true, "Elapsed time"},
      {"state", "state", "state", "State", 5, 5, kText, false, true, "State"},
      {"cpuusage", "cpuUsage", "avg_cpu_usage", "CPU Usage(%)", 5, 6, kRatio, true, true,
       "Average use of the CPUs"},
      {"cpumemoryusage", "cpuMemoryUsage", "avg_cpu_mem_usage", "CPU Mem. Usage(%)", 5, 6, kRatio,
       true, true, "Average use of the memory"},
      {"hostenergy", "hostEnergy", "total_cpu_energy_usage_kwh", "Host Energy(kWh)", 5, 8, kAmount,
       true, true, "Energy of the host, without GPUs"},
      {"hostemissions", "hostEmissions", "total_cpu_emissions_gms", "Host Emissions(gms)", 5, 12,
       kAmount, true, true, "Emissions of that energy in grams of CO2 equivalent"},
      {"gpuusage", "gpuUsage", "avg_gpu_usage", "GPU Usage(%)", 5, 6, kRatio, true, true,
       "Average use of the GPUs"},
      {"gpumemoryusage", "gpuMemoryUsage", "avg_gpu_mem_usage", "GPU Mem. Usage(%)", 5, 6, kRatio,
       true, true, "Average use of the memory of the GPUs"},
      {"gpuenergy", "gpuEnergy", "total_gpu_energy_usage_kwh", "GPU Energy(kWh)", 5, 8, kAmount,
       true, true, "Energy of the GPUs"},
      {"gpuemissions", "gpuEmissions", "total_gpu_emissions_gms", "GPU Emissions(gms)", 5, 12,
       kAmount, true, true, "Emissions of that energy in grams of CO2 equivalent"},
      {"allocation", "allocation", "allocation", "Allocation", 5, 12, kWhole, false, false,
       "What was reserved: CPUs, memory in bytes, GPUs"},
      {"totaltime", "totalTime", "total_time_seconds", "Total Time(s)", 5, 12, kWhole, false, false,
       "Seconds of the job, and seconds times what was reserved"},
      {"customtotal", "customTotal", "total_custom_stats", "Custom Total", 5, 12, kRatio, false,
       false, "Totals of the metrics that the site defines"},
      {"customavg", "customAvg", "avg_custom_stats", "Custom Avg.", 5, 12, kRatio, false, false,
       "Averages of these metrics over the running time"},
      {"custommin", "customMin", "min_custom_stats", "Custom Min.", 5, 12, kRatio, false, false,
       "Their least values"},
      {"custommax", "customMax", "max_custom_stats", "Custom Max.", 5, 12, kRatio, false, false,
       "Their greatest values"},
  };
}

/// Splits "name%-20" and applies the width.
Result<> apply_width(std::string_view width, std::string_view part, Field& field) {
  const bool left = width.starts_with('-');
  const auto columns = parse_int<std::size_t>(width.substr(left ? 1 : 0));
  if (!columns || *columns == 0 || *columns > kMaxWidth) {
    return fail(ErrorCode::kInvalidArgument, "expected a width from 1 to {} after '%' in '{}'",
                kMaxWidth, printable(part));
  }
  field.min = *columns;
  field.max = *columns;
  field.right = !left;
  return {};
}

}  // namespace

std::span<const Field> server_fields() {
  static const std::vector<Field> fields = make_fields();
  return fields;
}

Result<std::vector<Field>> parse_format(std::string_view text, std::span<const Field> known) {
  std::vector<Field> chosen;
  for (const std::string_view part : split(text, ',')) {
    std::string_view rest = trim(part);
    const bool has_width = rest.find('%') != std::string_view::npos;
    const std::string name = to_lower(take_until(rest, '%'));
    if (name.empty() && !has_width) {
      continue;
    }
    const auto found = std::ranges::find(known, name, &Field::name);
    if (found == known.end()) {
      std::vector<std::string_view> names;
      for (const Field& field : known) {
        names.push_back(field.name);
      }
      const std::string_view near = config::nearest(name, names);
      return fail(
          ErrorCode::kInvalidArgument, "unknown field '{}' in --format{}", printable(trim(part)),
          near.empty() ? "; --helpformat lists them" : fmt::format(" (did you mean '{}'?)", near));
    }
    Field field = *found;
    if (has_width) {
      CEEMS_TRY(apply_width(rest, trim(part), field));
    }
    if (std::ranges::find(chosen, field.name, &Field::name) == chosen.end()) {
      chosen.push_back(std::move(field));
    }
  }
  return chosen;
}

std::vector<Field> in_table_order(std::vector<Field> chosen, std::span<const Field> known) {
  const auto place = [&](const Field& field) {
    return std::ranges::find(known, field.name, &Field::name) - known.begin();
  };
  std::ranges::sort(chosen, {}, place);
  return chosen;
}

std::string number_text(FieldKind kind, double value) {
  switch (kind) {
    case FieldKind::kRatio:
      return fmt::format("{:.2f}", value);
    case FieldKind::kAmount:
      return fmt::format("{:.6f}", value);
    case FieldKind::kWhole:
    case FieldKind::kText:
      break;
  }
  return fmt::format("{:.0f}", value);
}

}  // namespace ceems::cacct
