#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::access {

/// A range of addresses: "192.0.2.0/24", "2001:db8::/32", or one address. IPv4 addresses are those
/// that are mapped into IPv6 (RFC 4291 §2.5.5.2) as well, as a socket for both families shows them.
class Cidr {
 public:
  /// kInvalidArgument for anything else, host bits that are set included (a range that says more
  /// than it means is a mistake).
  static Result<Cidr> parse(std::string_view text);

  /// False for texts that are no address.
  [[nodiscard]] bool contains(std::string_view address) const;

 private:
  std::array<std::uint8_t, 16> network_{};
  unsigned bits_ = 0;  ///< of the network, from 0 to 128
};

/// Where requests come from that may name their user.
struct TrustedPeers {
  std::vector<Cidr> ranges = {};

  /// `address` as in net::Request::remote_address. Unix sockets ("unix") are guarded by the file
  /// system and always are trusted.
  [[nodiscard]] bool contains(std::string_view address) const;
};

/// Who sent the request: the peer or, when the peer is a trusted proxy, the last address in
/// X-Forwarded-For (RFC 7239 §7.4 has the reasons) that is none. `forwarded` is that header's
/// value.
std::string client_address(const TrustedPeers& peers,
                           std::string_view peer,
                           std::string_view forwarded);

}  // namespace ceems::access
