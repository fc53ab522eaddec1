#pragma once

#include <string>
#include <vector>

#include "api/server.h"
#include "base/result.h"
#include "config/flags.h"
#include "model/protocol.h"
#include "net/server/server.h"

namespace ceems::api {

/// The command line of ceems_api_server.
struct CommandLine {
  std::string config_file;
  bool expand_env = false;
  std::vector<std::string> listen_addresses = {":9020"};
  std::string web_config_file;
  std::string route_prefix = "/";
  long max_requests = 0;
  std::vector<std::string> trusted_proxies;
  std::vector<std::string> trusted_ip_prefix;
  std::string cors_origin = ".*";
  bool compression = true;
  long compression_level = 5;
  bool debug_server = false;
  bool systemd_socket = false;
  bool health = false;  ///< only ask the running program
  bool migrate = false;
  std::string query_max_period = "0s";
  std::string run_as_user;
  long threads = 1;
  std::string log_level = "info";
  std::string log_format = "logfmt";
  // Hidden.
  std::string external_url;
  std::vector<std::string> user_headers = {std::string(model::kUserHeader)};
  bool skip_purge = false;
  bool disable_checks = false;
  bool disable_cap_awareness = false;
  bool drop_privileges = true;
};

/// Registers the flags. `line` must outlive parsing.
void add_flags(config::FlagSet& flags, CommandLine& line);

/// Checks the values that parsing does not. Errors are kInvalidArgument, worded as in the
/// reference.
Result<ApiOptions> api_options(const CommandLine& line);
Result<net::ServerOptions> server_options(const CommandLine& line);

}  // namespace ceems::api
