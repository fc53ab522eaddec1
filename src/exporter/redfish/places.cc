#include <algorithm>
#include <ranges>
#include <utility>

#include "exporter/redfish/reader.h"

namespace ceems::exporter::redfish {
namespace {

constexpr std::size_t kMaxMembers = 16;  // supplies and sensors of a chassis that are read

}  // namespace

/// Parts of a node, such as the GPUs of a baseboard, are chassis, too; only their Power is read.
bool Reader::may_fall_back(const Known& known) const {
  const auto has_system = [](const Known& other) { return other.chassis.has_system; };
  const auto is_named = [&](const std::string& name) {
    return name == known.chassis.id || name == known.label;
  };
  return known.chassis.has_system || std::ranges::none_of(chassis_, has_system) ||
         std::ranges::any_of(options_.node_chassis, is_named);
}

Result<Watts> Reader::read_place(const Chassis& chassis, PowerPlace place) {
  switch (place) {
    case PowerPlace::kSupplies:
      return read_supplies(chassis.power_subsystem);
    case PowerPlace::kSensors:
      return read_sensors(chassis.sensors);
    case PowerPlace::kEnvironment: {
      CEEMS_TRY(text, get_renewing(chassis.environment));
      return parse_environment(text);
    }
    default: {
      CEEMS_TRY(text, get_renewing(chassis.power));
      return parse_power(text);
    }
  }
}

/// The paths of the metrics of all supplies.
Result<std::vector<std::string>> Reader::supply_metrics(const std::string& subsystem) {
  CEEMS_TRY(text, get_renewing(subsystem));
  CEEMS_TRY(supplies, parse_link(text, "PowerSupplies"));
  if (supplies.empty()) {
    return fail(ErrorCode::kNoData, "no link to PowerSupplies");
  }
  CEEMS_TRY(list, get_renewing(supplies));
  CEEMS_TRY(members, parse_collection(list));
  std::vector<std::string> paths;
  for (const std::string& member : members.members | std::views::take(kMaxMembers)) {
    CEEMS_TRY(supply, get_renewing(member));
    CEEMS_TRY(metrics, parse_link(supply, "Metrics"));
    if (metrics.empty()) {
      return fail(ErrorCode::kNoData, "a supply has no Metrics");
    }
    paths.push_back(std::move(metrics));
  }
  return paths;
}

/// The sum of what the supplies take in. All must have a reading.
Result<Watts> Reader::read_supplies(const std::string& subsystem) {
  CEEMS_TRY(supplies, supply_metrics(subsystem));
  Watts sum;
  for (const std::string& supply : supplies) {
    CEEMS_TRY(values, get_renewing(supply));
    CEEMS_TRY(watts, parse_supply_metrics(values));
    sum.current += watts;
  }
  if (sum.current <= 0) {
    return fail(ErrorCode::kNoData, "the {} supplies take in 0 W", supplies.size());
  }
  return sum;
}

Result<Watts> Reader::read_sensors(const std::string& collection) {
  CEEMS_TRY(list, get_renewing(collection));
  CEEMS_TRY(members, parse_collection(list));
  std::size_t tried = 0;
  for (const std::string& member : members.members) {
    if (!may_be_power_sensor(member) || ++tried > kMaxMembers) {
      continue;
    }
    CEEMS_TRY(text, get_renewing(member));
    auto watts = parse_power_sensor(text);
    if (watts || watts.error().code != ErrorCode::kNoData) {
      return watts;
    }
  }
  return fail(ErrorCode::kNoData, "none of {} sensors is the power of the chassis",
              members.members.size());
}

/// The counter of energy of the chassis: the sum over `known.energy`, which the first call after
/// each listing of chassis finds. Nothing if there is none or it cannot be read.
std::optional<EnergyCounter> Reader::read_energy(Known& known) {
  const auto sum_of = [&](const std::vector<std::string>& paths) -> Result<EnergyCounter> {
    EnergyCounter sum;
    for (const std::string& path : paths) {
      CEEMS_TRY(text, get_renewing(path));
      CEEMS_TRY(counter, parse_energy(text));
      sum.joules += counter.joules;
      sum.step += counter.step;
    }
    return sum;
  };
  if (!known.energy) {
    std::vector<std::vector<std::string>> candidates;
    if (!known.chassis.environment.empty()) {
      candidates.push_back({known.chassis.environment});
    }
    if (!known.chassis.power_subsystem.empty()) {
      if (auto supplies = supply_metrics(known.chassis.power_subsystem)) {
        candidates.push_back(*std::move(supplies));
      }
    }
    if (!known.chassis.sensors.empty()) {
      const auto list = get_renewing(known.chassis.sensors);
      const auto sensors = parse_collection(list ? std::string_view(*list) : "{}");
      for (const std::string& sensor : sensors ? sensors->members : std::vector<std::string>()) {
        if (may_be_energy_sensor(sensor)) {
          candidates.push_back({sensor});
        }
      }
    }
    known.energy.emplace();
    for (std::vector<std::string>& paths : candidates | std::views::take(kMaxMembers)) {
      if (!paths.empty() && sum_of(paths).has_value()) {
        known.energy = std::move(paths);
        break;
      }
    }
  }
  if (known.energy->empty()) {
    return std::nullopt;
  }
  const auto sum = sum_of(*known.energy);
  return sum ? std::optional(*sum) : std::nullopt;
}

}  // namespace ceems::exporter::redfish
