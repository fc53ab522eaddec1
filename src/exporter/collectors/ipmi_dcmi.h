#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/sensor_reader.h"
#include "os/command.h"

namespace ceems::exporter {

struct IpmiDcmiOptions {
  std::string command;                 ///< empty: the device or else the first installed tool
  bool force_native = false;           ///< use the device and nothing else
  ipmi::SensorSelection sensors = {};  ///< read through the device
  bool test_mode = false;              ///< commands run as the exporter's own user only
  bool tools_first = false;  ///< --path.sysfs is a copy, so the device may be that of another node
  std::string search_path;   ///< the exporter's PATH
  /// Opens the IPMI device. Called again when the device disappears.
  std::function<Result<std::unique_ptr<ipmi::Port>>()> open_device;
  os::CommandRunner* runner = nullptr;  ///< outlives the collector
  bool (*may_become_root)() = nullptr;  ///< see ipmi::PowerCommandOptions
  /// Time limit of one exchange with the device.
  std::chrono::milliseconds device_timeout{5000};
  /// How long a scrape may wait; see SlowSourceOptions.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds fresh_enough{1000};
};

/// Power of the node from its BMC through DCMI, read from the kernel's device or by a tool, and its
/// sensors, read from the device. An error ends the program: force_native without a device.
Result<std::unique_ptr<Collector>> make_ipmi_dcmi_collector(const CollectorContext& context,
                                                            const IpmiDcmiOptions& options);

}  // namespace ceems::exporter
