#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct LibvirtOptions {
  UnitMetricOptions metrics = {};
  std::string xml_dir = "/etc/libvirt/qemu";  ///< definitions of domains, NAME.xml
};

/// The collector without its flags, for tests. Without an inventory it has no GPU series. Errors:
/// the cgroup hierarchy does not exist.
Result<std::unique_ptr<Collector>> make_libvirt_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    const LibvirtOptions& options,
    const std::shared_ptr<gpu::Inventory>& inventory = nullptr);

}  // namespace ceems::exporter
