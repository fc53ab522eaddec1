#include <pwd.h>

#include <filesystem>

#include <fmt/format.h>

#include "config/yaml.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/options.h"
#include "host/proc.h"
#include "host/read_file.h"
#include "net/server/server.h"
#include "net/server/web_config.h"

namespace ceems::exporter {
namespace {

constexpr unsigned long kFewFiles = 4096;

void examine_cpu(const DoctorContext& context, Report report) {
  const auto stat = host::read_file(context.paths.proc / "stat");
  if (!stat) {
    report.cannot(stat.error().message, "mount /proc, or give its path with --path.procfs");
    return;
  }
  const auto times = host::parse_stat(*stat);
  if (!times) {
    report.cannot(
        fmt::format("{}: {}", (context.paths.proc / "stat").string(), times.error().message),
        "give the path of a real /proc with --path.procfs");
    return;
  }
  const auto text = host::read_file(context.paths.proc / "cpuinfo");
  const auto cpus = text ? host::parse_cpuinfo(*text) : fail(text.error());
  if (!cpus) {
    report.cannot(cpus.error().message, "give the path of a real /proc with --path.procfs");
    return;
  }
  report.works(fmt::format(
      "{} CPUs online, {} physical cores{}", times->cpus,
      cpus->physical_cores == 0 ? "unknown number of" : std::to_string(cpus->physical_cores),
      in_virtual_machine(context.paths) ? ", a virtual machine" : ""));
}

void examine_meminfo(const DoctorContext& context, Report report) {
  const auto text = host::read_file(context.paths.proc / "meminfo");
  if (!text) {
    report.cannot(text.error().message, "mount /proc, or give its path with --path.procfs");
    return;
  }
  std::vector<host::MeminfoLine> lines;
  if (const auto parsed = host::parse_meminfo(*text, lines); !parsed) {
    report.cannot(
        fmt::format("{}: {}", (context.paths.proc / "meminfo").string(), parsed.error().message),
        "give the path of a real /proc with --path.procfs");
    return;
  }
  report.works(fmt::format("{} fields", lines.size()));
}

void examine_exporter(const DoctorContext& context, Report report) {
  const std::size_t connections = net::connections_allowed(
      net::ServerOptions().max_connections, context.file_limit, kConnectionFileShare);
  if (context.file_limit < kFewFiles) {
    report.cannot(
        fmt::format("at most {} files may be open, of which connections use up to {}, but several "
                    "files of every unit are kept open",
                    context.file_limit, connections),
        "LimitNOFILE=65536 in the unit file, or ulimit -n 65536");
  } else {
    report.works(fmt::format("up to {} files may be open, and connections use at most {} of them",
                             context.file_limit, connections));
  }
  if (!context.run_as_user.empty() &&
      context.run_as_user.find_first_not_of("0123456789") != std::string::npos &&
      // NOLINTNEXTLINE(concurrency-mt-unsafe): the program has one thread here
      ::getpwnam(context.run_as_user.c_str()) == nullptr) {
    report.cannot(fmt::format("--security.run-as-user: unknown user {}", context.run_as_user),
                  fmt::format("useradd --system {}, or give another --security.run-as-user",
                              context.run_as_user));
  }
  if (context.web_config.empty()) {
    return;
  }
  const auto text = host::read_file(context.web_config);
  if (!text) {
    report.cannot(text.error().message, "correct the path of --web.config.file");
    return;
  }
  const auto root = config::parse_yaml(*text, context.web_config);
  const auto web =
      root ? net::parse_web_config(*root, std::filesystem::path(context.web_config).parent_path())
           : fail(root.error());
  if (!web) {
    report.cannot(web.error().message, "correct the file; docs/web-config.md describes it");
    return;
  }
  report.works(fmt::format("{}: {}, {} users", context.web_config,
                           web->tls.enabled ? "TLS" : "no TLS", web->basic_auth_users.size()));
}

}  // namespace

void examine_host(const DoctorContext& context, Findings& findings) {
  examine_exporter(context, Report(context, findings, "exporter"));
  examine_cpu(context, Report(context, findings, "cpu"));
  examine_meminfo(context, Report(context, findings, "meminfo"));
}

}  // namespace ceems::exporter
