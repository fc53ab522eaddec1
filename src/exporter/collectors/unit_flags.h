#pragma once

#include <array>
#include <memory>
#include <string>

#include "config/flags.h"
#include "exporter/collector.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/inventory/inventory.h"
#include "exporter/sub_collector.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

/// Flags that all users of GPUs share: --collector.gpu.*, all hidden. The slurm collector adds them
/// to the command line.
class GpuFlags {
 public:
  void add_to(config::FlagSet& flags);
  /// The inventory of this node, created by the first call. Not for concurrent use.
  std::shared_ptr<gpu::Inventory> inventory(const CollectorContext& context);
  /// Whether the vendor's library may be used. It reports this machine's GPUs, so with a copy of a
  /// sysfs only a library given by flag may be used.
  [[nodiscard]] bool may_use_library(gpu::Vendor vendor, const host::Paths& paths) const;
  /// The inventory if it was created, otherwise null.
  [[nodiscard]] std::shared_ptr<gpu::Inventory> existing_inventory() const { return inventory_; }
  /// --collector.gpu.type: empty, "nvidia", "amd" or "nogpu".
  [[nodiscard]] const std::string& type() const { return type_; }
  /// --collector.gpu.library-path.VENDOR: the library to load instead of the usual ones, or empty.
  [[nodiscard]] const std::string& library(gpu::Vendor vendor) const {
    return libraries_.at(static_cast<std::size_t>(vendor));
  }
  /// The processes that the collector `gpu` publishes. Never null.
  [[nodiscard]] const std::shared_ptr<gpu::ProcessList>& processes() const { return processes_; }

 private:
  std::string type_;
  std::string nvidia_smi_;
  std::string amd_smi_;
  std::string rocm_smi_;
  std::array<std::string, 3> libraries_;  // by Vendor
  std::shared_ptr<gpu::Inventory> inventory_;
  std::shared_ptr<gpu::ProcessList> processes_ = std::make_shared<gpu::ProcessList>();
};

/// --collector.cgroups.*: where cgroups are mounted.
struct CgroupFlags {
  std::string active_subsystem = "cpuacct";
  std::string force_version;  ///< "", "v1" or "v2"

  void add_to(config::FlagSet& flags);
  /// The cgroup hierarchies at --path.cgroupfs.
  [[nodiscard]] host::CgroupMount mount(const CollectorContext& context) const;
};

/// Flags that the collectors of units and of GPUs share, with the objects they configure. The
/// `slurm` collector adds them to the command line.
struct UnitFlags {
  UnitFlags();

  CgroupFlags cgroups;
  SubCollectorSet subs;  ///< --collector.perf.*, .rdma.*, .ebpf.*
  GpuFlags gpus;

  void add_to(config::FlagSet& flags);
};

}  // namespace ceems::exporter
