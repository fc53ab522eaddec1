#include "exporter/redfish/bmc_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::redfish {

Result<std::string> find_bmc_address(ipmi::Port& port, std::chrono::milliseconds timeout) {
  CEEMS_TRY(answer, ipmi::Conversation(port).ask(ipmi::lan_address_request(), timeout));
  return ipmi::decode_lan_address(answer);
}

std::string bmc_name(const std::string& address, const NameOf& name_of) {
  const auto found = name_of(address);
  std::string name = found ? *found : std::string();
  while (name.ends_with('.')) {
    name.pop_back();
  }
  return name.empty() ? address : name;
}

Result<std::string> name_by_dns(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) {
    return fail(ErrorCode::kInvalidArgument, "expected an IPv4 address, got {}", address);
  }
  // The resolver's state belongs to this thread. Without these settings a silent server costs 10 s.
  if (::res_init() == 0) {
    _res.retrans = 1;
    _res.retry = 1;
  }
  std::array<char, NI_MAXHOST> name{};
  const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&place), sizeof(place),
                                  name.data(), name.size(), nullptr, 0, NI_NAMEREQD);
  if (error != 0) {
    return fail(ErrorCode::kNotFound, "{}: {}", address, ::gai_strerror(error));
  }
  return std::string(name.data());
}

}  // namespace ceems::exporter::redfish
