#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/redfish/bmc_address.h"
#include "exporter/redfish/config.h"

namespace ceems::exporter {

struct RedfishOptions {
  std::string config_file;
  bool expand_environment = false;
  redfish::ConfigContext context;
  /// Address of this node's BMC, for a configuration without one; with the start's privileges.
  std::function<Result<std::string>(std::chrono::milliseconds timeout)> find_bmc;
  /// Its name, which certificates are for; asked for by the worker, as it may take long.
  redfish::NameOf name_of;
  /// See SlowSourceOptions.
  std::chrono::milliseconds period{5000};
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds fresh_enough{1000};
};

/// Power of the chassis that a Redfish service knows. An error ends the start: a configuration that
/// is wrong. A service that does not answer is none, it is asked again.
Result<std::unique_ptr<Collector>> make_redfish_collector(const CollectorContext& context,
                                                          const RedfishOptions& options);

}  // namespace ceems::exporter
