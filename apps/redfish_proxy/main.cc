// redfish_proxy: passes Redfish requests of compute nodes on to their BMCs.

#include <linux/capability.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "config/flags.h"
#include "net/server/health.h"
#include "os/daemon.h"
#include "os/privileges.h"
#include "redfish_proxy/service.h"

namespace {

namespace log = ceems::log;
namespace os = ceems::os;
namespace redfish_proxy = ceems::redfish_proxy;
using ceems::Result;

constexpr std::string_view kDescription =
    "Proxy that passes Redfish requests of compute nodes on to their BMCs, for nodes that cannot "
    "reach the network of the BMCs.";

/// A program that takes longer to answer is restarted by systemd.
constexpr std::chrono::seconds kReaction{10};

struct CommandLine {
  std::string config_file;
  bool expand_env = false;
  redfish_proxy::ServiceOptions service;
  bool debug_server = false;
  bool health = false;
  std::string run_as_user = os::default_run_as_user();
  bool drop_privileges = true;
  std::string log_level = "info";
  std::string log_format = "logfmt";
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
  flags.add("health", line.health,
            {.help = "Only ask the running program, at its listen addresses, whether it answers; "
                     "the exit status is 0 if it does."});
  flags.add("security.run-as-user", line.run_as_user,
            {.help = "Name or number of the user to become when started as root."});
  flags.add("runtime.gomaxprocs", line.service.threads,
            {.help = "Number of threads that check requests.", .env = "GOMAXPROCS"});
  flags.add_enum("log.level", line.log_level, {"debug", "info", "warn", "error"},
                 {.help = "Lowest level of the messages that are logged. Requests that pass are "
                          "logged at debug, refused ones at info."});
  flags.add_enum("log.format", line.log_format, {"logfmt", "json"},
                 {.help = "Format of log lines."});
  flags.add("security.drop-privileges", line.drop_privileges,
            {.help = "Become another user when started as root.", .hidden = true});
}

Result<redfish_proxy::Config> read_config(const CommandLine& line) {
  if (line.config_file.empty()) {
    return redfish_proxy::parse_config({}, {});
  }
  // A file with passwords may be readable only by root, and at a reload this process is `nobody`.
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
  os::serve_until_stopped([&] { reload(service, line); },
                          [&] { return ceems::net::all_react(service.addresses(), kReaction); });
  service.stop();
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  CommandLine line;
  ceems::config::FlagSet flags("redfish_proxy", std::string(kDescription));
  add_flags(flags, line);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  if (line.health) {
    return ceems::net::report_health(line.service.listen_addresses);
  }
  if (auto configured = log::configure(line.log_level, line.log_format); !configured) {
    return os::give_up_early(configured.error());
  }
  auto config = read_config(line);
  if (!config) {
    return os::give_up_early(config.error());
  }
  os::raise_file_limit();
  os::log_start("redfish_proxy");
  // Open sockets and the web configuration before dropping privileges.
  auto service = redfish_proxy::Service::create(line.service);
  if (!service) {
    return os::give_up_early(service.error());
  }
  if (line.drop_privileges) {
    // Certificates and secrets may be readable only by root.
    if (auto dropped = os::drop_privileges(line.run_as_user, {CAP_DAC_READ_SEARCH}); !dropped) {
      return os::give_up_early(std::move(dropped).error().with_context("dropping privileges"));
    }
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
