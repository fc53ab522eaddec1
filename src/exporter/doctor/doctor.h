#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/flags.h"
#include "exporter/collector_set.h"
#include "exporter/energy/state/learned.h"
#include "exporter/gpu/library/gpu_library.h"
#include "exporter/hsmp/hsmp.h"
#include "exporter/options.h"
#include "exporter/redfish/config.h"
#include "host/paths.h"
#include "os/privileges.h"

namespace ceems::exporter {

/// A finding of `ceems_exporter doctor`.
struct Finding {
  enum class State {
    kWorks,   ///< present and readable
    kOff,     ///< not present or not requested; nothing to fix
    kCannot,  ///< present or requested, but it cannot work: `fix` says what to do
  };
  std::string collector;  ///< name of the collector; "host" and "exporter" for what all share
  State state = State::kWorks;
  std::string cause;  ///< one sentence on what was found
  std::string fix;    ///< exact command, flag or setting; empty unless kCannot (or worth knowing)
  /// The power of the node that the collector read, for examine_energy(), which judges it.
  std::optional<double> node_watts = {};
};

using Findings = std::vector<Finding>;

/// "works", "off", "cannot".
std::string_view to_string(Finding::State state);

/// What a Redfish service reports.
struct ChassisPower {
  std::size_t chassis = 0;  ///< how many report power
  double node_watts = 0;
};

/// Two readings of all GPUs of one vendor.
struct GpuReadings {
  std::vector<gpu::DeviceState> first;
  std::vector<gpu::DeviceState> second;
};

/// The input of the doctor. Everything is passed in, so that tests can describe broken hosts with
/// files.
struct DoctorContext {
  host::Paths paths;
  std::filesystem::path dev = "/dev";
  std::string run = "/run";
  std::string search_path;     ///< PATH
  std::string cgroup_version;  ///< --collector.cgroups.force-version
  std::string active_subsystem = "cpuacct";
  std::vector<std::filesystem::path> xml_directories{"/etc/libvirt/qemu", "/run/libvirt/qemu"};
  std::string kubelet_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string redfish_config;  ///< file of --collector.redfish.config.file
  /// Reads the power of the node once from the IPMI device or by a command, as the collector does.
  /// Watts. If empty, only the device is looked for.
  std::function<Result<double>()> read_ipmi = {};
  /// Reads the sockets once from the HSMP device, as the collector does. If empty, the device is
  /// not opened.
  std::function<Result<std::vector<hsmp::Socket>>()> read_hsmp = {};
  bool redfish_expands = false;  ///< --collector.redfish.config.file.expand-env-vars
  /// Reads the power of the chassis once, as the collector does. If empty, the BMC is not
  /// contacted.
  std::function<Result<ChassisPower>(redfish::Config config)> read_redfish = {};
  std::string web_config;  ///< file of --web.config.file
  std::string gres_config = "/etc/slurm/gres.conf";
  std::string gpu_map_directory = "/run/ceems/slurm-gpu-map";
  bool gpu_hints_count = true;  ///< --collector.slurm.gpu-evidence is not "trusted"
  /// See read_gpus(). kNotFound if the library cannot be loaded. If empty, none can.
  std::function<Result<GpuReadings>(gpu::Vendor)> read_gpus = {};
  std::set<gpu::Vendor> gpu_libraries = {};  ///< vendors whose library a flag names
  /// Collectors that are switched on by flag. If what they need is missing, that is a fault.
  std::set<std::string, std::less<>> wanted;
  bool energy_refused = false;  ///< --no-collector.energy
  std::string idle_watts;       ///< --collector.energy.idle-watts
  std::string model_watts;      ///< --collector.energy.model-watts
  energy::Learned learned;      ///< what exporters on this host have learned and stored
  bool perf_wanted = false;
  /// Names of the selected perf events that this machine does not have. If empty, none is tried.
  std::function<std::vector<std::string>()> missing_perf_events = {};
  std::string infiniband_exclude;                     ///< --collector.infiniband.device-exclude
  std::string marks_socket = "/run/ceems/mark.sock";  ///< --collector.marks.socket
  /// How long RAPL is watched with one CPU at work, to find counters that stand still; 0: not.
  std::chrono::milliseconds rapl_watch{0};
  bool ebpf_wanted = false;
  bool profiling_wanted = false;
  bool rdma_wanted = false;
  std::set<std::string, std::less<>> emission_providers;
  std::function<std::string(const std::string&)> environment;  ///< empty text when unset
  /// Whether the exporter can raise the capability when it runs.
  std::function<bool(os::Capability)> may_raise;
  unsigned long file_limit = 1U << 20U;  ///< hard limit of open files
  std::string run_as_user;         ///< the user it would become if started as root; otherwise empty
  std::vector<std::string> flags;  ///< names on the command line, as spelled there
};

/// Examines everything the exporter may read. For each collector it reports whether it works on
/// this host, is off, or cannot work, with the cause and the fix. It only reads. The only program
/// is started by `read_ipmi`, the only connection to another host opened by `read_redfish`, for
/// collectors that are switched on. The order is that of --help.
Findings examine(const DoctorContext& context);

/// One line per finding, for people. States are words, so colour is not needed. Ends with a count.
std::string as_text(const Findings& findings);
/// {"findings":[{"collector":"rapl","state":"cannot","cause":"...","fix":"..."}],"cannot":1}
std::string as_json(const Findings& findings);

/// 1 if something cannot work, otherwise 0.
int exit_status(const Findings& findings);

// The parts of examine(), by subject.
void examine_release(const DoctorContext& context, Findings& findings);  // of CEEMS, by flags
void examine_host(const DoctorContext& context, Findings& findings);     // cpu, meminfo, limits
void examine_meters(const DoctorContext& context, Findings& findings);   // rapl, hwmon, cray, BMC
void examine_network(const DoctorContext& context, Findings& findings);  // netdev, infiniband, ...
void examine_filesystems(const DoctorContext& context, Findings& findings);  // lustre, nfs
void examine_units(const DoctorContext& context, Findings& findings);  // slurm, libvirt, k8s, ...
void examine_ebpf(const DoctorContext& context, Findings& findings);
void examine_gpus(const DoctorContext& context, Findings& findings);
// Meters, model, idle power and expected error of the energy. Looks at the findings of the others.
void examine_energy(const DoctorContext& context, Findings& findings);
void examine_validation(const DoctorContext& context, Findings& findings);  // of this CPU family
void examine_marks(const DoctorContext& context, Findings& findings);       // the socket of jobs

/// Reads the GPUs of a vendor twice, in a second and a half, through the library `path` or, if that
/// is empty, the usual one.
Result<GpuReadings> read_gpus(const host::Paths& paths,
                              gpu::Vendor vendor,
                              const std::string& path);

/// The doctor's input, from the parsed flags of the exporter and from this process: its
/// environment, limits, and the capabilities that it would keep. These are the process's, or for
/// root all in the bounding set.
DoctorContext doctor_context(const config::FlagSet& flags,
                             const Options& options,
                             const CollectorSet& known);

}  // namespace ceems::exporter
