// The Redfish configuration: it never crashes the parser, and what is accepted can be used.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "exporter/redfish/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace redfish = ceems::exporter::redfish;
  const auto config = redfish::parse_config(
      std::string_view(reinterpret_cast<const char*>(data), size), "redfish.yml",
      {.node_name = "n1", .environment = [](const std::string&) { return std::string(); }});
  if (!config) {
    return 0;
  }
  // Without a hostname, the exporter still has to find the address of the BMC.
  const bool has_url = !config->hostname.empty() || !config->external_url.empty();
  if (config->timeout.count() <= 0 || (has_url && config->base_url().ends_with('/')) ||
      !config->bmc_url().starts_with("http")) {
    std::abort();
  }
  return 0;
}
