// ceems_lb: the gate and load balancer before Prometheus and Pyroscope.

#include <linux/capability.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include <date/date.h>
#include <fmt/format.h>

#include "base/log.h"
#include "base/version.h"
#include "config/flags.h"
#include "options.h"
#include "os/privileges.h"
#include "os/signals.h"
#include "service.h"

namespace {

namespace lb = ceems::lb;
namespace log = ceems::log;
namespace os = ceems::os;
using ceems::Error;
using ceems::Result;

constexpr std::string_view kDescription =
    "Load balancer and gate before Prometheus and Pyroscope: passes a user's query on only when "
    "every series it asks for belongs to units of the user's projects.";

/// What goes wrong before the log is set up is one plain line.
int give_up_early(const Error& error) {
  const auto now = date::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  fmt::print(stderr, "{} {}\n", date::format("%Y/%m/%d %H:%M:%S", now), error.message);
  return 1;
}

/// A request under way takes two files. The soft limit is low for programs that call select() only.
void allow_all_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
      log::warn("the limit of open files stays as it was", {{"files", limit.rlim_cur}});
    }
  }
}

Result<lb::Config> read_config(const lb::CommandLine& line) {
  const std::string path = line.config_file.empty() ? "." : line.config_file;
  // Root's alone where it holds passwords, and at a reload this is nobody.
  const os::RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  auto document = ceems::config::load_yaml(path, line.expand_env);
  if (!document) {
    return fail(std::move(document).error().with_context("failed to parse config file"));
  }
  auto config = lb::parse_config(*document, std::filesystem::path(path).parent_path().string());
  if (!config) {
    return fail(std::move(config).error().with_context("failed to parse config file"));
  }
  return config;
}

void reload(lb::Service& service, const lb::CommandLine& line) {
  auto config = read_config(line);
  auto applied = config ? service.apply(*config) : Result<>(fail(std::move(config).error()));
  if (applied) {
    log::info("configuration reloaded");
  } else {
    log::error("configuration not reloaded, the old one stays", {{"err", applied.error().message}});
  }
}

int serve(lb::Service& service, const lb::CommandLine& line) {
  service.start();
  if (service.listeners().empty()) {
    log::warn("no backends are configured: nothing is listened to");
  }
  for (const std::string& listener : service.listeners()) {
    log::info("listening", {{"listener", listener}});
  }
  os::notify_systemd("READY=1");
  int signal = os::wait_for_signal();
  while (signal == SIGHUP) {
    reload(service, line);
    signal = os::wait_for_signal();
  }
  os::notify_systemd("STOPPING=1");
  log::info("stopping", {{"signal", signal}});
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
  auto config = read_config(line);
  if (!config) {
    return give_up_early(config.error());
  }
  const auto level = log::parse_level(line.log_level);
  const auto format = log::parse_format(line.log_format);
  if (!level || !format) {
    return give_up_early(!level ? level.error() : format.error());
  }
  log::configure(*level, *format);
  const ceems::Version& about = ceems::version();
  log::info("starting ceems_lb",
            {{"version", about.version}, {"branch", about.branch}, {"revision", about.revision}});
  allow_all_files();
  // Sockets and the web configuration are opened before privileges are dropped.
  auto service = lb::Service::create(line, *config);
  if (!service) {
    return give_up_early(service.error());
  }
  if (line.drop_privileges) {
    // For a data base, certificates and secrets that only root or their owner may read.
    if (auto dropped = os::drop_privileges(line.run_as_user, {CAP_DAC_READ_SEARCH}); !dropped) {
      return give_up_early(std::move(dropped).error().with_context("dropping privileges"));
    }
  }
  if (auto applied = (*service)->apply(*config); !applied) {
    return give_up_early(applied.error());
  }
  return serve(**service, line);
}

}  // namespace

int main(int argc, char** argv) {
  os::block_signals();
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ceems_lb: {}\n", error.what());
    return 1;
  }
}
