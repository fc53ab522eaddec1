#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::ipmi {

/// An IPMI device that is opened again after it disappeared. Used by one thread at a time.
class Device {
 public:
  using Open = std::function<Result<std::unique_ptr<Port>>()>;

  /// `timeout` is that of one exchange.
  Device(Open open, std::chrono::milliseconds timeout)
      : open_(std::move(open)), timeout_(timeout) {}

  /// Opens the device unless it is open.
  Result<> open();
  /// The data of the answer, with the completion code first. Opens the device if needed. kTimeout:
  /// the BMC does not answer; other errors: the device is missing or gone.
  Result<Bytes> ask(const Request& request, const std::stop_token& stop);

 private:
  Open open_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Port> port_;
  std::unique_ptr<Conversation> conversation_;  // with port_
};

}  // namespace ceems::exporter::ipmi
