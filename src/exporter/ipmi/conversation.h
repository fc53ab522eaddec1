#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter::ipmi {

using Bytes = std::vector<std::uint8_t>;

/// A request to the BMC of this node (IPMI 2.0, section 5.1).
struct Request {
  std::uint8_t netfn = 0;
  std::uint8_t command = 0;
  Bytes data;
  std::uint8_t lun = 0;  ///< logical unit of the BMC, 0 to 3
};

/// A message from the device.
struct Message {
  bool response = false;  ///< an answer to a request; otherwise an event or a command
  long id = 0;            ///< id of the request that it answers
  std::uint8_t netfn = 0;
  std::uint8_t command = 0;
  Bytes data;  ///< byte 0 of an answer is the completion code
};

/// A connection to the BMC, such as the kernel's OpenIPMI device. Used by one thread at a time.
class Port {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Port() = default;
  virtual Result<> send(const Request& request, long id) = 0;
  /// The next message. kTimeout at the deadline; kUnavailable after a stop request or if the device
  /// is gone.
  virtual Result<Message> receive(Deadline deadline, const std::stop_token& stop) = 0;
};

/// Matches answers to requests by the message id. Other messages, such as the late answer to a
/// request that timed out, are discarded. Used by one thread at a time.
class Conversation {
 public:
  /// The port must outlive the object.
  explicit Conversation(Port& port) : port_(port) {}

  /// The data of the answer. It has at least one byte, and the first one is the completion code.
  Result<Bytes> ask(const Request& request,
                    std::chrono::milliseconds timeout,
                    const std::stop_token& stop = {});

 private:
  Port& port_;
  long last_id_ = 0;
};

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

/// Opens a device file; open_privileged() in the program.
using OpenDevice = std::function<Result<UniqueFd>(const char* path)>;

/// Opens the kernel's OpenIPMI device number `number` (Documentation/driver-api/ipmi.rst): the
/// first of DEV/ipmiN, DEV/ipmi/N and DEV/ipmidev/N that exists. The descriptor stays open, so that
/// privileges can be dropped afterwards. kNotFound if there is none; kPermissionDenied;
/// kUnavailable if it is not an IPMI device.
Result<std::unique_ptr<Port>> open_ipmi(const std::filesystem::path& dev,
                                        long number,
                                        const OpenDevice& open);

}  // namespace ceems::exporter::ipmi
