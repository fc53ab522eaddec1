#include "exporter/collectors/slurm.h"

#include <linux/capability.h>

#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/collectors/gpu_map.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/gpu/claim/slurm_claims.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

struct SlurmFlags {
  UnitMetricOptions metrics;
  SlurmGpuOptions gpu;
};

/// The GPU map of jobs. gres.conf and the list of MIG capabilities are read now; without them GPUs
/// are not shared.
Result<std::unique_ptr<SubCollector>> make_slurm_gpu_map(
    const CollectorContext& context,
    bool unified,
    const SlurmGpuOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const auto gres = host::read_file(options.gres_config_file);
  const auto minors =
      host::read_file((context.paths.proc / "driver/nvidia-caps/mig-minors").string());
  gpu::MapOptions map{
      .order = gpu::parse_order_map(options.order_map),
      .gres = gres ? gpu::parse_gres_conf(*gres) : std::vector<gpu::GresLine>{},
      .mig_minors = minors ? gpu::parse_mig_minors(*minors) : std::vector<gpu::MigMinor>{},
      .every_gres_file = options.every_gres_file};
  auto claims = gpu::make_slurm_claims({.paths = context.paths,
                                        .unified = unified,
                                        .map_directory = options.map_directory,
                                        .trusted_only = options.evidence == "trusted",
                                        .with_shares = !map.gres.empty(),
                                        .order = map.order,
                                        .mig_minors = map.mig_minors,
                                        .processes = options.processes},
                                       inventory);
  return gpu::make_map_collector(context, inventory,
                                 "A value > 0 indicates the job using current GPU",
                                 std::move(claims), std::move(map));
}

std::shared_ptr<RunningJobs> running_jobs(const SlurmGpuOptions& options) {
  std::vector<std::string> spools;
  for (std::string_view rest = options.spools; !rest.empty();) {
    if (const auto spool = trim(take_until(rest, ',')); !spool.empty()) {
      spools.emplace_back(spool);
    }
  }
  return std::make_shared<RunningJobs>(
      RunningJobsOptions{.spools = std::move(spools), .map_directory = options.map_directory});
}

void add_gpu_flags(SlurmGpuOptions& gpu, config::FlagSet& flags) {
  flags.add("collector.slurm.gres-config-file", gpu.gres_config_file,
            {.help = "gres.conf of SLURM, for shards and MPS"});
  flags.add("collector.slurm.gpu-order-map", gpu.order_map,
            {.help = "GPUs whose index in SLURM differs from that of the vendor's tool",
             .placeholder = "0:1,1:0.3,2:0.4,3:0.5,4:0.6"});
  flags.add("collector.slurm.gpu-map-dir", gpu.map_directory,
            {.help = "Directory where a prolog writes the GPU indexes of each job to a file "
                     "named by the job's number and owned by root; empty: none"});
  flags.add("collector.slurm.spool-dir", gpu.spools,
            {.help = "SlurmdSpoolDir of slurm.conf, with %n and %h as there; several are separated "
                     "by commas. Shows which jobs run while they have no process"});
  flags.add_enum(
      "collector.slurm.gpu-evidence", gpu.evidence, {"any", "trusted"},
      {.help = "Evidence for the GPUs of a job: any, which includes the "
               "environment of its processes, or trusted: only what users cannot forge"});
  flags.add("collector.slurm.gres-every-file", gpu.every_gres_file,
            {.help = "Count shares on each of several NVIDIA devices in one line of gres.conf, "
                     "not on the last only",
             .hidden = true});
}

}  // namespace

Result<std::unique_ptr<Collector>> make_slurm_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions options,
    const SlurmGpuOptions& gpu,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const host::CgroupMount mount = cgroups.mount(context);
  CEEMS_TRY(source, CgroupUnitSource::create({.manager = "slurm",
                                              .paths = context.paths,
                                              .mount = mount,
                                              .active_subsystem = cgroups.active_subsystem,
                                              .stats = {.swap = options.swap,
                                                        .pressure = options.pressure,
                                                        .block_io = options.block_io},
                                              .running = running_jobs(gpu),
                                              .keep_ended = context.keep_ended},
                                             slurm_matcher(mount.mode), *context.clock));
  if (!host::slurm_present(context.paths, mount, cgroups.active_subsystem)) {
    log::warn("no cgroups of SLURM yet; each scrape looks again",
              {{"collector", "slurm"}, {"cgroupfs", context.paths.cgroup.string()}});
  }
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *source));
  if (inventory != nullptr && !inventory->has_no_gpus()) {
    const bool unified = mount.mode == host::CgroupMode::kUnified;
    CEEMS_TRY(map, make_slurm_gpu_map(context, unified, gpu, inventory));
    source->want_processes();
    sub_collectors.insert(sub_collectors.begin(), std::move(map));
  }
  return make_unit_collector(
      {.name = "slurm",
       .source = std::move(source),
       .metrics = UnitMetrics(context.hostname, for_mount(options, mount, context, "slurm")),
       .subs = std::move(sub_collectors),
       // To verify that the slurmstepd of a job named by SLUID is genuine.
       .capabilities = {CAP_SYS_PTRACE}},
      *context.clock);
}

/// --collector.slurm: jobs of SLURM. Also adds the flags that all unit collectors share.
CollectorSpec slurm_collector(const std::shared_ptr<UnitFlags>& shared) {
  auto values = std::make_shared<SlurmFlags>();
  return {.name = "slurm",
          .help = "Enable the slurm collector (jobs of SLURM on this node)",
          .stage = Stage::kJobs,
          .add_flags =
              [values, shared](config::FlagSet& flags) {
                shared->add_to(flags);
                flags.add("collector.slurm.swap-memory-metrics", values->metrics.swap,
                          {.help = "Swap use of each job"});
                flags.add("collector.slurm.psi-metrics", values->metrics.pressure,
                          {.help = "Pressure stall times of each job (cgroup v2)"});
                add_gpu_flags(values->gpu, flags);
              },
          .create = [values, shared](const CollectorContext& context,
                                     const Sources&) -> Result<std::unique_ptr<Collector>> {
            SlurmGpuOptions gpu = values->gpu;
            gpu.processes = shared->gpus.processes();
            return make_slurm_collector(context, shared->cgroups, shared->subs, values->metrics,
                                        gpu, shared->gpus.inventory(context));
          }};
}

}  // namespace ceems::exporter
