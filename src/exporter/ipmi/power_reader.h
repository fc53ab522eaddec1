#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "exporter/ipmi/dcmi.h"
#include "exporter/ipmi/device.h"
#include "exporter/ipmi/power_command.h"

namespace ceems::exporter::ipmi {

/// Reads power through the device, which is opened again if it disappears. Used by one thread at a
/// time.
class NativePower {
 public:
  NativePower(Device::Open open, std::chrono::milliseconds timeout)
      : device_(std::move(open), timeout) {}

  /// Opens the device unless it is open.
  Result<> open() { return device_.open(); }
  Result<Power> read(const std::stop_token& stop);

 private:
  Device device_;
};

/// The sources of power readings on this node. Each read uses the first one that works.
class PowerReader {
 public:
  /// If both are given, the device comes second, because it had no reading at the start.
  PowerReader(std::unique_ptr<PowerCommand> command, std::unique_ptr<NativePower> native)
      : command_(std::move(command)), native_(std::move(native)) {}

  Result<Power> read(const std::stop_token& stop);

 private:
  std::unique_ptr<PowerCommand> command_;
  std::unique_ptr<NativePower> native_;
};

}  // namespace ceems::exporter::ipmi
