#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {

/// Energy of one interval by domain.
struct Account::Interval {
  double seconds = 0;
  std::array<double, kDomainCount> joules{};  // of sources that have a value; kNode: of `wall`
  std::array<double, kDomainCount> device_joules{};  // of devices
  double known_joules = 0;                           // package + dram + gpu, devices included
  bool known_source = false;        // a source of these has a value and has delivered energy before
  std::optional<std::size_t> wall;  // index of the source that determines the node's energy
  double utilisation = std::numeric_limits<double>::quiet_NaN();
  Timing timing;
};

}  // namespace ceems::exporter::energy
