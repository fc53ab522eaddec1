#include <string>
#include <utility>

#include <fmt/format.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/ebpf/bpf_library.h"
#include "exporter/ebpf/programs.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr os::Capability kCapReadSearch = 2;
constexpr os::Capability kCapPtrace = 19;
constexpr os::Capability kCapBpf = 39;

/// What the programs cannot count on this kernel, in words; "" if nothing.
std::string not_counted(const ebpf::Programs& programs) {
  std::string all;
  for (const ebpf::MissingHook& hook : programs.missing()) {
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", hook.loses, hook.function);
  }
  return all;
}

/// Whether programs can be loaded into the kernel. Reports what is missing if not.
bool can_load(const DoctorContext& context, Report& report, const std::string& drop_in) {
  if (!exists(context.paths.sys / "kernel/btf/vmlinux")) {
    report.cannot("the kernel has no type information: " +
                      (context.paths.sys / "kernel/btf/vmlinux").string() + " does not exist",
                  "use Linux 5.10 or later, built with CONFIG_DEBUG_INFO_BTF");
    return false;
  }
  const auto lockdown = host::read_file((context.paths.sys / "kernel/security/lockdown").string());
  if (lockdown && lockdown->contains("[confidentiality]")) {
    report.cannot("the kernel is locked down (confidentiality), so that programs may not read it",
                  "boot with lockdown=integrity or without");
    return false;
  }
  if (!context.may_raise(kCapBpf) || !context.may_raise(kCapPerfmon)) {
    report.cannot(
        "the capabilities to load programs into the kernel are missing",
        "link the drop-in /usr/share/ceems/systemd/ceems_exporter.service.d/" + drop_in +
            " in /etc/systemd/system/ceems_exporter.service.d, or start the exporter as root");
    return false;
  }
  if (auto library = ebpf::load_bpf(); !library) {
    report.cannot(library.error().message, "apt-get install libbpf1, or dnf install libbpf");
    return false;
  }
  return true;
}

void examine_counters(const DoctorContext& context, Report report) {
  if (!context.ebpf_wanted) {
    report.off("not requested");
    return;
  }
  if (!can_load(context, report, "ebpf.conf")) {
    return;
  }
  if (!host::is_own_sysfs(context.paths.sys.string())) {
    report.works("the kernel has type information");
    return;
  }
  // Only a try shows whether the kernel lets programs be hung on its functions.
  const auto programs = ebpf::Programs::load({.files = true, .network = true, .controller = {}});
  if (!programs) {
    report.cannot(programs.error().message,
                  "use a kernel with CONFIG_DEBUG_INFO_BTF, CONFIG_FUNCTION_TRACER and "
                  "CONFIG_BPF_JIT, and see whether a security module refuses");
    return;
  }
  const std::string missing = not_counted(**programs);
  report.works(missing.empty() ? "the kernel has everything that is hooked"
                               : "this kernel does not let everything be counted: " + missing);
}

void examine_profiler(const DoctorContext& context, Report report) {
  if (!context.profiling_wanted) {
    report.off("not requested");
    return;
  }
#if !defined(__x86_64__)
  report.cannot("stacks of this machine cannot be unwound", "the profiler needs x86-64");
  return;
#endif
  if (!can_load(context, report, "profiling.conf")) {
    return;
  }
  if (!context.may_raise(kCapPtrace) || !context.may_raise(kCapReadSearch)) {
    report.cannot(
        "the capabilities to read the binaries of jobs are missing",
        "link the drop-in /usr/share/ceems/systemd/ceems_exporter.service.d/profiling.conf "
        "in /etc/systemd/system/ceems_exporter.service.d, or start the exporter as root");
    return;
  }
  if (permitted_perf_events(context, report)) {
    report.works("programs can be loaded into the kernel, and binaries of jobs can be read");
  }
}

}  // namespace

void examine_ebpf(const DoctorContext& context, Findings& findings) {
  examine_counters(context, Report(context, findings, "ebpf"));
  examine_profiler(context, Report(context, findings, "profiling"));
}

}  // namespace ceems::exporter
