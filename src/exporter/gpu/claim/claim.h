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

/// Where it is known from that a unit holds a device; the first is the most trustworthy.
enum class Evidence {
  kRootFile,     ///< root-owned file written when the unit started (SLURM prolog)
  kManager,      ///< its manager said so: kubelet, domain XML of libvirt
  kDeviceGroup,  ///< device cgroup of the unit
  kProcessList,  ///< the GPU library lists a process of the unit
  kEnvironment,  ///< environment of a process of the unit, which the unit's user controls
};

/// The devices one unit holds, by whatever name its manager has for them. Names that fit no device
/// are ignored; a device named twice counts twice where shares are counted by names.
struct Claim {
  std::string uuid;
  std::string cgrouphostname;
  Evidence evidence = Evidence::kManager;
  std::vector<std::string> ordinals = {};    ///< SLURM: indexes of GPUs or instances
  std::vector<std::string> addresses = {};   ///< PCI addresses, "0000:3b:00.0"
  std::vector<std::string> mdevs = {};       ///< UUIDs of mediated devices (vGPU)
  std::vector<std::string> device_ids = {};  ///< ids of the kubelet's device plugin, "::" and what
                                             ///< follows cut off, lower case
  std::uint64_t shares = 0;                  ///< SLURM: shards or MPS share of the unit in all
};

/// Tells which devices the units of one manager hold. Used by one thread at a time.
class ClaimSource {
 public:
  virtual ~ClaimSource() = default;
  /// Claims of units that hold devices. Asked at each scrape, so what is expensive is remembered:
  /// new units only. An error: no GPU series in this scrape.
  virtual Result<std::vector<Claim>> claims(const UnitSnapshot& snapshot) = 0;
  /// Capabilities it raises after the start.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const { return {}; }
  /// Starts its own threads, if any; see Collector::start().
  virtual void start() {}
  /// See Collector::wait_first().
  virtual void wait_first(std::chrono::steady_clock::time_point /*deadline*/) {}
};

}  // namespace ceems::exporter::gpu
