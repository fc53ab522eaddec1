#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::net {

/// A range of addresses: "192.0.2.0/24", "2001:db8::/32", or one address. An IPv4 address also
/// matches in its IPv6 form (RFC 4291 §2.5.5.2), which a socket for both families shows.
class Cidr {
 public:
  /// kInvalidArgument for any other text, and if host bits are set, because such a range is
  /// probably a mistake.
  static Result<Cidr> parse(std::string_view text);

  /// False if the text is not an address.
  [[nodiscard]] bool contains(std::string_view address) const;

 private:
  std::array<std::uint8_t, 16> network_{};
  unsigned bits_ = 0;  ///< length of the prefix, 0 to 128 (IPv4: in the IPv6 form)
};

/// The usual spelling of an address, which Request::remote_address also has: without leading zeros
/// or a scope, IPv4 in its own form. Nothing if the text is not an address.
std::optional<std::string> canonical_address(std::string_view text);

/// The peers that are trusted to name the user of a request.
struct TrustedPeers {
  std::vector<Cidr> ranges = {};

  /// `address` is net::Request::remote_address. Unix sockets ("unix") are protected by the file
  /// system and always trusted.
  [[nodiscard]] bool contains(std::string_view address) const;
};

/// The address that sent a request: the peer, or, if the peer is a trusted proxy, the last address
/// in X-Forwarded-For that is not one (RFC 7239 §7.4 gives the reasons). `forwarded` is the value
/// of that header.
std::string client_address(const TrustedPeers& peers,
                           std::string_view peer,
                           std::string_view forwarded);

}  // namespace ceems::net
