// Delegated Regulation (EU) 2024/1364: key performance indicators of data centres (annex II), and
// the sustainability indicators computed from them (annex III).
#include <array>
#include <utility>

#include "api/statements/all.h"
#include "api/statements/lines.h"

namespace ceems::api {
namespace {

using facility::MeterKind;

constexpr std::string_view kEnergySection = "Energy and sustainability (annex II)";
constexpr std::string_view kCapacitySection = "ICT capacity and traffic (annex II)";

/// A field that only the site can state, with its key in `declared`. Without one it stays empty.
struct DeclaredField {
  std::string_view key, section, label, unit;
};

constexpr std::array<DeclaredField, 18> kDeclared{{
    {"installed_it_power_kw", kEnergySection, "installed IT power demand (PDIT)", "kW"},
    {"backup_generators_kwh", kEnergySection, "energy of backup generators (EDC-BG)", "kWh"},
    {"floor_area_m2", kEnergySection, "total floor area (SDC)", "m²"},
    {"computer_room_area_m2", kEnergySection, "computer room floor area (SCR)", "m²"},
    {"battery_capacity_kw", kEnergySection, "average battery capacity (CBtG)", "kW"},
    {"potable_water_m3", kEnergySection, "potable water input (WIN-POT)", "m³"},
    {"waste_heat_temperature_c", kEnergySection, "average waste heat temperature (TWH)", "°C"},
    {"intake_air_setpoint_c", kEnergySection, "average set-point of the intake air (TIN)", "°C"},
    {"cooling_degree_days", kEnergySection, "cooling degree days (CDD)", "degree-days"},
    {"renewable_goo_kwh", kEnergySection, "renewable energy by guarantees of origin (ERES-GOO)",
     "kWh"},
    {"renewable_ppa_kwh", kEnergySection, "renewable energy by purchase agreements (ERES-PPA)",
     "kWh"},
    {"renewable_onsite_kwh", kEnergySection, "renewable energy made on site (ERES-OS)", "kWh"},
    {"server_capacity", kCapacitySection, "ICT capacity of servers (CSERV)", "1"},
    {"storage_capacity_pb", kCapacitySection, "ICT capacity of storage (CSTOR)", "PB"},
    {"incoming_gbit_s", kCapacitySection, "incoming traffic bandwidth (BIN)", "Gbit/s"},
    {"outgoing_gbit_s", kCapacitySection, "outgoing traffic bandwidth (BOUT)", "Gbit/s"},
    {"incoming_eb", kCapacitySection, "incoming data traffic (TIN)", "EB"},
    {"outgoing_eb", kCapacitySection, "outgoing data traffic (TOUT)", "EB"},
}};

void add_declared(const StatementInputs& inputs,
                  std::string_view section,
                  statement::Document& document) {
  for (const DeclaredField& field : kDeclared) {
    if (field.section != section) {
      continue;
    }
    const auto value = inputs.context.accounting->facility.declared_value(field.key);
    document.add({.id = std::string(field.key),
                  .section = std::string(section),
                  .label = std::string(field.label),
                  .value = value,
                  .unit = std::string(field.unit),
                  .how = statement::How::kDeclared,
                  .note = value ? "stated in facility.yml"
                                : "not known; `declared` of facility.yml can state it"});
  }
}

void fill_eed(const StatementInputs& inputs, statement::Document& document) {
  document.notes.emplace_back(
      "Fields are named as in the regulation. It asks for calendar years and for all of the data "
      "centre: check that the meters are of all of it.");
  document.notes.emplace_back(
      "Types of refrigerants, the functions for the grid and the general information of annex I "
      "are "
      "texts, which you fill in yourself.");
  document.notes.emplace_back(
      "ERES-TOT is the sum of ERES-GOO, ERES-PPA and ERES-OS, and REF is ERES-TOT by EDC. Meters "
      "know only what they count: add guarantees and agreements that none of them counts.");
  const std::string section(kEnergySection);
  add_meter(inputs, MeterKind::kTotal, section, "total energy (EDC)", document);
  add_meter(inputs, MeterKind::kIt, section, "energy of the IT (EIT)", document);
  add_meter(inputs, MeterKind::kWater, section, "total water input (WIN)", document);
  add_meter(inputs, MeterKind::kHeatReused, section, "waste heat reused (EREUSE)", document);
  add_meter(inputs, MeterKind::kRenewable, section,
            "renewable energy that is metered (of ERES-TOT)", document);
  add_declared(inputs, kEnergySection, document);
  add_declared(inputs, kCapacitySection, document);
  add_indicators(inputs, document);
}

}  // namespace

StatementSpec eed_statement() {
  return {.name = "eed",
          .title = "Data centre report, Delegated Regulation (EU) 2024/1364",
          .help = "the EU's data centre report: what meters know, and the other fields by name",
          .fill = fill_eed};
}

}  // namespace ceems::api
