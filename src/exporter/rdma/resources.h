#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::rdma {

/// Names of the hardware counters of queue pairs that have a series. The mlx5 driver provides them.
inline constexpr std::array<std::string_view, 11> kQpCounters{
    "rx_write_requests",          "rx_read_requests",
    "rx_atomic_requests",         "req_cqe_error",
    "req_cqe_flush_error",        "req_remote_access_errors",
    "req_remote_invalid_request", "resp_cqe_error",
    "resp_cqe_flush_error",       "resp_local_length_error",
    "resp_remote_access_errors"};
using QpCounterValues = std::array<std::uint64_t, kQpCounters.size()>;

/// Objects of one type that a process holds: memory regions (size in bytes) or completion queues
/// (size in entries).
struct Objects {
  std::string device;
  int pid = 0;
  std::uint64_t count = 0;
  std::uint64_t size = 0;
};

/// Queue pairs of a process on a port.
struct QueuePairs {
  std::string device;
  std::string port;  ///< decimal; empty if it has none
  int pid = 0;
  std::uint64_t count = 0;
};

/// Hardware counters of the queue pairs of a process.
struct QpCounters {
  std::string device;
  std::string port;
  int pid = 0;
  QpCounterValues values{};
};

/// A port and whether its queue pairs are counted by process.
struct LinkMode {
  std::string link;  ///< "mlx5_0/1"
  bool on = false;
};

/// The RDMA objects that processes hold. A part is absent if it could not be read.
struct Resources {
  std::optional<std::vector<Objects>> regions;
  std::optional<std::vector<Objects>> queues;
  std::optional<std::vector<QueuePairs>> pairs;
  std::optional<std::vector<QpCounters>> counters;
};

/// The objects of one unit's processes. Device and port are taken from the first object. Objects on
/// other adapters are included, as in the reference.
struct UnitObjects {
  std::string device;
  std::uint64_t count = 0;
  std::uint64_t size = 0;
};
struct UnitPairs {
  std::string device;
  std::string port;
  std::uint64_t count = 0;
  QpCounterValues counters{};  ///< sums over its processes
};
struct UnitResources {
  std::map<std::string, UnitObjects> regions;  ///< by uuid
  std::map<std::string, UnitObjects> queues;
  std::map<std::string, UnitPairs> pairs;
};

/// Sums by unit. `unit_of` returns the uuid of a process's unit, or an empty text.
UnitResources by_unit(const Resources& resources,
                      const std::function<std::string_view(int pid)>& unit_of);

}  // namespace ceems::exporter::rdma
