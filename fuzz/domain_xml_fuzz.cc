// Definitions of libvirt domains.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "exporter/libvirt/domains.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto domain = ceems::exporter::libvirt::parse_domain_xml(text);
  if (domain) {
    CEEMS_CHECK(!domain->uuid.empty() && domain->uuid.size() <= 96);
    CEEMS_CHECK(domain->uuid.find_first_of("\"\n\\ ") == std::string::npos);
    for (const auto& address : domain->pci_addresses) {
      CEEMS_CHECK(address.size() >= 12 && address.size() <= 16);
    }
  }
  return 0;
}
