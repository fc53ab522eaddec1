#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/redfish/config.h"

namespace ceems::exporter {

struct PduOptions {
  std::string config_file;
  redfish::ConfigContext context;
  /// See SlowSourceOptions. A unit has dozens of outlets, which are requested one by one.
  std::chrono::milliseconds period{30'000};
};

/// Power and energy of nodes at the outlets of power distribution units. An invalid configuration
/// is an error and ends the program; a unit that does not answer is tried again.
Result<std::unique_ptr<Collector>> make_pdu_collector(const CollectorContext& context,
                                                      const PduOptions& options);

}  // namespace ceems::exporter
