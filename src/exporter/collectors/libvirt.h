#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/libvirt/domains.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct LibvirtOptions {
  UnitMetricOptions metrics = {};
  /// Where definitions of domains are, NAME.xml. The first directory that has one counts.
  std::vector<std::filesystem::path> xml_dirs =
      libvirt::definition_directories("/etc/libvirt/qemu");
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
