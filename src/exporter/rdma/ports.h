#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/infiniband.h"

namespace ceems::exporter::rdma {

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
