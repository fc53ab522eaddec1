#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/dcmi.h"
#include "exporter/ipmi/power_command.h"

namespace ceems::exporter::ipmi {

/// Reads power through the device, which is opened again if it disappears. Used by one thread at a
/// time.
class NativePower {
 public:
  using Open = std::function<Result<std::unique_ptr<Port>>()>;

  NativePower(Open open, std::chrono::milliseconds timeout)
      : open_(std::move(open)), timeout_(timeout) {}

  /// Opens the device unless it is open.
  Result<> open();
  Result<Power> read(const std::stop_token& stop);

 private:
  Open open_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<Conversation> conversation_;  // with port_
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
