#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/unit_table.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// A unit that holds or uses a device or a part of it.
struct DeviceHolder {
  std::string manager;
  std::string cgrouphostname;
  std::string uuid;
  double alloc = 0;  ///< fraction of the device that is reserved for the unit, 0...1
  double use = 0;    ///< amount used, in the unit of DeviceSample::total_use
};

/// What one device did since its previous reading.
struct DeviceSample {
  SourceInfo source;          ///< domain kGpu; source.name identifies the device
  double joules = 0;          ///< >= 0
  double seconds = 0;         ///< time in which they were used; 0 without a new reading
  Clock::SteadyTime fresh{};  ///< when the reading was taken
  std::optional<double> utilisation = {};  ///< 0...1
  double total_use = 0;                    ///< use by everything, units or not
  std::vector<DeviceHolder> holders = {};  ///< a unit may be listed more than once
};

/// Devices whose energy is split for each device among its holders. Devices may come and go. Used
/// by one thread at a time.
class DeviceMeters {
 public:
  virtual ~DeviceMeters() = default;
  /// Appends the devices that have a value now. Never blocks.
  virtual void read(const MeterContext& context,
                    std::span<const ManagerUnits> managers,
                    std::vector<DeviceSample>& samples) = 0;
};

using DeviceMeterList = std::vector<std::shared_ptr<DeviceMeters>>;

}  // namespace ceems::exporter::energy
