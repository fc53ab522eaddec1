// ceems_exporter: Prometheus exporter for the compute units of a node.

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "config/flags.h"
#include "exporter/alloy_targets.h"
#include "exporter/collector_set.h"
#include "exporter/collectors/all.h"
#include "exporter/doctor/doctor.h"
#include "exporter/flag_names.h"
#include "exporter/gpu/inventory/library_list.h"
#include "exporter/options.h"
#include "exporter/profile/command.h"
#include "exporter/routes.h"
#include "exporter/run/command.h"
#include "exporter/scrape.h"
#include "exporter/self_metrics.h"
#include "net/server/daemon.h"
#include "net/server/server.h"
#include "os/daemon.h"
#include "os/privileges.h"

namespace {

namespace exporter = ceems::exporter;
namespace log = ceems::log;
namespace os = ceems::os;

constexpr std::string_view kDescription =
    "Prometheus exporter for the compute units of a node (jobs, virtual machines, containers): "
    "their use of CPU and memory, their energy, and the node they run on. 'ceems_exporter doctor "
    "[flags]' reports what works on this host, and how to fix what does not; 'ceems_exporter "
    "profile "
    "UNIT|PID' shows where the CPU time of a unit or process goes; 'ceems_exporter run -- COMMAND' "
    "reports what a command of an ordinary user uses, without a server.";

void log_start() {
  const ceems::Version& v = ceems::version();
  utsname system{};
  ::uname(&system);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  os::log_start("ceems_exporter");
  log::info("build and machine", {{"compiler", v.compiler},
                                  {"platform", v.platform},
                                  {"kernel", static_cast<const char*>(system.release)},
                                  {"nodename", static_cast<const char*>(system.nodename)},
                                  {"fd_soft", files.rlim_cur},
                                  {"fd_hard", files.rlim_max}});
}

/// A hanging tool, BMC or name server delays the start by at most this long; its values appear on a
/// later page. With --once there is no later page, so it may take longer.
std::chrono::steady_clock::time_point start_until(const exporter::Options& options) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(options.once ? 15 : 2);
}
constexpr std::chrono::milliseconds kMinWait{300};

/// The capabilities that collectors, `targets` (may be null) and the web layer may raise later,
/// without duplicates.
std::vector<os::Capability> needed_capabilities(
    const exporter::Options& options,
    const std::vector<exporter::NamedCollector>& collectors,
    const exporter::AlloyTargets* targets) {
  std::vector<os::Capability> needed;
  if (targets != nullptr) {
    needed = targets->capabilities();
  }
  if (!options.web_config_file.empty()) {
    needed.push_back(CAP_DAC_READ_SEARCH);  // to reload its files when they change
  }
  for (const auto& named : collectors) {
    const auto capabilities = named.collector->capabilities();
    needed.insert(needed.end(), capabilities.begin(), capabilities.end());
  }
  std::ranges::sort(needed);
  const auto repeated = std::ranges::unique(needed);
  needed.erase(repeated.begin(), repeated.end());
  return needed;
}

ceems::Result<> drop_privileges(const exporter::Options& options,
                                const std::vector<os::Capability>& keep) {
  if (!options.drop_privileges) {
    log::warn("keeping privileges because of --no-security.drop-privileges");
    return {};
  }
  CEEMS_TRY_IN("dropping privileges", os::drop_privileges(options.run_as_user, keep));
  std::string names;
  for (const os::Capability capability : keep) {
    names += (names.empty() ? "" : ",") + os::capability_name(capability);
    if (!os::may_raise(capability)) {
      log::debug("capability is not available", {{"capability", os::capability_name(capability)}});
    }
  }
  log::info("privileges dropped", {{"user", options.run_as_user}, {"capabilities_wanted", names}});
  return {};
}

/// Prints one page to standard output, for --once.
int print_page(exporter::MetricsPage& page, const ceems::Clock& clock) {
  constexpr std::chrono::minutes kMaxTime{5};
  std::string text;
  if (auto done = page.get(ceems::metrics::Exposition::kText, clock.steady_now() + kMaxTime, text);
      !done) {
    return os::give_up(done.error());
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    log::error("cannot write the page", {{"err", std::generic_category().message(errno)}});
    return 1;
  }
  return 0;
}

void serve(ceems::net::Server& server) {
  server.start();
  for (const std::string& address : server.addresses()) {
    log::info("listening", {{"address", address}});
  }
  ceems::net::serve_until_stopped(server.addresses(), [] {
    log::info("ignored SIGHUP, the web configuration is reloaded automatically");
  });
  server.stop();
}

/// ceems_exporter doctor [flags]: reports what works on this host with these flags, and how to fix
/// what does not.
int diagnose(const ceems::config::FlagSet& flags,
             const exporter::Options& options,
             const exporter::CollectorSet& known,
             bool as_json) {
  // The findings say it all; what the meters log at the start would only repeat it.
  log::configure(log::Level::kError, log::Format::kLogfmt);
  const auto findings = exporter::examine(exporter::doctor_context(flags, options, known));
  fmt::print("{}", as_json ? exporter::as_json(findings) : exporter::as_text(findings));
  return exporter::exit_status(findings);
}

int run(int argc, const char* const* argv) {
  if (argc > 1 && std::string_view(argv[1]) == exporter::gpu::kListCommand) {  // started by us
    return exporter::gpu::list_gpus(std::span(argv, static_cast<std::size_t>(argc)).subspan(2));
  }
  if (argc > 1 && std::string_view(argv[1]) == "profile") {
    return exporter::profile::run_command(argc, argv);
  }
  if (argc > 1 && std::string_view(argv[1]) == "run") {
    return exporter::run::run_command(argc, argv);
  }
  const bool doctor = argc > 1 && std::string_view(argv[1]) == "doctor";
  bool doctor_json = false;
  if (doctor) {  // the remaining arguments are flags of the exporter
    ++argv;
    --argc;
  }
  exporter::Options options;
  options.run_as_user = os::default_run_as_user();
  exporter::CollectorSet known(exporter::all_collectors());
  ceems::config::FlagSet flags("ceems_exporter", std::string(kDescription));
  exporter::add_first_flags(flags, options);
  known.add_option_flags(flags);
  known.add_switches(flags);
  exporter::add_last_flags(flags, options);
  exporter::add_flag_aliases(flags);
  if (doctor) {
    flags.add("json", doctor_json, {.help = "Print the findings of doctor as JSON."});
  }
  if (const auto status =
          ceems::net::parse_flags(flags, argc, argv, options.health, options.listen_addresses)) {
    return *status;
  }
  if (auto configured = log::configure(options.log_level, options.log_format); !configured) {
    return os::give_up(configured.error());
  }
  if (auto checked = exporter::check(options); !checked) {
    return os::give_up(checked.error());
  }
  os::raise_file_limit();  // descriptors of cgroup files are kept open
  if (doctor) {
    return diagnose(flags, options, known, doctor_json);
  }
  log_start();
  exporter::log_deprecated_flags(flags);

  const ceems::Clock& clock = ceems::real_clock();
  const exporter::CollectorContext context{
      .paths = exporter::paths(options),
      .hostname = exporter::node_name(options.empty_hostname_label),
      .hostname_emptied = options.empty_hostname_label,
      .power_names = options.power_names(),
      .clock = &clock,
      .start_until = start_until(options)};
  auto created = known.create(flags, context);
  if (!created) {
    return os::give_up(created.error());
  }
  for (const auto& named : created->collectors) {
    log::info("collector enabled", {{"collector", named.name}});
  }
  const auto targets =
      exporter::AlloyTargets::create(options.alloy_targets, created->sources.units, context.paths);
  const auto capabilities = needed_capabilities(options, created->collectors, targets.get());

  exporter::SelfMetrics self(!options.disable_exporter_metrics);
  exporter::Scraper scraper(std::move(created->collectors), clock);
  exporter::MetricsPage page(scraper, self, clock);
  exporter::Routes routes(exporter::route_options(options), page, self, scraper, clock,
                          targets.get());
  std::unique_ptr<ceems::net::Server> server;
  if (!options.once) {
    // Open sockets before dropping privileges, so that ports below 1024 work.
    auto listening_options = exporter::server_options(options);
    listening_options.on_certificate = self.on_certificate();
    auto listening = ceems::net::Server::create(
        std::move(listening_options),
        [&routes](const ceems::net::Request& request, ceems::net::Response& response) {
          routes.handle(request, response);
        });
    if (!listening) {
      return os::give_up(listening.error());
    }
    server = *std::move(listening);
  }
  if (auto dropped = drop_privileges(options, capabilities); !dropped) {
    return os::give_up(dropped.error());
  }
  // Capabilities raised here are effective in this thread and in all threads it starts from now on.
  std::vector<std::unique_ptr<os::RaisedCapabilities>> always;
  for (const os::Capability capability :
       options.disable_cap_awareness ? capabilities : std::vector<os::Capability>()) {
    always.push_back(std::make_unique<os::RaisedCapabilities>(
        std::initializer_list<os::Capability>{capability}));
  }
  scraper.start(std::max(context.start_until, std::chrono::steady_clock::now() + kMinWait));
  if (options.once) {
    return print_page(page, clock);
  }
  serve(*server);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return os::daemon_main("ceems_exporter", argc, argv, run);
}
