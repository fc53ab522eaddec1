#include "exporter/collectors/unit_flags.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "exporter/collectors/all.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::array kUnitFlagsVendors{gpu::Vendor::kNvidia, gpu::Vendor::kAmd,
                                       gpu::Vendor::kIntel};

}  // namespace

void GpuFlags::add_to(config::FlagSet& flags) {
  flags.add_enum(
      "collector.gpu.type", type_, {"nvidia", "amd", "nogpu"},
      {.help = "Use only GPUs of this vendor (nvidia, amd), or none (nogpu)", .hidden = true});
  flags.add("collector.gpu.nvidia-smi-path", nvidia_smi_,
            {.help = "Path of nvidia-smi", .hidden = true});
  flags.add("collector.gpu.rocm-smi-path", rocm_smi_, {.help = "Path of rocm-smi", .hidden = true});
  flags.add("collector.gpu.amd-smi-path", amd_smi_, {.help = "Path of amd-smi", .hidden = true});
  for (const gpu::Vendor vendor : kUnitFlagsVendors) {
    flags.add(fmt::format("collector.gpu.library-path.{}", to_string(vendor)),
              libraries_.at(static_cast<std::size_t>(vendor)),
              {.help = "Absolute path of this vendor's library", .hidden = true});
  }
}

bool GpuFlags::may_use_library(gpu::Vendor vendor, const host::Paths& paths) const {
  return !library(vendor).empty() || host::is_own_sysfs(paths.sys.string());
}

std::shared_ptr<gpu::Inventory> GpuFlags::inventory(const CollectorContext& context) {
  if (inventory_ == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
    const char* path = std::getenv("PATH");
    const bool ask = std::ranges::any_of(kUnitFlagsVendors, [&](gpu::Vendor vendor) {
      return may_use_library(vendor, context.paths);
    });
    inventory_ =
        gpu::Inventory::create({.paths = context.paths,
                                .type = type_,
                                .nvidia_smi = nvidia_smi_,
                                .amd_smi = amd_smi_,
                                .rocm_smi = rocm_smi_,
                                .search_path = path == nullptr ? "" : path,
                                .own_program = ask ? "/proc/self/exe" : "",
                                // The libraries read the environment (LD_LIBRARY_PATH, variables of
                                // the driver); the process that lists the GPUs sees the same one.
                                .own_environment = os::process_environment(),
                                .libraries = libraries_,
                                .start_until = context.start_until},
                               os::real_runner());
  }
  return inventory_;
}

void CgroupFlags::add_to(config::FlagSet& flags) {
  flags.add("collector.cgroups.active-subsystem", active_subsystem,
            {.help = "cgroup v1 hierarchy in which units and their processes are searched"});
  flags.add_enum(
      "collector.cgroups.force-version", force_version, {"v1", "v2"},
      {.help = "Treat --path.cgroupfs as this version of cgroups: v1 or v2", .hidden = true});
}

host::CgroupMount CgroupFlags::mount(const CollectorContext& context) const {
  return host::detect_cgroup(context.paths.cgroup, force_version);
}

UnitFlags::UnitFlags()
    : subs({perf_sub_collector(), rdma_sub_collector(), ebpf_sub_collector(),
            profiling_sub_collector()}) {}

void UnitFlags::add_to(config::FlagSet& flags) {
  cgroups.add_to(flags);
  subs.add_to(flags);
  gpus.add_to(flags);
}

}  // namespace ceems::exporter
