#pragma once

#include <string>

#include "exporter/collector.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

/// Flags that all unit collectors share: --collector.cgroups.*
struct CgroupFlags {
  std::string active_subsystem = "cpuacct";
  std::string force_version;  ///< "", "v1" or "v2"

  void add_to(config::FlagSet& flags);
  /// What is at --path.cgroupfs.
  [[nodiscard]] host::CgroupMount mount(const CollectorContext& context) const;
};

}  // namespace ceems::exporter
