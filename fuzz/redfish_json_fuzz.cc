// Documents of a Redfish service: never a crash, links stay on the service, power is finite.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/redfish/documents.h"

namespace {

void check_link(std::string_view link) {
  if (!link.empty() && (!link.starts_with('/') || link.starts_with("//") ||
                        link.find_first_of("\r\n ") != std::string_view::npos)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace redfish = ceems::exporter::redfish;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto root = redfish::parse_service_root(text)) {
    check_link(root->chassis);
    check_link(root->sessions);
  }
  if (const auto collection = redfish::parse_collection(text)) {
    for (const auto& member : collection->members) {
      check_link(member);
    }
    check_link(collection->next);
  }
  if (const auto chassis = redfish::parse_chassis(text, "/redfish/v1/Chassis/1")) {
    check_link(chassis->power);
    check_link(chassis->environment);
    check_link(chassis->power_subsystem);
    check_link(chassis->sensors);
  }
  for (const auto& watts : {redfish::parse_power(text), redfish::parse_environment(text),
                            redfish::parse_power_sensor(text)}) {
    if (watts &&
        !std::isfinite(watts->current + watts->minimum + watts->maximum + watts->average)) {
      std::abort();
    }
  }
  if (const auto watts = redfish::parse_supply_metrics(text); watts && !std::isfinite(*watts)) {
    std::abort();
  }
  if (const auto link = redfish::parse_link(text, "PowerSupplies")) {
    check_link(*link);
  }
  static_cast<void>(redfish::may_be_power_sensor(text));
  check_link(redfish::link_path(text));
  return 0;
}
