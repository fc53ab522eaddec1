#include "facility/options.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "config/section.h"

namespace ceems::facility {
namespace {

Result<Meter> read_meter(const config::Node& node, const std::string& directory) {
  constexpr double kMaxScale = 1e9;
  Meter meter;
  std::string kind;
  std::chrono::milliseconds every = std::chrono::hours(1);
  config::Section section(node);
  section.only({"kind", "name", "csv", "every", "counter", "power", "cluster", "scale", "category"})
      .text("kind", kind)
      .text("name", meter.name)
      .file("csv", meter.file, directory)
      .duration("every", every)
      .text("counter", meter.counter)
      .text("power", meter.power)
      .text("cluster", meter.cluster)
      .number("scale", meter.scale)
      .text("category", meter.category);
  bool known = false;
  for (std::size_t i = 0; i < kMeterKinds; ++i) {
    if (kind == name_of(static_cast<MeterKind>(i))) {
      meter.kind = static_cast<MeterKind>(i);
      known = true;
    }
  }
  meter.every_ms = every.count();
  const auto sources = static_cast<int>(!meter.file.empty()) +
                       static_cast<int>(!meter.counter.empty()) +
                       static_cast<int>(!meter.power.empty());
  const bool whole =
      meter.every_ms == kDayMs ||
      (meter.every_ms >= kMinuteMs && meter.every_ms <= kHourMs && kHourMs % meter.every_ms == 0);
  section.refuse(!known, "kind", "expected total, it, cooling, water, heat_reused or renewable")
      .refuse(sources != 1, "csv", "expected exactly one of csv, counter and power")
      .refuse(!whole, "every", "expected 1d, 1h, or minutes that divide an hour")
      .refuse(meter.file.empty() && node["every"].present(), "every", "is only for csv")
      .refuse(!meter.file.empty() && node["scale"].present(), "scale",
              "is only for counter and power")
      .refuse(!(meter.scale > 0 && meter.scale <= kMaxScale), "scale", "expected a number above 0")
      .refuse(!meter.power.empty() && meter.kind == MeterKind::kWater, "power",
              "water is not energy: expected csv or counter");
  CEEMS_TRY(section.done());
  if (meter.name.empty()) {
    meter.name = kind;
  }
  return meter;
}

Result<LossFactor> read_losses(const config::Node& node, const TimeZone& zone) {
  constexpr double kMaxGrams = 5000;
  LossFactor factor{.grams = -1};
  std::string from;
  std::string to;
  config::Section section(node);
  section.only({"from", "to", "g_kwh", "source", "date"})
      .text("from", from)
      .text("to", to)
      .number("g_kwh", factor.grams)
      .text("source", factor.source)
      .text("date", factor.date)
      .refuse(!(factor.grams >= 0 && factor.grams <= kMaxGrams), "g_kwh",
              "expected g CO2e per kWh that is bought, from 0 to 5000")
      .refuse(factor.source.empty() || printable(factor.source) != factor.source, "source",
              "expected one line on where the factor is from");
  const auto day = [&](std::string_view key, const std::string& text) {
    const auto start = zone.parse_local(text + "T00:00:00");
    section.refuse(text.size() != 10 || !start, key, "expected a date such as 2026-01-01");
    return start.value_or(0);
  };
  if (!from.empty()) {
    factor.from_ms = day("from", from);
  }
  if (!to.empty()) {
    factor.to_ms = zone.day_start(day("to", to) + kDayMs * 3 / 2);
  }
  section.refuse(factor.from_ms >= factor.to_ms, "to", "expected the last day, not before 'from'");
  CEEMS_TRY(section.done());
  return factor;
}

}  // namespace

std::string Meter::hourly_query() const {
  if (!counter.empty()) {
    return fmt::format("sum(increase({}[1h])) * {}", counter, scale);
  }
  constexpr double kWattsOfKw = 1000;
  return power.empty() ? std::string()
                       : fmt::format("avg_over_time(({})[1h:1m]) * {}", power, scale / kWattsOfKw);
}

std::optional<double> FacilityOptions::declared_value(std::string_view name) const {
  const auto found =
      std::ranges::find_if(declared, [name](const auto& field) { return field.first == name; });
  return found == declared.end() ? std::nullopt : std::optional(found->second);
}

std::span<const DeclaredField> declared_fields() {
  static constexpr std::array<DeclaredField, 18> kFields{{
      {"installed_it_power_kw", "installed IT power demand (PDIT)", "kW"},
      {"backup_generators_kwh", "energy of backup generators (EDC-BG)", "kWh"},
      {"floor_area_m2", "total floor area (SDC)", "m²"},
      {"computer_room_area_m2", "computer room floor area (SCR)", "m²"},
      {"battery_capacity_kw", "average battery capacity (CBtG)", "kW"},
      {"potable_water_m3", "potable water input (WIN-POT)", "m³"},
      {"waste_heat_temperature_c", "average waste heat temperature (TWH)", "°C"},
      {"intake_air_setpoint_c", "average set-point of the intake air (TIN)", "°C"},
      {"cooling_degree_days", "cooling degree days (CDD)", "degree-days"},
      {"renewable_goo_kwh", "renewable energy by guarantees of origin (ERES-GOO)", "kWh"},
      {"renewable_ppa_kwh", "renewable energy by purchase agreements (ERES-PPA)", "kWh"},
      {"renewable_onsite_kwh", "renewable energy made on site (ERES-OS)", "kWh"},
      {"server_capacity", "ICT capacity of servers (CSERV)", "1", true},
      {"storage_capacity_pb", "ICT capacity of storage (CSTOR)", "PB", true},
      {"incoming_gbit_s", "incoming traffic bandwidth (BIN)", "Gbit/s", true},
      {"outgoing_gbit_s", "outgoing traffic bandwidth (BOUT)", "Gbit/s", true},
      {"incoming_eb", "incoming data traffic (TIN)", "EB", true},
      {"outgoing_eb", "outgoing data traffic (TOUT)", "EB", true},
  }};
  return kFields;
}

Result<FacilityOptions> read_facility(const config::Node& document,
                                      const std::string& directory,
                                      const TimeZone& zone) {
  FacilityOptions options;
  config::Section section(document);
  section.only({"meters", "transmission_losses", "declared"})
      .each("meters",
            [&](const config::Node& item) -> Result<> {
              CEEMS_TRY(meter, read_meter(item, directory));
              options.meters.push_back(std::move(meter));
              return {};
            })
      .each("transmission_losses", [&](const config::Node& item) -> Result<> {
        CEEMS_TRY(factor, read_losses(item, zone));
        options.losses.push_back(std::move(factor));
        return {};
      });
  if (const config::Node declared = document["declared"]; declared.present()) {
    config::Section inner(declared);
    std::vector<std::string_view> names;
    for (const DeclaredField& field : declared_fields()) {
      names.push_back(field.name);
    }
    inner.only(names);
    for (const std::string_view name : names) {
      double value = 0;
      inner.number(name, value);
      if (declared[name].present()) {
        options.declared.emplace_back(name, value);
      }
    }
    section.also(inner.done());
  }
  CEEMS_TRY(section.done());
  return options;
}

}  // namespace ceems::facility
