#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/unit_table.h"
#include "exporter/energy/meter/apu_power.h"
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
  /// It does not answer now. Only its name and its holders are set.
  bool silent = false;
};

/// What one unit did on one GPU, or on one instance of a GPU, since the previous reading.
struct DeviceUse {
  std::string manager;
  std::string cgrouphostname;
  std::string uuid;
  std::string device;    ///< uuid of the GPU
  std::string instance;  ///< number of the instance; empty for a whole GPU
  std::string index;
  double seconds = 0;               ///< since the previous reading
  std::optional<double> busy = {};  ///< part of this time in which the unit had work there, 0...1
  std::optional<double> sms = {};   ///< part of the SMs that worked for the unit on average, 0...1
  std::optional<double> memory_bytes = {};
};

/// Devices whose energy is split for each device among its holders. Devices may come and go. Used
/// by one thread at a time.
class DeviceMeters {
 public:
  virtual ~DeviceMeters() = default;
  /// Appends the devices that have a value now, and those that had one and are silent. Never
  /// blocks.
  virtual void read(const MeterContext& context,
                    std::span<const ManagerUnits> managers,
                    std::vector<DeviceSample>& samples) = 0;
  /// Appends what units did if there is a new reading; otherwise returns false. Never blocks.
  virtual bool read_use(std::span<const ManagerUnits> managers, std::vector<DeviceUse>& uses) {
    static_cast<void>(managers);
    static_cast<void>(uses);
    return false;
  }
  /// What the meters of the host count. Called at most once, before read().
  virtual void set_host(const SocketParts& parts) { static_cast<void>(parts); }
  /// Names of the models that are present, each once; empty while they are not known.
  [[nodiscard]] virtual std::string models() const { return {}; }
};

using DeviceMeterList = std::vector<std::shared_ptr<DeviceMeters>>;

}  // namespace ceems::exporter::energy
