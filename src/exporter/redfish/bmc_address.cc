#include "exporter/redfish/bmc_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "exporter/ipmi/dcmi.h"

namespace ceems::exporter::redfish {
namespace {

constexpr std::chrono::milliseconds kTimeout{2000};

}  // namespace

Result<std::string> find_bmc_address(ipmi::Port& port, const NameOf& name_of) {
  const auto answer = ipmi::Conversation(port).ask(ipmi::lan_address_request(), kTimeout);
  if (!answer) {
    return fail(answer.error());
  }
  auto address = ipmi::decode_lan_address(*answer);
  if (!address) {
    return address;
  }
  auto name = name_of(*address);
  if (!name) {
    return address;
  }
  while (name->ends_with('.')) {
    name->pop_back();
  }
  return name->empty() ? address : name;
}

Result<std::string> name_by_dns(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) {
    return fail(ErrorCode::kInvalidArgument, "{} is no IPv4 address", address);
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
