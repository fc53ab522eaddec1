#include "exporter/doctor/doctor.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/strings.h"
#include "exporter/doctor/report.h"
#include "exporter/energy/state/state_file.h"
#include "exporter/flag_names.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/ipmi/power_command.h"
#include "exporter/libvirt/domains.h"
#include "exporter/perf/events.h"
#include "exporter/perf/kernel.h"
#include "exporter/redfish/reader.h"
#include "exporter/source/privileged_open.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

std::ptrdiff_t count(const Findings& findings, Finding::State state) {
  return std::ranges::count(findings, state, &Finding::state);
}

/// Of the unit in packaging/systemd, which has StateDirectory=ceems_exporter.
constexpr const char* kServiceStateFile = "/var/lib/ceems_exporter/energy.json";

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no threads yet
  return value == nullptr ? std::string() : std::string(value);
}

/// The first value that is not empty. Deprecated spellings come first and take precedence.
std::string first_value(const config::FlagSet& flags, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto values = flags.values(name);
    if (!values.empty() && !values.front().empty()) {
      return values.front();
    }
  }
  return {};
}

bool any_on(const config::FlagSet& flags, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&flags](const char* name) {
    return flags.values(name) == std::vector<std::string>{"true"};
  });
}

/// The libraries that flags name, by Vendor.
std::array<std::string, 3> libraries_of(const config::FlagSet& flags) {
  return {first_value(flags, {"collector.gpu.library-path.nvidia"}),
          first_value(flags, {"collector.gpu.library-path.amd"}),
          first_value(flags, {"collector.gpu.library-path.intel"})};
}

/// What the exporter that runs as a service has learned, or one with the same flags.
energy::Learned learned(const config::FlagSet& flags, const host::Paths& paths) {
  std::string file = first_value(flags, {"collector.energy.state-file"});
  if (file.empty()) {
    file = kServiceStateFile;
  }
  return energy::StateFile(std::move(file), energy::this_machine(paths), real_clock()).load();
}

perf::GroupChoice chosen(const config::FlagSet& flags, const char* on, const char* list) {
  return {.on = any_on(flags, {on}), .profilers = flags.values(list)};
}

std::vector<std::size_t> selected_events(const config::FlagSet& flags) {
  return perf::choose_events(
      chosen(flags, "collector.perf.hardware-events", "collector.perf.hardware-profilers"),
      chosen(flags, "collector.perf.software-events", "collector.perf.software-profilers"),
      chosen(flags, "collector.perf.hardware-cache-events", "collector.perf.cache-profilers"));
}

constexpr std::chrono::milliseconds kDeviceTimeout{2000};

/// With the flags of the collector: by its command, else from the device, else by an installed
/// tool.
Result<double> read_ipmi(const std::string& command, int number, bool only_device) {
  const std::string path = environment("PATH");
  const auto by = [&path](ipmi::PowerProgram program) -> Result<double> {
    ipmi::PowerCommand reader(
        {.program = std::move(program),
         .search_path = path,
         .may_become_root = [] { return os::may_raise(CAP_SETUID) && os::may_raise(CAP_SETGID); }},
        os::real_runner());
    CEEMS_TRY(power, reader.read({}));
    return power.current;
  };
  if (!command.empty() && !only_device) {
    CEEMS_TRY(program, ipmi::program_of(command, path));
    return by(std::move(program));
  }
  ipmi::NativePower device([number] { return ipmi::open_ipmi("/dev", number, open_privileged); },
                           kDeviceTimeout);
  auto power = device.read({});
  if (power && power->current > 0) {
    return power->current;
  }
  auto tool = only_device ? std::nullopt : ipmi::search_program(path);
  if (tool) {
    return by(*std::move(tool));
  }
  return power ? Result<double>(power->current) : fail(std::move(power).error());
}

/// Reads all chassis once.
Result<ChassisPower> read_redfish(redfish::Config config) {
  redfish::ReaderOptions options{.node_chassis = config.node_chassis};
  CEEMS_TRY(session, redfish::Session::create(std::move(config)));
  redfish::Reader reader(std::move(session), std::move(options), real_clock());
  CEEMS_TRY(readings, reader.read({}));
  if (!readings.node_watts) {
    return fail(ErrorCode::kNoData, "{} chassis report power, but none is known to be the node",
                readings.chassis.size());
  }
  return ChassisPower{.chassis = readings.chassis.size(), .node_watts = *readings.node_watts};
}

}  // namespace

std::string_view to_string(Finding::State state) {
  constexpr std::array<std::string_view, 3> kNames{"works", "off", "cannot"};
  return kNames.at(static_cast<std::size_t>(state));
}

Findings examine(const DoctorContext& context) {
  Findings findings;
  examine_release(context, findings);
  examine_host(context, findings);
  examine_meters(context, findings);
  examine_network(context, findings);
  examine_filesystems(context, findings);
  examine_units(context, findings);
  examine_ebpf(context, findings);
  examine_gpus(context, findings);
  examine_energy(context, findings);
  examine_validation(context, findings);
  examine_marks(context, findings);
  return findings;
}

std::string as_text(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.collector.size());
  }
  std::string out;
  for (const Finding& finding : findings) {
    out += fmt::format("{:<{}}  {:<6}  {}\n", finding.collector, width, to_string(finding.state),
                       finding.cause);
    if (!finding.fix.empty()) {
      out += fmt::format("{:<{}}          -> {}\n", "", width, finding.fix);
    }
  }
  out +=
      fmt::format("\n{} work, {} off, {} cannot work\n", count(findings, Finding::State::kWorks),
                  count(findings, Finding::State::kOff), count(findings, Finding::State::kCannot));
  return out;
}

std::string as_json(const Findings& findings) {
  std::string out;
  JsonWriter json(out, JsonEscape::kPlain);
  json.begin_object().key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().member("collector", finding.collector);
    json.member("state", to_string(finding.state));
    json.member("cause", finding.cause).member("fix", finding.fix).end_object();
  }
  json.end_array().member("cannot", count(findings, Finding::State::kCannot)).end_object();
  out += '\n';
  return out;
}

int exit_status(const Findings& findings) {
  return count(findings, Finding::State::kCannot) > 0 ? 1 : 0;
}

/// Which releases of CEEMS would start with the same flags. For sites that come from another
/// release or want to go back to it. Never a fault, because this program accepts the flags.
void examine_release(const DoctorContext& context, Findings& findings) {
  const ReleaseFit fit = fitting_releases(context.flags);
  Report(context, findings, "release")
      .works(fit.summary, fmt::format("{}", fmt::join(fit.notes, "; ")));
}

DoctorContext doctor_context(const config::FlagSet& flags,
                             const Options& options,
                             const CollectorSet& known) {
  DoctorContext context;
  context.paths = paths(options);
  context.search_path = environment("PATH");
  context.cgroup_version = first_value(flags, {"collector.cgroups.force-version"});
  context.active_subsystem = first_value(flags, {"collector.cgroups.active-subsystem"});
  context.xml_directories =
      libvirt::definition_directories(first_value(flags, {"collector.libvirt.xml-dir"}));
  context.kubelet_socket = first_value(flags, {"collector.k8s.kubelet-podresources-socket.file"});
  context.redfish_config = first_value(flags, {"collector.redfish.config.file"});
  context.flags = flags.given_names();
  std::erase(context.flags, "json");  // of doctor itself
  context.gres_config = first_value(flags, {"collector.slurm.gres-config-file"});
  context.gpu_map_directory = first_value(flags, {"collector.slurm.gpu-map-dir"});
  context.gpu_hints_count = first_value(flags, {"collector.slurm.gpu-evidence"}) != "trusted";
  context.read_gpus = [paths = context.paths, libraries = libraries_of(flags)](gpu::Vendor vendor) {
    return read_gpus(paths, vendor, libraries.at(static_cast<std::size_t>(vendor)));
  };
  for (const gpu::Vendor vendor : {gpu::Vendor::kNvidia, gpu::Vendor::kAmd, gpu::Vendor::kIntel}) {
    if (!libraries_of(flags).at(static_cast<std::size_t>(vendor)).empty()) {
      context.gpu_libraries.insert(vendor);
    }
  }
  context.redfish_expands = any_on(flags, {"collector.redfish.config.file.expand-env-vars"});
  context.read_redfish = read_redfish;
  context.read_ipmi = [command = first_value(flags, {"collector.ipmi_dcmi.cmd"}),
                       number = parse_int<int>(first_value(flags, {"collector.ipmi_dcmi.dev-num"})),
                       native = any_on(flags, {"collector.ipmi_dcmi.force-native-mode"})] {
    return read_ipmi(command, number.value_or(0), native);
  };
  context.read_hsmp = [] {
    hsmp::Reader reader([] { return hsmp::open_hsmp("/dev/hsmp", open_privileged); });
    return reader.read({});
  };
  context.missing_perf_events = [events = selected_events(flags)] {
    perf::RealKernel kernel;
    return perf::unsupported_events(kernel, events, !os::may_raise(CAP_PERFMON));
  };
  context.infiniband_exclude = first_value(flags, {"collector.infiniband.device-exclude"});
  context.marks_socket = first_value(flags, {"collector.marks.socket"});
  context.rapl_watch = std::chrono::milliseconds(500);
  context.web_config = options.web_config_file;
  context.idle_watts = first_value(flags, {"collector.energy.idle-watts"});
  context.learned = learned(flags, context.paths);
  context.model_watts = first_value(flags, {"collector.energy.model-watts"});
  context.energy_refused = flags.given("collector.energy") && !any_on(flags, {"collector.energy"});
  for (const CollectorSpec& spec : known.specs()) {
    if (flags.given("collector." + spec.name) &&
        any_on(flags, {("collector." + spec.name).c_str()})) {
      context.wanted.insert(spec.name);
    }
  }
  context.perf_wanted =
      any_on(flags, {"collector.perf.hardware-events", "collector.perf.software-events",
                     "collector.perf.hardware-cache-events"});
  context.ebpf_wanted =
      any_on(flags, {"collector.ebpf.io-metrics", "collector.ebpf.network-metrics"});
  context.profiling_wanted = any_on(flags, {"profiling.ebpf"});
  context.rdma_wanted = any_on(flags, {"collector.rdma.stats"});
  for (const std::string& provider : flags.values("collector.emissions.provider")) {
    context.emission_providers.insert(provider);
  }
  context.environment = environment;
  context.may_raise = [](os::Capability capability) { return os::may_raise(capability); };
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    context.file_limit = files.rlim_max;
  }
  if (::geteuid() == 0 && options.drop_privileges) {
    context.run_as_user = options.run_as_user;
  }
  return context;
}

}  // namespace ceems::exporter
