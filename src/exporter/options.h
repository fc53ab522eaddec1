#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/alloy_targets.h"
#include "exporter/collector.h"
#include "exporter/routes.h"
#include "net/server/server.h"

namespace ceems::exporter {

/// Connections use at most one quarter of the files that may be open. The rest is for files of
/// units and of the node, which are opened at each scrape.
constexpr std::size_t kConnectionFileShare = 4;

/// Values of the flags that belong to no collector (docs/exporter/flags.md).
struct Options {
  bool empty_hostname_label = false;
  std::string sysfs = "/sys";
  std::string procfs = "/proc";
  std::string cgroupfs = "/sys/fs/cgroup";
  std::vector<std::string> listen_addresses{":9010"};
  std::string web_config_file;
  AlloyTargetOptions alloy_targets;
  std::string telemetry_path = "/metrics";
  std::string targets_path = "/alloy-targets";
  bool disable_exporter_metrics = false;
  long max_requests = 40;
  bool debug_server = false;
  bool systemd_socket = false;
  bool health = false;  ///< only ask the running program
  std::string run_as_user;
  bool drop_privileges = true;
  bool disable_cap_awareness = false;
  long max_procs = 1;
  bool once = false;
  std::string log_level = "info";
  std::string log_format = "logfmt";
  std::string power_metric_names = "both";

  /// The meaning of power_metric_names.
  [[nodiscard]] PowerNames power_names() const;
};

/// Add the flags that --help lists before and after the switches of the collectors. `run_as_user`
/// must hold its default.
void add_first_flags(config::FlagSet& flags, Options& options);
void add_last_flags(config::FlagSet& flags, Options& options);

/// kInvalidArgument: a value that cannot work, with the name of its flag.
Result<> check(const Options& options);
net::ServerOptions server_options(const Options& options);
RouteOptions route_options(const Options& options);
host::Paths paths(const Options& options);

/// Value of the label `hostname`: empty if `emptied`, otherwise $NODE_NAME if it is set (Kubernetes
/// passes the node's name to a pod in it), otherwise the kernel's node name unchanged.
std::string node_name(bool emptied);

}  // namespace ceems::exporter
