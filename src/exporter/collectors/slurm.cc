#include "exporter/collectors/slurm.h"

#include <utility>

#include "base/log.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/unit/cgroup_unit_source.h"

namespace ceems::exporter {
namespace {

struct Flags {
  UnitMetricOptions metrics;
  bool deprecated_swap = false;
  bool deprecated_psi = false;
};

}  // namespace

Result<std::unique_ptr<Collector>> make_slurm_collector(const CollectorContext& context,
                                                        const CgroupFlags& cgroups,
                                                        const SubCollectorSet& subs,
                                                        UnitMetricOptions options) {
  const host::CgroupMount mount = cgroups.mount(context);
  auto source = CgroupUnitSource::create(
      {.manager = "slurm",
       .paths = context.paths,
       .mount = mount,
       .active_subsystem = cgroups.active_subsystem,
       .stats = {.swap = options.swap, .pressure = options.pressure, .block_io = options.block_io},
       .keep_ended = context.keep_ended},
      slurm_matcher(mount.mode), *context.clock);
  if (!source) {
    return fail(std::move(source).error());
  }
  if (!host::slurm_present(context.paths, mount, cgroups.active_subsystem)) {
    log::warn("no cgroups of SLURM so far; looking again at each scrape",
              {{"collector", "slurm"}, {"cgroupfs", context.paths.cgroup.string()}});
  }
  auto sub_collectors = subs.create(context, **source);
  if (!sub_collectors) {
    return fail(std::move(sub_collectors).error());
  }
  return make_unit_collector({.name = "slurm",
                              .source = *std::move(source),
                              .metrics = UnitMetrics(context.hostname, options),
                              .subs = *std::move(sub_collectors)},
                             *context.clock);
}

CollectorSpec slurm_collector(const std::shared_ptr<CgroupFlags>& cgroups,
                              const std::shared_ptr<SubCollectorSet>& subs) {
  auto values = std::make_shared<Flags>();
  return {.name = "slurm",
          .help = "Enable the slurm collector (jobs of SLURM on this node)",
          .add_flags =
              [values, cgroups, subs](config::FlagSet& flags) {
                cgroups->add_to(flags);
                subs->add_to(flags);
                flags.add("collector.slurm.swap-memory-metrics", values->metrics.swap,
                          {.help = "Swap use of each job"});
                flags.add("collector.slurm.psi-metrics", values->metrics.pressure,
                          {.help = "Pressure stall times of each job (cgroup v2)"});
                flags.add(
                    "collector.slurm.swap.memory.metrics", values->deprecated_swap,
                    {.help = "Deprecated: --collector.slurm.swap-memory-metrics", .hidden = true});
                flags.add("collector.slurm.psi.metrics", values->deprecated_psi,
                          {.help = "Deprecated: --collector.slurm.psi-metrics", .hidden = true});
              },
          .create = [values, cgroups,
                     subs](const CollectorContext& context) -> Result<std::unique_ptr<Collector>> {
            UnitMetricOptions options = values->metrics;
            if (values->deprecated_swap) {
              log::warn(
                  "flag --collector.slurm.swap.memory.metrics is deprecated, use "
                  "--collector.slurm.swap-memory-metrics");
              options.swap = true;
            }
            if (values->deprecated_psi) {
              log::warn(
                  "flag --collector.slurm.psi.metrics is deprecated, use "
                  "--collector.slurm.psi-metrics");
              options.pressure = true;
            }
            return make_slurm_collector(context, *cgroups, *subs, options);
          }};
}

}  // namespace ceems::exporter
