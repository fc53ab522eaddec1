#include "exporter/ebpf/network_class.h"

#include <arpa/inet.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "base/strings.h"

namespace ceems::exporter::ebpf {
namespace {

constexpr std::string_view kOutside = "outside";
constexpr unsigned kIpv4Bits = 32;
constexpr unsigned kIpv6Bits = 128;

std::optional<ebpf_network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  ebpf_network network{};
  unsigned bits = kIpv6Bits;
  if (::inet_pton(AF_INET6, address.c_str(), std::begin(network.address)) != 1) {
    constexpr std::size_t kIpv4At = 12;
    const std::span bytes(network.address);
    if (::inet_pton(AF_INET, address.c_str(), &bytes[kIpv4At]) != 1) {
      return std::nullopt;
    }
    bytes[kIpv4At - 1] = bytes[kIpv4At - 2] = 0xff;
    bits = kIpv4Bits;
  }
  unsigned prefix = bits;
  if (slash != std::string_view::npos) {
    const auto given = parse_int<unsigned>(text.substr(slash + 1));
    if (!given || *given > bits) {
      return std::nullopt;
    }
    prefix = *given;
  }
  network.prefix = prefix + (kIpv6Bits - bits);
  return network;
}

}  // namespace

Result<NetworkClasses> NetworkClasses::parse(const std::vector<std::string>& texts) {
  NetworkClasses classes;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || name.empty() || name == kOutside) {
      return fail(ErrorCode::kInvalidArgument,
                  "'{}': expected NAME=NETWORK[,NETWORK...] with a NAME other than '{}'",
                  printable(text, 128), kOutside);
    }
    auto found = std::ranges::find(classes.names_, name);
    if (found == classes.names_.end()) {
      classes.names_.push_back(name);
      found = std::prev(classes.names_.end());
    }
    const auto number = static_cast<std::uint32_t>(found - classes.names_.begin()) + 1;
    for (const std::string_view part : split(std::string_view(text).substr(equals + 1), ',')) {
      const auto network = parse_network(trim(part));
      if (!network) {
        return fail(ErrorCode::kInvalidArgument, "'{}': '{}' is not a network like 10.1.0.0/16",
                    printable(text, 128), printable(part, 64));
      }
      classes.networks_.emplace_back(*network, number);
    }
  }
  if (classes.networks_.size() > kMaxNetworks) {
    return fail(ErrorCode::kInvalidArgument, "{} networks are too many, at most {} are possible",
                classes.networks_.size(), kMaxNetworks);
  }
  return classes;
}

std::string_view NetworkClasses::name(std::uint32_t number) const {
  return number == 0 || number > names_.size() ? kOutside : std::string_view(names_[number - 1]);
}

}  // namespace ceems::exporter::ebpf
