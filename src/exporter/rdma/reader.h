#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/rdma/resources.h"
#include "os/privileges.h"

namespace ceems::exporter::rdma {

/// Reads from the kernel which RDMA objects processes hold. Not thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Ports of adapters that can count queue pairs by process, and whether they do. kTimeout: no
  /// answer within the limit.
  virtual Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                              std::stop_token stop) = 0;
  /// With `counters` also reads the hardware counters of queue pairs. A part that cannot be read is
  /// absent. It is an error if none can be read.
  virtual Result<Resources> read(bool counters, std::stop_token stop) = 0;
  /// Turns counting by process and type for the queue pairs of a port ("mlx5_0/1") on or off.
  virtual Result<> set_counting(const std::string& link, bool on) = 0;
  /// Capabilities that set_counting() raises.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const = 0;
};

}  // namespace ceems::exporter::rdma
