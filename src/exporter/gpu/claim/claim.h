#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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

}  // namespace ceems::exporter::gpu
