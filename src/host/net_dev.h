#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// Columns of one direction in /proc/net/dev (net/core/net-procfs.c in Linux): bytes, packets,
/// errors, dropped, fifo; then for receiving frame, compressed, multicast and for transmitting
/// colls, carrier, compressed.
inline constexpr std::size_t kNetDevColumns = 8;
using NetDevColumns = std::array<std::uint64_t, kNetDevColumns>;

struct NetDevice {
  std::string_view name;  ///< points into the text
  NetDevColumns receive{};
  NetDevColumns transmit{};

  bool operator==(const NetDevice&) const = default;
};

/// Appends the devices to `devices` (cleared first; its memory is reused). The first two lines are
/// headings. A name reaches up to the last colon of its line: aliases hold colons themselves.
/// kParse names the first line that is not "name: 16 numbers"; the other lines are in `devices`.
Result<> parse_net_dev(std::string_view text, std::vector<NetDevice>& devices);

}  // namespace ceems::host
