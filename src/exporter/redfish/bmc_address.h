#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "exporter/ipmi/conversation.h"

namespace ceems::exporter::redfish {

/// The name of an address such as "192.0.2.1" by reverse DNS. An error if there is none.
using NameOf = std::function<Result<std::string>(const std::string& address)>;

/// The address of this node's BMC, read through IPMI (LAN channel 1).
Result<std::string> find_bmc_address(ipmi::Port& port, std::chrono::milliseconds timeout);

/// The name of the address without a trailing dot, or the address if it has no name or the lookup
/// fails.
std::string bmc_name(const std::string& address, const NameOf& name_of);

/// A NameOf that uses the system's resolver, for a separate thread: silent DNS servers cost a
/// second each, and other name services may take any time.
Result<std::string> name_by_dns(const std::string& address);

}  // namespace ceems::exporter::redfish
