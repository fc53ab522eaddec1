// ceems_lb: gate and load balancer in front of Prometheus and Pyroscope.

#include <linux/capability.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "config/flags.h"
#include "lb/service.h"
#include "net/server/health.h"
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

/// A program that takes longer to answer is restarted by systemd.
constexpr std::chrono::seconds kReaction{10};
constexpr std::string_view kHealthPath = "/-/healthy";

Result<lb::Config> read_config(const lb::CommandLine& line) {
  // A file with passwords may be readable only by root, and at a reload this process is `nobody`.
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
  os::serve_until_stopped(
      [&] { reload(service, line); },
      [&] { return ceems::net::all_react(service.addresses(), kReaction, kHealthPath); });
  service.stop();
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  lb::CommandLine line;
  line.run_as_user = os::default_run_as_user();
  ceems::config::FlagSet flags("ceems_lb", std::string(kDescription));
  add_flags(flags, line);
  const auto outcome = flags.parse(argc, argv);
  if (outcome.exit) {
    fmt::print(*outcome.exit == 0 ? stdout : stderr, "{}", outcome.text);
    return *outcome.exit;
  }
  if (line.health) {
    return ceems::net::report_health(line.listen_addresses, kHealthPath);
  }
  auto config = read_config(line);
  if (!config) {
    return os::give_up_early(config.error());
  }
  if (auto configured = log::configure(line.log_level, line.log_format); !configured) {
    return os::give_up_early(configured.error());
  }
  os::raise_file_limit();
  os::log_start("ceems_lb");
  // Open sockets and the web configuration before dropping privileges.
  auto service = lb::Service::create(service_options(line), *config);
  if (!service) {
    return os::give_up_early(service.error());
  }
  if (line.drop_privileges) {
    // Databases, certificates and secrets may be readable only by root or by their owner.
    if (auto dropped = os::drop_privileges(line.run_as_user, {CAP_DAC_READ_SEARCH}); !dropped) {
      return os::give_up_early(std::move(dropped).error().with_context("dropping privileges"));
    }
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
