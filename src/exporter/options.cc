#include "exporter/options.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <tuple>

#include "os/privileges.h"

namespace ceems::exporter {
namespace {

constexpr long kMaxWorkers = 16;
constexpr int kGzipLevel =
    1;  // each page is compressed for one reader, so speed matters more than size

}  // namespace

void add_first_flags(config::FlagSet& flags, Options& options) {
  flags.add("collector.empty-hostname-label", options.empty_hostname_label,
            {.help = "Leave the label hostname empty, for tests", .hidden = true});
  flags.add("path.sysfs", options.sysfs, {.help = "Where sysfs is mounted", .hidden = true});
  flags.add("path.procfs", options.procfs, {.help = "Where procfs is mounted", .hidden = true});
  flags.add("path.cgroupfs", options.cgroupfs,
            {.help = "Where cgroups are mounted", .hidden = true});
  flags.add_enum("collector.power-metric-names", options.power_metric_names,
                 {"both", "v0.10", "v0.11"},
                 {.help = "Names of the power metrics of IPMI and Redfish: those of CEEMS 0.10 "
                          "(v0.10), those of 0.11 and later (v0.11), or both"});
}

PowerNames Options::power_names() const {
  if (power_metric_names == "v0.10") {
    return PowerNames::kOld;
  }
  return power_metric_names == "v0.11" ? PowerNames::kNew : PowerNames::kBoth;
}

void add_last_flags(config::FlagSet& flags, Options& options) {
  add_alloy_target_flags(flags, options.alloy_targets);
  flags.add("web.listen-address", options.listen_addresses,
            {.help = "Address to listen on, HOST:PORT or vsock://:PORT; may be repeated"});
  flags.add("web.config.file", options.web_config_file,
            {.help = "File with the settings of TLS and basic authentication",
             .env = "CEEMS_EXPORTER_WEB_CONFIG_FILE"});
  flags.add("web.telemetry-path", options.telemetry_path, {.help = "Path of the metrics"});
  flags.add("web.targets-path", options.targets_path,
            {.help = "Path of the targets of Grafana Alloy"});
  flags.add("web.disable-exporter-metrics", options.disable_exporter_metrics,
            {.help = "Leave out metrics about the exporter itself (promhttp_*, process_*)"});
  flags.add("web.max-requests", options.max_requests,
            {.help = "Maximum number of scrapes served at once; 0 for no limit"});
  flags.add("web.debug-server", options.debug_server,
            {.help = "Serve diagnostics below /debug/, to localhost only"});
  flags.add("web.systemd-socket", options.systemd_socket,
            {.help = "Use the sockets that systemd passes instead of listen addresses"});
  flags.add("health", options.health,
            {.help = "Only ask the running program, at its listen addresses, whether it answers; "
                     "the exit status is 0 if it does"});
  flags.add("security.run-as-user", options.run_as_user,
            {.help = "User, by name or number, to become when started as root"});
  flags.add("security.drop-privileges", options.drop_privileges,
            {.help = "Become that user and drop capabilities", .hidden = true});
  flags.add("security.disable-cap-awareness", options.disable_cap_awareness,
            {.help = "Keep needed capabilities effective all the time", .hidden = true});
  flags.add("runtime.gomaxprocs", options.max_procs,
            {.help = "Number of threads that answer scrapes, 1 to 16; values outside count as the "
                     "nearest of these",
             .env = "GOMAXPROCS"});
  flags.add("once", options.once,
            {.help = "Print one page of metrics to standard output and exit, without listening"});
  flags.add("log.level", options.log_level,
            {.help = "Only log messages of this level or above: debug, info, warn, error"});
  flags.add("log.format", options.log_format, {.help = "Format of log messages: logfmt, json"});
}

Result<> check(const Options& options) {
  const Options defaults;
  for (const auto& [flag, path, usual] :
       {std::tuple("telemetry", &options.telemetry_path, &defaults.telemetry_path),
        std::tuple("targets", &options.targets_path, &defaults.targets_path)}) {
    if (path->empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "--web.{}-path must not be empty; leave the flag out for {}", flag, *usual);
    }
  }
  if (options.max_requests < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "--web.max-requests must not be negative; 0 means no limit, got {}",
                options.max_requests);
  }
  return {};
}

net::ServerOptions server_options(const Options& options) {
  net::ServerOptions server;
  server.listen_addresses = options.listen_addresses;
  // The reference accepts an empty address, which means any free port.
  std::ranges::replace(server.listen_addresses, std::string(), std::string(":0"));
  server.systemd_socket = options.systemd_socket;
  if (!options.web_config_file.empty()) {
    server.web_config_file = std::filesystem::absolute(options.web_config_file);
    server.around_files = os::read_as_root;
  }
  // One more than may scrape, so that /health is answered during a long scrape.
  server.threads = static_cast<int>(std::clamp(options.max_procs, 1L, kMaxWorkers)) + 1;
  server.gzip_level = kGzipLevel;
  server.needs_body = [](const net::Request&) { return false; };
  server.file_share = kConnectionFileShare;
  return server;
}

RouteOptions route_options(const Options& options) {
  return {options.telemetry_path, options.max_requests, options.debug_server, options.targets_path};
}

host::Paths paths(const Options& options) {
  return {options.procfs, options.sysfs, options.cgroupfs};
}

std::string node_name(bool emptied) {
  if (emptied) {
    return {};
  }
  // Called once by main, before threads start.
  const char* given = std::getenv("NODE_NAME");
  if (given != nullptr && *given != '\0') {
    return given;
  }
  utsname name{};
  return ::uname(&name) == 0 ? std::string(static_cast<const char*>(name.nodename)) : std::string();
}

}  // namespace ceems::exporter
