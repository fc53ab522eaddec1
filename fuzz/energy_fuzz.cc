// The first byte selects the parser: /proc/cpuinfo, the power table, --collector.energy.idle-watts
// or --collector.energy.model-watts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/options.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace energy = ceems::exporter::energy;
  if (size == 0) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    static const auto table = energy::parse_power_table(energy::kCpusCsv);
    const energy::PowerModel model = energy::make_power_model(
        *table, {.cpu = energy::parse_cpu_identity(text), .cpus = 4, .tdp_watts = 100.0});
    if (!(model.full_watts >= model.idle_watts) || !(model.idle_watts > 0)) {
      std::abort();  // the table has an entry for unknown CPUs
    }
  } else if (data[0] % 4 == 1) {
    if (const auto table = energy::parse_power_table(text)) {
      static_cast<void>(energy::find_power(*table, {.vendor = "GenuineIntel"}));
    }
  } else if (data[0] % 4 == 3) {
    if (const auto readings = energy::parse_model_watts(text); readings && *readings) {
      if (!((*readings)->idle > 0) || (*readings)->idle > (*readings)->full) {
        std::abort();
      }
    }
  } else if (const auto watts = energy::parse_idle_watts(text)) {
    for (const auto& value : *watts) {
      if (value && !(*value >= 0)) {
        std::abort();
      }
    }
  }
  return 0;
}
