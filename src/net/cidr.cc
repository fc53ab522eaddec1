#include "net/cidr.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/strings.h"

namespace ceems::net {
namespace {

using Address = std::array<std::uint8_t, 16>;

constexpr unsigned kMapped = 96;  // bits before an IPv4 address in its IPv6 form
constexpr unsigned kAllBits = 128;
constexpr Address kMappedNetwork = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0};
constexpr std::size_t kMaxLength = 64;  // of an address as text

struct Parsed {
  Address bytes{};
  bool v4 = false;
};

std::optional<Parsed> parse_address(std::string_view text) {
  if (text.size() > kMaxLength) {
    return std::nullopt;
  }
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) {
    return std::nullopt;
  }
  Parsed parsed;
  in_addr v4{};
  if (::inet_pton(AF_INET, copy.c_str(), &v4) == 1) {
    parsed.v4 = true;
    parsed.bytes[10] = parsed.bytes[11] = 0xFF;
    std::memcpy(parsed.bytes.data() + 12, &v4, sizeof(v4));
    return parsed;
  }
  in6_addr v6{};
  if (::inet_pton(AF_INET6, copy.c_str(), &v6) == 1) {
    std::memcpy(parsed.bytes.data(), &v6, sizeof(v6));
    return parsed;
  }
  return std::nullopt;
}

/// The address with all but its first `bits` set to 0.
Address network_of(Address address, unsigned bits) {
  for (unsigned i = 0; i < address.size(); ++i) {
    const auto kept =
        static_cast<unsigned>(std::clamp(static_cast<int>(bits) - static_cast<int>(i * 8), 0, 8));
    address[i] = static_cast<std::uint8_t>(address[i] & (0xFFU << (8 - kept)));
  }
  return address;
}

}  // namespace

Result<Cidr> Cidr::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) {
    return fail(ErrorCode::kInvalidArgument, "expected an address or a range such as 192.0.2.0/24");
  }
  Cidr cidr;
  cidr.bits_ = kAllBits;
  if (slash != std::string_view::npos) {
    const unsigned max_bits = address->v4 ? kAllBits - kMapped : kAllBits;
    const auto bits = parse_int<unsigned>(text.substr(slash + 1));
    if (!bits || *bits > max_bits) {
      return fail(ErrorCode::kInvalidArgument,
                  "expected a prefix length from 0 to {} after the slash", max_bits);
    }
    cidr.bits_ = address->v4 ? *bits + kMapped : *bits;
  }
  cidr.network_ = network_of(address->bytes, cidr.bits_);
  if (cidr.network_ != address->bytes) {
    return fail(ErrorCode::kInvalidArgument, "expected only zero bits after the prefix of {} bits",
                text.substr(slash + 1));
  }
  return cidr;
}

bool Cidr::contains(std::string_view address) const {
  const auto parsed = parse_address(address);
  return parsed && network_of(parsed->bytes, bits_) == network_;
}

std::optional<std::string> canonical_address(std::string_view text) {
  const auto parsed = parse_address(text.substr(0, text.find('%')));
  if (!parsed) {
    return std::nullopt;
  }
  const bool v4 = network_of(parsed->bytes, kMapped) == kMappedNetwork;
  std::array<char, INET6_ADDRSTRLEN> out{};
  ::inet_ntop(v4 ? AF_INET : AF_INET6, parsed->bytes.data() + (v4 ? kMapped / 8 : 0), out.data(),
              out.size());
  return out.data();
}

bool TrustedPeers::contains(std::string_view address) const {
  return address == "unix" || std::ranges::any_of(ranges, [address](const Cidr& range) {
           return range.contains(address);
         });
}

std::string client_address(const TrustedPeers& peers,
                           std::string_view peer,
                           std::string_view forwarded) {
  if (!peers.contains(peer)) {
    return std::string(peer);
  }
  while (!forwarded.empty()) {
    const auto comma = forwarded.rfind(',');
    const std::string_view last =
        trim(comma == std::string_view::npos ? forwarded : forwarded.substr(comma + 1));
    forwarded = comma == std::string_view::npos ? std::string_view() : forwarded.substr(0, comma);
    if (!parse_address(last)) {
      break;
    }
    if (!peers.contains(last)) {
      return std::string(last);
    }
  }
  return std::string(peer);
}

}  // namespace ceems::net
