#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::libvirt {

/// The parts of a domain's definition that are used.
struct Domain {
  std::string uuid;
  /// Devices of the host that are passed to the domain, in the order of the file, once per entry.
  std::vector<std::string> pci_addresses = {};  ///< "0000:3b:00.0"
  std::vector<std::string> mdevs = {};          ///< UUIDs of mediated devices, lower case
};

/// Maximum size of a definition. Definitions of real VMs have about 10 KiB.
inline constexpr std::size_t kMaxDomainXml = std::size_t{4} << 20U;

/// Parses a domain's XML (https://libvirt.org/formatdomain.html): `uuid`, and `devices/hostdev` of
/// types pci and mdev. In the file that libvirt keeps of a running domain, they are in the element
/// `domain` of `domstatus`. Otherwise the name of the root element does not matter. Entities that
/// the document declares are not expanded. A hostdev that cannot be parsed is left out. kParse: not
/// XML, no UUID of harmless characters, or more elements than any VM has.
Result<Domain> parse_domain_xml(std::string_view text);

}  // namespace ceems::exporter::libvirt
