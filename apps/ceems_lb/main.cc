// ceems_lb: gate and load balancer in front of Prometheus and Pyroscope.

#include <linux/capability.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "config/flags.h"
#include "lb/service.h"
#include "net/server/daemon.h"
#include "options.h"
#include "os/daemon.h"
#include "os/privileges.h"

namespace {

namespace lb = ceems::lb;
namespace log = ceems::log;
namespace os = ceems::os;
using ceems::Result;

constexpr std::string_view kDescription =
    "Load balancer and gate in front of Prometheus and Pyroscope. It passes a user's query on only "
    "if every series in the query belongs to units of the user's projects.";

constexpr std::string_view kHealthPath = "/-/healthy";

Result<lb::Config> read_config(const lb::CommandLine& line) {
  // A file with passwords may be readable only by root, and at a reload this process runs as
  // another user.
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  return ceems::config::read_config(line.config_file, line.expand_env, lb::parse_config);
}

void reload(lb::Service& service, const lb::CommandLine& line) {
  auto config = read_config(line);
  auto applied = config ? service.apply(*config) : Result<>(fail(std::move(config).error()));
  if (applied) {
    log::info("configuration reloaded");
  } else {
    log::error("cannot reload the configuration, keeping the old one",
               {{"err", applied.error().message}});
  }
}

int serve(lb::Service& service, const lb::CommandLine& line) {
  service.start();
  if (service.listeners().empty()) {
    log::warn("no backends are configured, not listening");
  }
  for (const std::string& listener : service.listeners()) {
    log::info("listening", {{"listener", listener}});
  }
  ceems::net::serve_until_stopped(service.addresses(), [&] { reload(service, line); }, kHealthPath);
  service.stop();
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  lb::CommandLine line;
  ceems::config::FlagSet flags("ceems_lb", std::string(kDescription));
  add_flags(flags, line);
  if (const auto status = ceems::net::parse_flags(flags, argc, argv, line.daemon.health,
                                                  line.listen_addresses, kHealthPath)) {
    return *status;
  }
  auto config = read_config(line);
  if (!config) {
    return os::give_up_early(config.error());
  }
  if (auto configured = log::configure(line.daemon.log_level, line.daemon.log_format);
      !configured) {
    return os::give_up_early(configured.error());
  }
  os::raise_file_limit();
  os::log_start("ceems_lb");
  // Open sockets and the web configuration before dropping privileges.
  auto service = lb::Service::create(service_options(line), *config);
  if (!service) {
    return os::give_up_early(service.error());
  }
  // Databases, certificates and secrets may be readable only by root or by their owner.
  if (auto dropped = ceems::net::drop_privileges(line.daemon, {CAP_DAC_READ_SEARCH}); !dropped) {
    return os::give_up_early(dropped.error());
  }
  if (auto applied = (*service)->apply(*config); !applied) {
    return os::give_up_early(applied.error());
  }
  return serve(**service, line);
}

}  // namespace

int main(int argc, char** argv) {
  return os::daemon_main("ceems_lb", argc, argv, run);
}
