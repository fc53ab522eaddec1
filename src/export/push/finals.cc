#include "export/push/finals.h"

#include <array>

namespace ceems::exporting {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

std::optional<double> allocated(const ExportedUnit& unit,
                                std::string_view name,
                                std::string_view other) {
  const auto value = unit.allocation.number(name);
  return value || other.empty() ? value : unit.allocation.number(other);
}

// hw.energy is that of the semantic conventions of OpenTelemetry 1.43 (in development), "Hardware".
constexpr std::array<Final, 10> kFinals{{
    {.series = "ceems_unit_cpu_energy_kwh",
     .metric = "hw.energy",
     .unit = "J",
     .scale = kJoulesPerKwh,
     .sum = true,
     .hardware = "cpu",
     .value = [](const ExportedUnit& unit) { return unit.cpu_kwh; }},
    {.series = "ceems_unit_gpu_energy_kwh",
     .metric = "hw.energy",
     .unit = "J",
     .scale = kJoulesPerKwh,
     .sum = true,
     .hardware = "gpu",
     .value = [](const ExportedUnit& unit) { return unit.gpu_kwh; }},
    {.series = "ceems_unit_emissions_grams",
     .metric = "ceems.unit.emissions",
     .unit = "g",
     .sum = true,
     .value = [](const ExportedUnit& unit) { return unit.grams; }},
    {.series = "ceems_unit_walltime_seconds",
     .metric = "ceems.unit.walltime",
     .unit = "s",
     .sum = true,
     .value = [](const ExportedUnit& unit) { return std::optional(unit.seconds()); }},
    {.series = "ceems_unit_cpu_usage_percent",
     .metric = "ceems.unit.cpu.usage",
     .unit = "%",
     .value = [](const ExportedUnit& unit) { return unit.cpu_use; }},
    {.series = "ceems_unit_cpu_mem_usage_percent",
     .metric = "ceems.unit.cpu.memory.usage",
     .unit = "%",
     .value = [](const ExportedUnit& unit) { return unit.memory_use; }},
    {.series = "ceems_unit_gpu_usage_percent",
     .metric = "ceems.unit.gpu.usage",
     .unit = "%",
     .value = [](const ExportedUnit& unit) { return unit.gpu_use; }},
    {.series = "ceems_unit_nodes",
     .metric = "ceems.unit.nodes",
     .unit = "{node}",
     .value = [](const ExportedUnit& unit) { return allocated(unit, "nodes", ""); }},
    {.series = "ceems_unit_cpus",
     .metric = "ceems.unit.cpus",
     .unit = "{cpu}",
     .value = [](const ExportedUnit& unit) { return allocated(unit, "cpus", "vcpus"); }},
    {.series = "ceems_unit_gpus",
     .metric = "ceems.unit.gpus",
     .unit = "{gpu}",
     .value = [](const ExportedUnit& unit) { return allocated(unit, "gpus", "vgpus"); }},
}};

}  // namespace

std::span<const Final> finals() {
  return kFinals;
}

}  // namespace ceems::exporting
