#include "exporter/collectors/openpbs.h"

#include <utility>

#include "exporter/collectors/gpu_map.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/gpu/claim/batch_claims.h"
#include "exporter/unit/cgroup_unit_source.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

struct OpenpbsFlags {
  UnitMetricOptions metrics;
  OpenpbsGpuOptions gpu;
};

Result<std::unique_ptr<SubCollector>> make_openpbs_gpu_map(
    const CollectorContext& context,
    bool unified,
    const OpenpbsGpuOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const auto minors =
      host::read_file((context.paths.proc / "driver/nvidia-caps/mig-minors").string());
  auto claims = gpu::make_batch_claims(
      {.collector = "openpbs",
       .paths = context.paths,
       .unified = unified,
       .job_variable = "PBS_JOBID",
       .trusted_only = options.evidence == "trusted",
       .mig_minors = minors ? gpu::parse_mig_minors(*minors) : std::vector<gpu::MigMinor>{},
       .processes = options.processes},
      inventory);
  return gpu::make_map_collector(
      context, inventory, "A value > 0 indicates the job using current GPU", std::move(claims));
}

}  // namespace

Result<std::unique_ptr<Collector>> make_openpbs_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions metrics,
    const OpenpbsGpuOptions& gpu,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const host::CgroupMount mount = cgroups.mount(context);
  CEEMS_TRY(source,
            CgroupUnitSource::create({.manager = "openpbs",
                                      .paths = context.paths,
                                      .mount = mount,
                                      .active_subsystem = cgroups.active_subsystem,
                                      .stats = {.swap = metrics.swap, .pressure = metrics.pressure},
                                      .keep_ended = context.keep_ended},
                                     openpbs_matcher(), *context.clock));
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *source));
  if (inventory != nullptr && !inventory->has_no_gpus()) {
    CEEMS_TRY(map, make_openpbs_gpu_map(context, mount.mode == host::CgroupMode::kUnified, gpu,
                                        inventory));
    source->want_processes();
    sub_collectors.insert(sub_collectors.begin(), std::move(map));
  }
  return make_unit_collector(
      {.name = "openpbs",
       .source = std::move(source),
       .metrics = UnitMetrics(context.hostname, for_mount(metrics, mount, context, "openpbs")),
       .subs = std::move(sub_collectors)},
      *context.clock);
}

/// --collector.openpbs: jobs of OpenPBS and PBS Professional.
CollectorSpec openpbs_collector(const std::shared_ptr<UnitFlags>& shared) {
  auto values = std::make_shared<OpenpbsFlags>();
  return {.name = "openpbs",
          .help = "Enable the openpbs collector (jobs of OpenPBS on this node)",
          .stage = Stage::kJobs,
          .add_flags =
              [values](config::FlagSet& flags) {
                flags.add("collector.openpbs.swap-memory-metrics", values->metrics.swap,
                          {.help = "Swap use of each job"});
                flags.add("collector.openpbs.psi-metrics", values->metrics.pressure,
                          {.help = "Pressure stall times of each job (cgroup v2)"});
                flags.add_enum(
                    "collector.openpbs.gpu-evidence", values->gpu.evidence, {"any", "trusted"},
                    {.help = "Evidence for the GPUs of a job: any, which includes the environment "
                             "of its processes, or trusted: only what users cannot forge"});
              },
          .create =
              [values, shared](const CollectorContext& context, const Sources&) {
                OpenpbsGpuOptions gpu = values->gpu;
                gpu.processes = shared->gpus.processes();
                return make_openpbs_collector(context, shared->cgroups, shared->subs,
                                              values->metrics, gpu,
                                              shared->gpus.inventory(context));
              }};
}

}  // namespace ceems::exporter
