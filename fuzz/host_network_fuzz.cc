// /proc/net/dev, and state, rate and counter files of InfiniBand ports.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "host/infiniband.h"
#include "host/net_dev.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ceems::host::NetDevice> devices;
  static_cast<void>(ceems::host::parse_net_dev(text, devices).has_value());
  for (const ceems::host::NetDevice& device : devices) {
    if (device.name.empty() || device.name.data() < text.data() ||
        device.name.data() + device.name.size() > text.data() + text.size()) {
      std::abort();
    }
  }
  static_cast<void>(ceems::host::parse_infiniband_state(text).has_value());
  static_cast<void>(ceems::host::parse_infiniband_counter(text).has_value());
  if (const auto rate = ceems::host::parse_infiniband_rate(text);
      rate && *rate > 1'000'000'000'000'000'000U) {
    std::abort();
  }
  return 0;
}
