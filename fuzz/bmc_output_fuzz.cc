// Output of IPMI tools and raw responses of a BMC: never a crash, never an invalid power.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "exporter/ipmi/dcmi.h"
#include "exporter/ipmi/power_command.h"

namespace {

void check(const ceems::Result<ceems::exporter::ipmi::Power>& power) {
  if (!power) {
    return;
  }
  for (const double watts : {power->current, power->minimum, power->maximum, power->average}) {
    if (!std::isfinite(watts) || watts < 0) {
      std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace ipmi = ceems::exporter::ipmi;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(ipmi::parse_power_output(ipmi::Format::kText, text));
  check(ipmi::parse_power_output(ipmi::Format::kCapmc, text));
  check(ipmi::decode_power_reading(std::span(data, size)));
  static_cast<void>(ipmi::decode_lan_address(std::span(data, size)));
  return 0;
}
