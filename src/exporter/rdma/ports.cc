#include "exporter/rdma/ports.h"

namespace ceems::exporter::rdma {

Result<std::vector<PortValues>> read_ports(const std::string& sys) {
  CEEMS_TRY(devices, host::read_infiniband(sys));
  std::vector<PortValues> ports;
  for (const host::InfinibandDevice& device : devices) {
    for (const host::InfinibandPort& port : device.ports) {
      PortValues values{device.name, port.number, port.state.value_or(0)};
      for (std::size_t i = 0; i < kPortCounters.size(); ++i) {
        const auto counter = host::read_infiniband_counter(port, kPortCounters.at(i).file);
        const auto value = counter ? *counter : std::nullopt;
        if (value) {
          values.counters.at(i) = *value * kPortCounters.at(i).factor;
        }
      }
      ports.push_back(std::move(values));
    }
  }
  return ports;
}

}  // namespace ceems::exporter::rdma
