#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "exporter/gpu/device.h"
#include "exporter/unit/unit.h"
#include "os/privileges.h"

namespace ceems::exporter::gpu {

/// How it is known that a unit holds a device. The first one is the most trustworthy.
enum class Evidence {
  kRootFile,     ///< root-owned file written when the unit started (SLURM prolog)
  kManager,      ///< its manager: the kubelet, or libvirt's definition of the domain
  kDeviceGroup,  ///< device cgroup of the unit
  kProcessList,  ///< the GPU library lists a process of the unit
  kEnvironment,  ///< environment of a process of the unit, which the unit's user controls
};

/// The devices that one unit holds, by the names of its manager. Names that match no device are
/// ignored. A device that is named twice counts twice where shares are counted by names.
struct Claim {
  std::string uuid;
  std::string cgrouphostname;
  Evidence evidence = Evidence::kManager;
  std::vector<std::string> ordinals = {};    ///< batch jobs: indexes of GPUs or instances
  std::vector<std::string> addresses = {};   ///< PCI addresses, "0000:3b:00.0"
  std::vector<std::string> mdevs = {};       ///< UUIDs of mediated devices (vGPU)
  std::vector<std::string> device_ids = {};  ///< ids of the kubelet's device plugin, "::" and what
                                             ///< follows cut off, lower case
  std::uint64_t shares = 0;                  ///< SLURM: all shards or the MPS share of the unit
  bool evenly = false;                       ///< units that name the same ordinals share evenly
};

/// Determines which devices the units of one manager hold. Used by one thread at a time.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  /// Claims of the units that hold devices. Called at each scrape, so implementations cache
  /// expensive results and only look up new units. On an error this scrape has no GPU series.
  virtual Result<std::vector<Claim>> claims(const UnitSnapshot& snapshot) = 0;
  /// Capabilities that it raises after the start.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Starts its threads, if it has any; see Collector::start().
  virtual void start() {}
  /// See Collector::wait_first().
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

/// One unit on one GPU or instance.
struct Assignment {
  std::string manager = {};
  std::string cgrouphostname = {};
  std::string uuid = {};  ///< of the unit
  Vendor vendor = Vendor::kNvidia;
  std::string device_uuid = {};   ///< Device::uuid
  std::string index = {};         ///< of the GPU or instance
  std::string gpu_instance = {};  ///< Instance::gpu_instance in decimal; empty for a whole GPU
  std::uint64_t sm_count = 0;     ///< of the GPU or instance; 0: unknown
  /// The unit's fraction of the GPU or instance, 0...1: its shares divided by all shares in use
  /// there, or 1 divided by the number of units. Within one manager the fractions of one GPU or
  /// instance sum to 1.
  double share = 1;
  Evidence evidence = Evidence::kManager;
};

/// Which units hold which GPUs now, for per-GPU accounting (energy, metrics of processes).
/// Thread-safe.
class Assignments {
 public:
  using List = std::vector<Assignment>;

  /// Replaces the assignments of one manager's units.
  void publish(const std::string& manager, List list);
  /// The assignments of all managers' units, with managers in byte order.
  [[nodiscard]] std::shared_ptr<const List> all() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, List> by_manager_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const List> all_ CEEMS_GUARDED_BY(mutex_) = std::make_shared<const List>();
};

/// The processes that the vendors' libraries list on GPUs now. They show who uses which GPU, and
/// jobs cannot forge that. Published by the collector `gpu`; empty if it is off. Thread-safe.
class ProcessList {
 public:
  struct Entry {
    Vendor vendor = Vendor::kNvidia;
    std::string device_uuid;   ///< Device::uuid
    std::string index;         ///< of the GPU or instance, as in Inventory::devices()
    std::string gpu_instance;  ///< Instance::gpu_instance in decimal; empty for a whole GPU
    std::vector<int> pids;
  };
  using List = std::vector<Entry>;

  void publish(List list) {
    auto all = std::make_shared<const List>(std::move(list));
    const MutexLock lock(mutex_);
    all_ = std::move(all);
  }
  /// GPUs and instances that have processes. Never null.
  [[nodiscard]] std::shared_ptr<const List> all() const {
    const MutexLock lock(mutex_);
    return all_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const List> all_ CEEMS_GUARDED_BY(mutex_) = std::make_shared<const List>();
};

}  // namespace ceems::exporter::gpu
