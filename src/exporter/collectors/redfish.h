#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/redfish/config.h"
#include "exporter/redfish/reader.h"

namespace ceems::exporter {

struct RedfishOptions {
  std::string config_file;
  bool expand_environment = false;
  redfish::ConfigContext context;
  /// Returns the address of this node's BMC, for a configuration without one. Called while the
  /// program has the privileges of its start.
  std::function<Result<std::string>(std::chrono::milliseconds timeout)> find_bmc;
  /// Returns the BMC's name, for which certificates are issued. Called by the thread, because it
  /// may take long.
  redfish::NameOf name_of;
  /// See SlowSourceOptions.
  std::chrono::milliseconds period{5000};
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds fresh_enough{1000};
};

/// Power of the chassis that a Redfish service reports. An invalid configuration is an error and
/// ends the program. A service that does not answer is not an error; it is tried again.
Result<std::unique_ptr<Collector>> make_redfish_collector(const CollectorContext& context,
                                                          const RedfishOptions& options);

}  // namespace ceems::exporter
