#pragma once

#include <string>
#include <vector>

#include "config/flags.h"
#include "lb/service.h"
#include "net/server/daemon.h"

namespace ceems::lb {

/// The command line of ceems_lb.
struct CommandLine {
  std::string config_file;
  bool expand_env = false;
  std::vector<std::string> listen_addresses = {":9030", ":9040"};
  std::string web_config_file;
  bool systemd_socket = false;
  net::DaemonFlags daemon;
  bool disable_cap_awareness = false;  ///< hidden
};

/// Registers the flags. `line` must outlive parsing.
void add_flags(config::FlagSet& flags, CommandLine& line);

ServiceOptions service_options(const CommandLine& line);

}  // namespace ceems::lb
