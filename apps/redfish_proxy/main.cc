// redfish_proxy: passes Redfish requests of compute nodes on to their BMCs.

#include <linux/capability.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "config/flags.h"
#include "net/server/daemon.h"
#include "os/daemon.h"
#include "os/privileges.h"
#include "redfish_proxy/proxy.h"

namespace {

namespace log = ceems::log;
namespace os = ceems::os;
namespace redfish_proxy = ceems::redfish_proxy;
using ceems::Result;

constexpr std::string_view kDescription =
    "Proxy that passes Redfish requests of compute nodes on to their BMCs, for nodes that cannot "
    "reach the network of the BMCs.";

struct CommandLine {
  std::string config_file;
  bool expand_env = false;
  redfish_proxy::ServiceOptions service;
  bool debug_server = false;
  ceems::net::DaemonFlags daemon;
};

void add_flags(ceems::config::FlagSet& flags, CommandLine& line) {
  flags.add("config.file", line.config_file,
            {.help = "Path of the configuration file. Without one, clients choose their BMC by the "
                     "header X-Redfish-Url.",
             .env = "REDFISH_PROXY_CONFIG_FILE"});
  flags.add(
      "config.file.expand-env-vars", line.expand_env,
      {.help = "Replace $NAME and ${NAME} in the configuration file with environment variables."});
  flags.add("web.listen-address", line.service.listen_addresses,
            {.help = "Address to listen on (repeatable): host:port, vsock://:port, unix:/path."});
  flags.add(
      "web.config.file", line.service.web_config_file,
      {.help = "Path of a web configuration file with TLS and users (exporter-toolkit format)."});
  flags.add("web.debug-server", line.debug_server,
            {.help = "Accepted for compatibility; the program has no profiler."});
  flags.add("web.systemd-socket", line.service.systemd_socket,
            {.help = "Use the sockets passed by systemd instead of --web.listen-address."});
  add_flags(flags, line.daemon, "Number of threads that check requests.",
            "Lowest level of the messages that are logged. Requests that pass are logged at debug, "
            "refused ones at info.");
}

Result<redfish_proxy::Config> read_config(const CommandLine& line) {
  if (line.config_file.empty()) {
    return redfish_proxy::parse_config({}, {});
  }
  // A file with passwords may be readable only by root, and at a reload this process runs as
  // another user.
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  return ceems::config::read_config(line.config_file, line.expand_env, redfish_proxy::parse_config);
}

void reload(redfish_proxy::Service& service, const CommandLine& line) {
  auto config = read_config(line);
  auto applied =
      config ? service.apply(std::move(*config)) : Result<>(fail(std::move(config).error()));
  if (applied) {
    log::info("configuration reloaded");
  } else {
    log::error("cannot reload the configuration, keeping the old one",
               {{"err", applied.error().message}});
  }
}

int serve(redfish_proxy::Service& service, const CommandLine& line) {
  service.start();
  for (const std::string& address : service.addresses()) {
    log::info("listening", {{"address", address}});
  }
  ceems::net::serve_until_stopped(service.addresses(), [&] { reload(service, line); });
  service.stop();
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  CommandLine line;
  ceems::config::FlagSet flags("redfish_proxy", std::string(kDescription));
  add_flags(flags, line);
  if (const auto status = ceems::net::parse_flags(flags, argc, argv, line.daemon.health,
                                                  line.service.listen_addresses)) {
    return *status;
  }
  if (auto configured = log::configure(line.daemon.log_level, line.daemon.log_format);
      !configured) {
    return os::give_up_early(configured.error());
  }
  auto config = read_config(line);
  if (!config) {
    return os::give_up_early(config.error());
  }
  os::raise_file_limit();
  os::log_start("redfish_proxy");
  // Open sockets and the web configuration before dropping privileges.
  line.service.threads = line.daemon.threads;
  auto service = redfish_proxy::Service::create(line.service);
  if (!service) {
    return os::give_up_early(service.error());
  }
  // Certificates and secrets may be readable only by root.
  if (auto dropped = drop_privileges(line.daemon, {CAP_DAC_READ_SEARCH}); !dropped) {
    return os::give_up_early(dropped.error());
  }
  if (auto applied = (*service)->apply(std::move(*config)); !applied) {
    return os::give_up_early(applied.error());
  }
  return serve(**service, line);
}

}  // namespace

int main(int argc, char** argv) {
  return os::daemon_main("redfish_proxy", argc, argv, run);
}
