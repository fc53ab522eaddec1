#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/rdma/resources.h"
#include "os/privileges.h"

namespace ceems::exporter::rdma {

/// Asks the kernel what processes hold of RDMA adapters. Not thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Ports of adapters that can count queue pairs by process, and whether they do. kTimeout: not
  /// known within the limit.
  virtual Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                              std::stop_token stop) = 0;
  /// `counters`: the hardware counters of queue pairs are wanted, too. A part that cannot be read
  /// is absent; an error: none can.
  virtual Result<Resources> read(bool counters, std::stop_token stop) = 0;
  /// Makes queue pairs of a port ("mlx5_0/1") be counted by process and type, or not any more.
  virtual Result<> set_counting(const std::string& link, bool on) = 0;
  /// What set_counting() raises.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const = 0;
};

}  // namespace ceems::exporter::rdma
