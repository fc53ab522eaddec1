#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "base/clock.h"
#include "base/result.h"

namespace ceems::exporter::redfish {

// Tolerant access to fields of JSON documents, for the parsers of this folder. A field that is
// missing or of another type is null or empty.

/// Errors: kParse.
Result<boost::json::object> parse_object(std::string_view text);

const boost::json::object* object_at(const boost::json::object& object, std::string_view key);
const boost::json::array* array_at(const boost::json::object& object, std::string_view key);
std::string string_at(const boost::json::object& object, std::string_view key);

// Parsers of the JSON documents of a Redfish service (DMTF DSP0266, DSP2046). They are pure
// functions of text. Links are paths on the service's host, with their query; any other link in a
// document is left out. Errors are kParse.

struct ServiceRoot {
  std::string chassis;   ///< path of the collection of chassis, or empty
  std::string sessions;  ///< path for logging in, or empty
};
Result<ServiceRoot> parse_service_root(std::string_view text);

struct Collection {
  std::vector<std::string> members;
  std::string next;  ///< path of the next page, or empty
};
Result<Collection> parse_collection(std::string_view text);

struct Chassis {
  std::string id;
  std::string power;            ///< path of its Power resource, or empty; so are the next three,
  std::string environment;      ///< EnvironmentMetrics,
  std::string power_subsystem;  ///< PowerSubsystem,
  std::string sensors;          ///< and the collection Sensors, which replaced Power in 2020
  bool has_system = false;      ///< it contains a computer system
};
/// `link` is the path of the document. Its last part replaces a missing Id.
Result<Chassis> parse_chassis(std::string_view text, std::string_view link);

/// Watts; 0 if unknown. A value may be a number, a text such as "341 W", or an object with a
/// `Reading`. Anything else, negative values and those by which firmware says that it has no
/// reading (32767, 65535, 4294967295) are unknown, and never lose the values beside them.
struct Watts {
  double current = 0;
  double minimum = 0;
  double maximum = 0;
  double average = 0;
};

/// Power of a chassis from its Power resource, from the first of these that has any:
/// - PowerControl (PowerConsumedWatts, else CurConsumedWatts of its PowerMetrics). Entries for
/// subsystems (by Name and PhysicalContext: CPU, memory, GPU, fans,
/// ...)
///   are parts of the whole and not added. Entries that differ by a number alone ("Node 1 Power",
///   "Node 2 Power") are added; of any others the greatest contains the rest. Without a Name or
///   PhysicalContext, an entry that is at least the sum of the others is the whole; otherwise they
///   are added.
/// - PowerConsumedWatts of the resource itself (HPE iLO 4).
/// - Oem: CurrentPowerConsumptionW (Fujitsu) and similar names.
/// - PowerSupplies: the sum of input power, or of output power where no supply has the former
///   (also HPE's AveragePowerOutputWatts), if each supply that is present has a reading.
/// kNoData: none has; the message lists what was there.
Result<Watts> parse_power(std::string_view text);

/// PowerWatts of an EnvironmentMetrics resource, or its Oem. kNoData as above.
Result<Watts> parse_environment(std::string_view text);

/// The link under `key`, such as PowerSupplies of a PowerSubsystem. Empty if there is none.
Result<std::string> parse_link(std::string_view text, std::string_view key);

/// Input power of a PowerSupplyMetrics resource in watts. kNoData if it has none.
Result<double> parse_supply_metrics(std::string_view text);

/// Whether a sensor with this path may be one of the power of the whole chassis, by its name.
bool may_be_power_sensor(std::string_view link);
/// Watts of a Sensor resource that measures the power of the whole chassis. kNoData for any other.
Result<Watts> parse_power_sensor(std::string_view text);

/// A counter of energy.
struct EnergyCounter {
  double joules = 0;
  double step = 0;  ///< its smallest step, as far as the digits of the value show it
};
/// EnergyJoules or else EnergykWh of an EnvironmentMetrics, PowerSupplyMetrics or Outlet resource,
/// or a Sensor of the energy of a whole. kNoData: none is above 0.
Result<EnergyCounter> parse_energy(std::string_view text);

/// An outlet of a power distribution unit. A switched-off one has 0 W.
struct Outlet {
  std::optional<double> watts;
  std::optional<double> joules;
};
/// PowerWatts and a counter of energy of an Outlet resource. Values of another form are unknown.
Result<Outlet> parse_outlet(std::string_view text);

/// The part of a path after its last slash, apart from slashes at the end: the Id of a resource.
std::string_view last_part(std::string_view link);

/// Whether a sensor with this path may be one of the energy of the whole chassis, by its name.
bool may_be_energy_sensor(std::string_view link);

/// The path and query of "/a/b" or "https://host/a/b". Empty for anything else and for a link that
/// is too long.
std::string link_path(std::string_view link);

/// Scales the power that a BMC samples to its counter of energy, which also has what happened
/// between the samples. The counter gives the energy and the power its course in time: a counter
/// with steps of 0.1 kWh moves every few minutes only.
///
/// The factor is that of the last window of at least kMinSeconds in which the counter made
/// kMinSteps of its smallest steps. It is 1 before the first window, where the counter and the
/// power differ by more than kMaxFactor (a wrong unit, another part of the node), and when the
/// counter made less than that in kMaxSeconds. Not thread-safe.
class EnergyScale {
 public:
  static constexpr double kMinSeconds = 60;
  static constexpr double kMaxSeconds = 3600;
  static constexpr double kMinSteps = 20;
  static constexpr double kMaxFactor = 2;
  /// A power holds no longer than this; after a longer gap the window begins again.
  static constexpr double kMaxGap = 120;

  /// The scaled power. `counter` is what it showed at `now`, if it was read.
  double correct(double watts, const std::optional<EnergyCounter>& counter, Clock::SteadyTime now);
  [[nodiscard]] double factor() const { return factor_; }

 private:
  void compare(const EnergyCounter& counter);

  double factor_ = 1;
  std::optional<double> begin_;  // the counter when the window began
  double seconds_ = 0;           // of the window
  double joules_ = 0;            // of the power in the window
  double watts_ = 0;             // at last_
  std::optional<Clock::SteadyTime> last_;
};

}  // namespace ceems::exporter::redfish
