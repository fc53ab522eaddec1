#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "host/infiniband.h"
#include "os/privileges.h"

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

/// Turns on counting of queue pairs by process on the given ports, and turns it off again at the
/// end on those where it was off. Reader and clock must outlive it. Not thread-safe.
class Counting {
 public:
  /// Pause before a port that refused is tried again.
  static constexpr auto kRetry = std::chrono::minutes(10);

  Counting(Reader& reader, const Clock& clock) : reader_(reader), clock_(clock) {}
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();

  /// Ports that can count, from Reader::modes().
  void set_modes(const std::vector<LinkMode>& modes);
  /// Whether there are ports that can count.
  [[nodiscard]] bool possible() const { return !links_.empty(); }
  /// Turns counting on where it is off.
  void switch_on();

 private:
  struct Link {
    bool on = false;
    bool ours = false;
    bool refused = false;
    Clock::SteadyTime next{};
  };

  Reader& reader_;
  const Clock& clock_;
  std::map<std::string, Link> links_;
};

/// A counter of a port that has a series.
struct PortCounter {
  std::string_view series;  ///< name of the metric without "ceems_rdma_"
  std::string_view file;    ///< below the directory of the port
  std::uint64_t factor;
  std::string_view help;
};

inline constexpr std::array<PortCounter, 9> kPortCounters{{
    {"port_constraint_errors_received_total", "counters/port_rcv_constraint_errors", 1,
     "Number of packets received on the switch physical port that are discarded"},
    {"port_constraint_errors_transmitted_total", "counters/port_xmit_constraint_errors", 1,
     "Number of packets not transmitted from the switch physical port"},
    {"port_data_received_bytes_total", "counters/port_rcv_data", host::kInfinibandDataUnitBytes,
     "Number of data octets received on all links"},
    {"port_data_transmitted_bytes_total", "counters/port_xmit_data", host::kInfinibandDataUnitBytes,
     "Number of data octets transmitted on all links"},
    {"port_discards_received_total", "counters/port_rcv_discards", 1,
     "Number of inbound packets discarded by the port because the port is down or congested"},
    {"port_discards_transmitted_total", "counters/port_xmit_discards", 1,
     "Number of outbound packets discarded by the port because the port is down or congested"},
    {"port_errors_received_total", "counters/port_rcv_errors", 1,
     "Number of packets containing an error that were received on this port"},
    {"port_packets_received_total", "counters/port_rcv_packets", 1,
     "Number of packets received on all VLs by this port (including errors)"},
    {"port_packets_transmitted_total", "counters/port_xmit_packets", 1,
     "Number of packets transmitted on all VLs from this port (including errors)"},
}};

/// The values of a port. A counter that is absent or unreadable is 0 and has no series.
struct PortValues {
  std::string device;
  std::string port;
  std::uint64_t state = 0;
  std::array<std::uint64_t, kPortCounters.size()> counters{};
};

/// All ports of the machine. kNoData: it has no adapters.
Result<std::vector<PortValues>> read_ports(const std::string& sys);

}  // namespace ceems::exporter::rdma
