#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// The columns of one direction in /proc/net/dev (net/core/net-procfs.c in Linux): bytes, packets,
/// errors, dropped, fifo; then frame, compressed, multicast for receive, or colls, carrier,
/// compressed for transmit.
inline constexpr std::size_t kNetDevColumns = 8;
using NetDevColumns = std::array<std::uint64_t, kNetDevColumns>;

struct NetDevice {
  std::string_view name;  ///< points into the text
  NetDevColumns receive{};
  NetDevColumns transmit{};

  bool operator==(const NetDevice&) const = default;
};

/// Replaces the content of `devices`, whose memory is reused. The first two lines are headings. A
/// name extends to the last colon of its line, because aliases contain colons themselves. kParse
/// quotes the first line that is not "name: 16 numbers"; `devices` then holds all other lines.
Result<> parse_net_dev(std::string_view text, std::vector<NetDevice>& devices);

}  // namespace ceems::host
