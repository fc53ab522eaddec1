// ceems_k8s_admission_controller: webhooks that write the creator of pods into their annotations.

#include <linux/capability.h>

#include <string>
#include <utility>
#include <vector>

#include "admission/service.h"
#include "base/log.h"
#include "config/flags.h"
#include "net/server/daemon.h"
#include "os/daemon.h"
#include "os/privileges.h"

namespace {

namespace admission = ceems::admission;
namespace log = ceems::log;
namespace os = ceems::os;
using ceems::Result;

constexpr const char* kProgram = "ceems_k8s_admission_controller";
constexpr const char* kDescription =
    "Admission webhooks of Kubernetes that write who has created a pod into its annotations "
    "ceems.io/created-by and ceems.io/created-by-uid.";

struct CommandLine {
  admission::ServiceOptions service;
  std::vector<std::string> trusted;
  bool enforce = false;
  std::vector<std::string> workloads;
  bool debug_server = false;
  ceems::net::DaemonFlags daemon;
};

void add_flags(ceems::config::FlagSet& flags, CommandLine& line) {
  flags.add("web.listen-address", line.service.listen_addresses,
            {.help = "Address to listen on (repeatable): host:port, vsock://:port, unix:/path."});
  flags.add("web.config.file", line.service.web_config_file,
            {.help = "Path of a web configuration file with TLS and users (exporter-toolkit "
                     "format). The API server of Kubernetes requires TLS."});
  flags.add("web.debug-server", line.debug_server,
            {.help = "Accepted for compatibility; the program has no profiler."});
  flags.add("trusted-creators", line.trusted,
            {.help = "User or group that may create pods in the name of others, such as "
                     "system:serviceaccount:jupyterhub:hub (repeatable; * at the end stands for "
                     "any characters). The creators that anybody else names are replaced. Without "
                     "this flag and --enforce, all creators are believed.",
             .placeholder = "NAME"});
  flags.add("enforce", line.enforce,
            {.help = "Let the validating webhook refuse creators that callers may not name."});
  flags.add("workload", line.workloads,
            {.help = "Further kind of objects with templates of pods (repeatable): "
                     "GROUP/KIND:/PATH/OF/TEMPLATE, such as kubeflow.org/Notebook:/spec/template. "
                     "* in the path stands for any member.",
             .placeholder = "WORKLOAD"});
  add_flags(flags, line.daemon, "Number of threads for reviews of more than 64 KiB.");
}

admission::Rules rules_of(const CommandLine& line) {
  return {.distrust = !line.trusted.empty() || line.enforce,
          .trusted = line.trusted,
          .enforce = line.enforce};
}

Result<std::vector<admission::Workload>> workloads_of(const CommandLine& line) {
  auto all = admission::builtin_workloads();
  for (const std::string& text : line.workloads) {
    CEEMS_TRY_IN("--workload", workload, admission::parse_workload(text));
    all.push_back(std::move(workload));
  }
  return all;
}

int serve(const CommandLine& line, std::vector<admission::Workload> workloads) {
  admission::Reviewer reviewer(rules_of(line), std::move(workloads));
  auto server = admission::create_server(line.service, reviewer);
  if (!server) {
    return os::give_up_early(server.error());
  }
  // Keys may be readable only by root.
  if (auto dropped = drop_privileges(line.daemon, {CAP_DAC_READ_SEARCH}); !dropped) {
    return os::give_up_early(dropped.error());
  }
  (*server)->start();
  for (const std::string& address : (*server)->addresses()) {
    log::info("listening", {{"address", address}});
  }
  ceems::net::serve_until_stopped((*server)->addresses(), [] {
    log::info("files of the web configuration are read again when they change");
  });
  (*server)->stop();
  log::info("stopped");
  return 0;
}

int run(int argc, const char* const* argv) {
  CommandLine line;
  ceems::config::FlagSet flags(kProgram, kDescription);
  add_flags(flags, line);
  if (const auto status = ceems::net::parse_flags(flags, argc, argv, line.daemon.health,
                                                  line.service.listen_addresses)) {
    return *status;
  }
  if (auto configured = log::configure(line.daemon.log_level, line.daemon.log_format);
      !configured) {
    return os::give_up_early(configured.error());
  }
  auto workloads = workloads_of(line);
  if (!workloads) {
    return os::give_up_early(workloads.error());
  }
  os::raise_file_limit();
  os::log_start(kProgram);
  line.service.threads = line.daemon.threads;
  return serve(line, std::move(*workloads));
}

}  // namespace

int main(int argc, char** argv) {
  return os::daemon_main(kProgram, argc, argv, run);
}
