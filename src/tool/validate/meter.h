#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/client/client.h"
#include "tool/validate/page.h"
#include "tool/validate/run.h"

namespace ceems::tool::validate {

/// Watts that a node may draw.
inline constexpr double kMaxMeterWatts = 1e5;

/// The watts, if they are above 0 and at most kMaxMeterWatts. kParse otherwise: a meter
/// without a reading reports NaN, 0 or the largest number of its register.
Result<double> checked_watts(double watts);

/// Readings of a wattmeter with a memory of its own: lines "time,watts" or "time;watts", the time
/// in UNIX seconds or as in RFC 3339. A first line that cannot be read is a heading; blank lines
/// and lines that begin with '#' are skipped. `offset` seconds are added to the times. The result
/// is sorted by time. kParse, with the number of the line, and for a text without readings.
Result<std::vector<WattReading>> parse_csv_readings(std::string_view text, double offset);

/// The meter that the exporter is compared with. Used by one thread.
class ReferenceMeter {
 public:
  virtual ~ReferenceMeter() = default;
  /// Watts of the whole node now. Nothing from a meter whose readings come later, and from one that
  /// counts energy at the first call.
  virtual Result<std::optional<double>> read() = 0;
  /// The readings of a meter that keeps them itself.
  virtual Result<std::vector<WattReading>> late() { return std::vector<WattReading>(); }
};

/// How the meter is named on the command line, and what it needs.
struct MeterOptions {
  std::string meter;  ///< "ipmi", "redfish", "hwmon[:FILE]", "psys", "csv:FILE", "prometheus"
  std::string url;    ///< of the resource of Redfish, or of Prometheus
  net::ClientOptions client;  ///< for it
  std::string query;          ///< of Prometheus
  double csv_offset = 0;      ///< seconds
  std::string sys = "/sys";
  std::string dev = "/dev";
};

/// The part of `meter` before the colon.
std::string_view kind_of_meter(std::string_view meter);

/// Opens the meter. kInvalidArgument for an unknown one and for options that are missing; kNotFound
/// if this node has none.
Result<std::unique_ptr<ReferenceMeter>> open_meter(const MeterOptions& options, const Clock& clock);

/// The meters of this node that can be opened without options, such as "ipmi".
std::vector<std::string> meters_of_node(const MeterOptions& options);

/// Whether the exporter's energy of the node does not come from the same meter. IPMI and Redfish
/// are two ways to one BMC, and an ACPI power meter is often a third.
bool is_independent(std::string_view meter, const std::vector<EnergySource>& sources);

/// The watts of a Power, EnvironmentMetrics or Sensor resource of Redfish (DSP0268): the first of
/// PowerControl[].PowerConsumedWatts, PowerWatts.Reading and Reading that is a number.
Result<double> redfish_watts(std::string_view text);

}  // namespace ceems::tool::validate
