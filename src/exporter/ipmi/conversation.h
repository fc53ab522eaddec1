#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::ipmi {

using Bytes = std::vector<std::uint8_t>;

/// A request to the BMC of this node (IPMI 2.0 §5.1).
struct Request {
  std::uint8_t netfn = 0;
  std::uint8_t command = 0;
  Bytes data;
};

/// Something that came from the device.
struct Message {
  bool response = false;  ///< an answer to a request; else an event or a foreign command
  long id = 0;            ///< of the request it answers
  std::uint8_t netfn = 0;
  std::uint8_t command = 0;
  Bytes data;  ///< of an answer: byte 0 is the completion code
};

/// The way to the BMC, e.g. the kernel's OpenIPMI device. Used by one thread at a time.
class Port {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Port() = default;
  virtual Result<> send(const Request& request, long id) = 0;
  /// The next message. kTimeout at the deadline; kUnavailable when stopped or when the device is
  /// gone.
  virtual Result<Message> receive(Deadline deadline, const std::stop_token& stop) = 0;
};

/// Pairs requests with their answers by the message id: whatever else comes, such as the late
/// answer to a request that was given up, is thrown away. Used by one thread at a time.
class Conversation {
 public:
  /// The port outlives the object.
  explicit Conversation(Port& port) : port_(port) {}

  /// The data of the answer, its first byte being the completion code; at least that byte.
  Result<Bytes> ask(const Request& request,
                    std::chrono::milliseconds timeout,
                    const std::stop_token& stop = {});

 private:
  Port& port_;
  long last_id_ = 0;
};

}  // namespace ceems::exporter::ipmi
