#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/layout.h"

namespace ceems::exporter::ebpf {

/// Networks that a site names, e.g. "storage". Traffic to any other address is "outside".
class NetworkClasses {
 public:
  static constexpr std::size_t kMaxNetworks = 1024;

  /// From texts like "storage=10.1.0.0/16,fd00:1::/64". A name may be repeated; the longest prefix
  /// decides. kInvalidArgument names the text and what is wrong with it.
  static Result<NetworkClasses> parse(const std::vector<std::string>& texts);

  [[nodiscard]] bool empty() const { return names_.empty(); }
  /// The name of a number; "outside" for 0.
  [[nodiscard]] std::string_view name(std::uint32_t number) const;
  /// The networks with the number of their class, which is at least 1.
  [[nodiscard]] const std::vector<std::pair<ebpf_network, std::uint32_t>>& networks() const {
    return networks_;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::pair<ebpf_network, std::uint32_t>> networks_;
};

}  // namespace ceems::exporter::ebpf
