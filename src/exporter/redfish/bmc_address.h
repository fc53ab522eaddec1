#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::redfish {

/// Name of an address by reverse DNS, e.g. "192.0.2.1"; an error where there is none.
using NameOf = std::function<Result<std::string>(const std::string& address)>;

/// Where the BMC of this node is in the network: its address by IPMI (LAN channel 1), then its name
/// by DNS, without a dot at the end; the address where it has no name.
Result<std::string> find_bmc_address(ipmi::Port& port, const NameOf& name_of);

/// NameOf by the resolver of the system; may take as long as that likes.
Result<std::string> name_by_dns(const std::string& address);

}  // namespace ceems::exporter::redfish
