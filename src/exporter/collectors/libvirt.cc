#include "exporter/collectors/libvirt.h"

#include <linux/capability.h>

#include <utility>

#include "exporter/collectors/gpu_map.h"
#include "exporter/collectors/unit_collector.h"
#include "exporter/unit/cgroup_unit_source.h"

namespace ceems::exporter {

Result<std::unique_ptr<Collector>> make_libvirt_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    const LibvirtOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory) {
  const host::CgroupMount mount = cgroups.mount(context);
  auto domains = std::make_shared<libvirt::Domains>(options.xml_dirs);
  CEEMS_TRY(source,
            CgroupUnitSource::create(
                {.manager = "libvirt",
                 .paths = context.paths,
                 .mount = mount,
                 .active_subsystem = cgroups.active_subsystem,
                 .stats = {.swap = options.metrics.swap,
                           .pressure = options.metrics.pressure,
                           .block_io = options.metrics.block_io,
                           .cpus = CpuSource::kVcpus},
                 .list_empty = true,
                 .one_root = true,  // libvirt uses "machine" or "machine.slice"
                 .resolve_uuid = [domains](const std::string& id) -> std::optional<std::string> {
                   const auto domain = domains->find(id);
                   return domain ? std::optional(domain->uuid) : std::nullopt;
                 },
                 .keep_ended = context.keep_ended},
                libvirt_matcher(), *context.clock));
  CEEMS_TRY(sub_collectors, subs.create(context, mount, *source));
  if (inventory != nullptr && !inventory->has_no_gpus()) {
    inventory->want_mdevs();
    CEEMS_TRY(map,
              gpu::make_map_collector(context, inventory,
                                      "A value > 0 indicates running instance using current GPU",
                                      std::make_unique<libvirt::DomainClaims>(
                                          domains, [inventory] { inventory->refresh_mdevs(); })));
    sub_collectors.insert(sub_collectors.begin(), std::move(map));
  }
  return make_unit_collector(
      {.name = "libvirt",
       .source = std::move(source),
       .metrics =
           UnitMetrics(context.hostname, for_mount(options.metrics, mount, context, "libvirt")),
       .subs = std::move(sub_collectors),
       .extra = [domains](const UnitSnapshot& snapshot,
                          metrics::Sink&) { domains->keep_only(snapshot); },
       .capabilities = {CAP_DAC_READ_SEARCH}},
      *context.clock);
}

/// --collector.libvirt: VMs that OpenStack runs with libvirt and QEMU.
CollectorSpec libvirt_collector(const std::shared_ptr<UnitFlags>& shared) {
  struct Flags {
    UnitMetricOptions metrics = {};
    std::string xml_dir = "/etc/libvirt/qemu";
  };
  auto values = std::make_shared<Flags>();
  return {
      .name = "libvirt",
      .help = "Enable the libvirt collector (VMs of OpenStack on this node)",
      .stage = Stage::kVirtualMachines,
      .add_flags =
          [values](config::FlagSet& flags) {
            flags.add("collector.libvirt.swap-memory-metrics", values->metrics.swap,
                      {.help = "Swap use of each VM"});
            flags.add("collector.libvirt.blkio-metrics", values->metrics.block_io,
                      {.help = "Block I/O of each VM"});
            flags.add("collector.libvirt.psi-metrics", values->metrics.pressure,
                      {.help = "Pressure stall times of each VM (cgroup v2)"});
            flags.add(
                "collector.libvirt.xml-dir", values->xml_dir,
                {.help = "Directory with the definitions of VMs, NAME.xml; /etc/libvirt/qemu and "
                         "/run/libvirt/qemu are looked into as well",
                 .hidden = true});
          },
      .create =
          [values, shared](const CollectorContext& context, const Sources&) {
            return make_libvirt_collector(
                context, shared->cgroups, shared->subs,
                {.metrics = values->metrics,
                 .xml_dirs = libvirt::definition_directories(values->xml_dir)},
                shared->gpus.inventory(context));
          }};
}

}  // namespace ceems::exporter
