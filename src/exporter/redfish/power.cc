#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "exporter/redfish/documents.h"

namespace ceems::exporter::redfish {
namespace {

namespace json = boost::json;

constexpr double kMaxChassisWatts = 1e6;  // a rack has a tenth of that
constexpr int kMaxOemDepth = 6;
constexpr std::size_t kMaxSeen = 8;
constexpr int kMaxEnergyDigits = 6;
constexpr double kMaxJoules = 1e15;  // a rack of 100 kW takes 300 years
constexpr std::array<double, 3> kEnergySentinels{65535, 2147483647, 4294967295};

std::optional<double> plausible_watts(double watts) {
  const bool sentinel = watts == 32767 || watts == 65535;  // all ones of 15 and 16 bits
  return watts >= 0 && watts <= kMaxChassisWatts && !sentinel ? std::optional(watts) : std::nullopt;
}

/// A number, "341", "341 W", or the object of a sensor: {"Reading": 341}.
std::optional<double> watts_of(const json::value* value) {
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->is_number()) {
    return plausible_watts(value->to_number<double>());
  }
  if (const json::string* text = value->if_string()) {
    std::string_view rest = trim(std::string_view(text->data(), text->size()));
    const auto number = parse_double(take_word(rest));
    const std::string unit = to_lower(trim(rest));
    const bool is_watts = unit.empty() || unit == "w" || unit == "watts" || unit == "watt";
    return number && is_watts ? plausible_watts(*number) : std::nullopt;
  }
  const json::object* object = value->if_object();
  const json::value* reading = object == nullptr ? nullptr : object->if_contains("Reading");
  return reading == nullptr || reading->is_object() ? std::nullopt : watts_of(reading);
}

std::optional<double> watts_at(const json::object& object, std::string_view key) {
  return watts_of(object.if_contains(key));
}

/// Names of what is only a part of a chassis, as Name and PhysicalContext have them.
bool names_a_part(std::string_view text) {
  constexpr std::array<std::string_view, 18> kWords{
      "sub-system", "subsystem", "cpu",   "processor", "memory", "dimm",
      "dram",       "gpu",       "accel", "fan",       "drive",  "disk",
      "storage",    "network",   "hdd",   "regulator", "fpga",   "asic"};
  const std::string lower = to_lower(text);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.contains(word); });
}

bool names_the_whole(std::string_view text) {
  constexpr std::array<std::string_view, 7> kWords{"server", "system",    "chassis", "node",
                                                   "total",  "enclosure", "input"};
  const std::string lower = to_lower(text);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return lower.contains(word); });
}

enum class Scope { kWhole, kUnknown, kPart };

/// An entry of PowerControl.
struct PowerEntry {
  std::string id;
  std::string name;
  Scope scope = Scope::kUnknown;
  Watts watts;
};

Scope scope_of(std::string_view name, std::string_view context) {
  if (names_a_part(context) || names_a_part(name)) {
    return Scope::kPart;
  }
  return names_the_whole(name) || same_in_any_case(context, "chassis") ? Scope::kWhole
                                                                       : Scope::kUnknown;
}

std::string member_id(const json::object& object) {
  const json::value* value = object.if_contains("MemberId");
  if (value == nullptr || !(value->is_number() || value->is_string())) {
    return {};
  }
  return value->is_string() ? string_at(object, "MemberId") : json::serialize(*value);
}

PowerEntry entry_of(const json::object& object) {
  const std::string context = string_at(object, "PhysicalContext");
  PowerEntry entry{.id = member_id(object), .name = string_at(object, "Name"), .watts = {}};
  entry.scope = scope_of(entry.name, context);
  if (entry.name.empty()) {
    entry.name = context.empty() ? "entry " + entry.id : context;
  }
  entry.watts.current = watts_at(object, "PowerConsumedWatts").value_or(0);
  if (const json::object* metrics = object_at(object, "PowerMetrics")) {
    if (entry.watts.current <= 0) {
      entry.watts.current = watts_at(*metrics, "CurConsumedWatts").value_or(0);
    }
    entry.watts.minimum = watts_at(*metrics, "MinConsumedWatts").value_or(0);
    entry.watts.maximum = watts_at(*metrics, "MaxConsumedWatts").value_or(0);
    entry.watts.average = watts_at(*metrics, "AverageConsumedWatts").value_or(0);
  }
  return entry;
}

/// The entries by MemberId, each once. Some services have one object instead of a list.
std::vector<PowerEntry> control_entries(const json::object& document) {
  std::vector<PowerEntry> entries;
  if (const json::object* one = object_at(document, "PowerControl")) {
    entries.push_back(entry_of(*one));
  }
  if (const json::array* list = array_at(document, "PowerControl")) {
    for (const json::value& value : *list) {
      if (const json::object* object = value.if_object()) {
        PowerEntry entry = entry_of(*object);
        const bool twice = std::ranges::any_of(entries, [&](const PowerEntry& other) {
          return !entry.id.empty() && other.id == entry.id && other.name == entry.name;
        });
        if (!twice) {
          entries.push_back(std::move(entry));
        }
      }
    }
  }
  return entries;
}

double power_of(const PowerEntry& entry) {
  return entry.watts.current > 0 ? entry.watts.current : entry.watts.average;
}

std::string without_digits(std::string text) {
  std::erase_if(text, is_digit);
  return text;
}

/// Whether the entries are of equal rank ("Node 1 Power", "Node 2 Power") and make up the whole.
bool are_siblings(const std::vector<PowerEntry>& entries) {
  return std::ranges::all_of(entries, [&](const PowerEntry& entry) {
    return without_digits(entry.name) == without_digits(entries.front().name);
  });
}

Watts sum_of(const std::vector<PowerEntry>& entries) {
  Watts sum;
  for (const PowerEntry& entry : entries) {
    sum.current += entry.watts.current;
    sum.minimum += entry.watts.minimum;
    sum.maximum += entry.watts.maximum;
    sum.average += entry.watts.average;
  }
  return sum;
}

std::optional<Watts> whole_of(std::vector<PowerEntry> entries) {
  std::erase_if(entries, [](const PowerEntry& entry) { return power_of(entry) <= 0; });
  const auto scope = std::ranges::min_element(entries, {}, &PowerEntry::scope);
  if (scope == entries.end() || scope->scope == Scope::kPart) {
    return std::nullopt;
  }
  std::erase_if(entries, [best = scope->scope](const PowerEntry& e) { return e.scope != best; });
  // Entries that nothing tells apart are added up, as the reference does.
  const auto greatest = std::ranges::max_element(entries, {}, power_of);
  const bool contains = greatest->scope == Scope::kWhole && !are_siblings(entries);
  return contains ? greatest->watts : sum_of(entries);
}

/// A value below Oem under a name that vendors use for the power of the whole.
std::optional<double> oem_watts(const json::object& object, int depth = 0) {
  constexpr std::array<std::string_view, 5> kKeys{"CurrentPowerConsumptionW", "PowerConsumedWatts",
                                                  "TotalPowerConsumptionWatts", "TotalPowerWatts",
                                                  "SystemInputPowerWatts"};
  for (const std::string_view key : kKeys) {
    if (const auto watts = watts_at(object, key); watts && *watts > 0) {
      return watts;
    }
  }
  for (const auto& member : object) {
    const json::object* below = member.value().if_object();
    const std::string_view key(member.key().data(), member.key().size());
    if (below != nullptr && depth < kMaxOemDepth && !names_a_part(key)) {
      if (const auto watts = oem_watts(*below, depth + 1)) {
        return watts;
      }
    }
  }
  return std::nullopt;
}

std::optional<double> oem_of(const json::object& document) {
  const json::object* oem = object_at(document, "Oem");
  return oem == nullptr ? std::nullopt : oem_watts(*oem);
}

bool is_absent(const json::object& supply) {
  const json::object* status = object_at(supply, "Status");
  const std::string state = status == nullptr ? std::string() : string_at(*status, "State");
  return state == "Absent" || state == "Disabled" || state == "StandbyOffline" ||
         state == "UnavailableOffline";
}

std::optional<double> input_watts(const json::object& supply) {
  return watts_at(supply, "PowerInputWatts");
}

std::optional<double> output_watts(const json::object& supply) {
  for (const char* vendor : {"Hpe", "Hp"}) {
    const json::object* oem = object_at(supply, "Oem");
    const json::object* own = oem == nullptr ? nullptr : object_at(*oem, vendor);
    if (const auto watts = own ? watts_at(*own, "AveragePowerOutputWatts") : std::nullopt) {
      return watts;
    }
  }
  if (const auto watts = watts_at(supply, "PowerOutputWatts")) {
    return watts;
  }
  const auto last = watts_at(supply, "LastPowerOutputWatts");
  return last == watts_at(supply, "PowerCapacityWatts") ? std::nullopt : last;  // its rating
}

/// The sum over the supplies that are present; nothing if one of them has no reading.
std::optional<double> supplies_watts(const json::object& document,
                                     std::optional<double> (*read)(const json::object&)) {
  const json::array* supplies = array_at(document, "PowerSupplies");
  double sum = 0;
  for (const json::value& value : supplies == nullptr ? json::array() : *supplies) {
    const json::object* supply = value.if_object();
    if (supply == nullptr || is_absent(*supply)) {
      continue;
    }
    const auto watts = read(*supply);
    if (!watts) {
      return std::nullopt;
    }
    sum += *watts;
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

/// What was there instead, for the operator: "PowerControl has no power of the whole (CPU=201 W)".
std::string seen_in(const std::vector<PowerEntry>& entries) {
  if (entries.empty()) {
    return "PowerControl has no entry";
  }
  std::vector<std::string> all;
  for (const PowerEntry& entry : entries) {
    if (all.size() < kMaxSeen) {
      all.push_back(fmt::format("{}={} W", printable(entry.name, 40), entry.watts.current));
    }
  }
  return fmt::format("PowerControl has no power of the whole ({})", fmt::join(all, ", "));
}

/// Whether the words of a sensor's name say that it is about what the whole chassis consumes.
bool names_chassis_input(std::string_view name) {
  const std::string lower = to_lower(name);
  const bool other = lower.contains("limit") || lower.contains("cap") ||
                     lower.contains("headroom") || lower.contains("output") ||
                     lower.contains("psu") || lower.contains("supply") || lower.contains("peak") ||
                     lower.contains("max") || lower.contains("min");
  return !other && !names_a_part(name) && names_the_whole(name);
}

bool contains_any(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [lower = to_lower(name)](std::string_view word) { return lower.contains(word); });
}

/// A number, or {"Reading": number}, in units of `joules`.
std::optional<EnergyCounter> counter_of(const json::value* value, double joules) {
  if (const json::object* object = value == nullptr ? nullptr : value->if_object()) {
    value = object->if_contains("Reading");
  }
  if (value == nullptr || !value->is_number()) {
    return std::nullopt;
  }
  const double reading = value->to_number<double>();
  double step = 1;
  for (int digits = 0; digits < kMaxEnergyDigits; ++digits) {
    if (std::abs(std::remainder(reading, step)) < 1e-3 * step) {
      break;
    }
    step /= 10;
  }
  const bool sentinel = std::ranges::find(kEnergySentinels, reading) != kEnergySentinels.end();
  if (sentinel || !(reading > 0 && reading * joules < kMaxJoules)) {
    return std::nullopt;
  }
  return EnergyCounter{.joules = reading * joules, .step = step * joules};
}

}  // namespace

Result<Watts> parse_power(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  const std::vector<PowerEntry> entries = control_entries(document);
  if (const auto whole = whole_of(entries)) {
    return *whole;
  }
  for (const auto& watts :
       {watts_at(document, "PowerConsumedWatts"), oem_of(document),
        supplies_watts(document, input_watts), supplies_watts(document, output_watts)}) {
    if (watts && *watts > 0) {
      return Watts{.current = *watts};
    }
  }
  return fail(ErrorCode::kNoData, "{}", seen_in(entries));
}

Result<Watts> parse_environment(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  for (const auto& watts : {watts_at(document, "PowerWatts"), oem_of(document)}) {
    if (watts && *watts > 0) {
      return Watts{.current = *watts};
    }
  }
  return fail(ErrorCode::kNoData, "PowerWatts is {}",
              document.contains("PowerWatts") ? "zero or not a power" : "missing");
}

Result<double> parse_supply_metrics(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  if (const auto watts = watts_at(document, "InputPowerWatts")) {
    return *watts;
  }
  return fail(ErrorCode::kNoData, "a supply has no InputPowerWatts");
}

std::string_view last_part(std::string_view link) {
  while (link.ends_with('/')) {
    link.remove_suffix(1);
  }
  return link.substr(link.rfind('/') + 1);
}

bool may_be_power_sensor(std::string_view link) {
  const std::string_view name = last_part(link);
  return contains_any(name, {"power", "pwr", "watt"}) && names_chassis_input(name);
}

bool may_be_energy_sensor(std::string_view link) {
  const std::string_view name = last_part(link);
  return contains_any(name, {"energy", "joule", "kwh"}) && names_chassis_input(name);
}

Result<EnergyCounter> parse_energy(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  const std::string type = string_at(document, "ReadingType");
  for (const auto& [name, joules] : {std::pair("EnergyJoules", 1.0), std::pair("EnergykWh", 3.6e6),
                                     std::pair("EnergyWh", 3600.0)}) {
    auto counter = counter_of(document.if_contains(name), joules);
    if (!counter && type == name && !names_a_part(string_at(document, "PhysicalContext"))) {
      counter = counter_of(document.if_contains("Reading"), joules);
    }
    if (counter) {
      return *counter;
    }
  }
  return fail(ErrorCode::kNoData, "no counter of energy");
}

Result<Watts> parse_power_sensor(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  const std::string units = string_at(document, "ReadingUnits");
  const std::string type = string_at(document, "ReadingType");
  const auto watts = watts_at(document, "Reading");
  const bool is_power = (type.empty() || type == "Power") &&
                        (units.empty() || units == "W" || same_in_any_case(units, "watts"));
  if (!is_power || names_a_part(string_at(document, "PhysicalContext")) || !watts || *watts <= 0) {
    return fail(ErrorCode::kNoData, "it is not a power in watts");
  }
  return Watts{.current = *watts};
}

Result<Outlet> parse_outlet(std::string_view text) {
  CEEMS_TRY(document, parse_object(text));
  const auto counter = parse_energy(text);
  return Outlet{.watts = watts_at(document, "PowerWatts"),
                .joules = counter ? std::optional(counter->joules) : std::nullopt};
}

}  // namespace ceems::exporter::redfish
