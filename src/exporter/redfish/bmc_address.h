#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::redfish {

/// Name of an address by reverse DNS, e.g. "192.0.2.1"; an error where there is none.
using NameOf = std::function<Result<std::string>(const std::string& address)>;

/// Where the BMC of this node is in the network: its address by IPMI (LAN channel 1).
Result<std::string> find_bmc_address(ipmi::Port& port, std::chrono::milliseconds timeout);

/// The name of the address without a dot at the end; the address where it has none or nobody can be
/// asked for it.
std::string bmc_name(const std::string& address, const NameOf& name_of);

/// NameOf by the resolver of the system, for a worker: DNS servers that are silent cost a second
/// each, other name services take as long as they like.
Result<std::string> name_by_dns(const std::string& address);

}  // namespace ceems::exporter::redfish
