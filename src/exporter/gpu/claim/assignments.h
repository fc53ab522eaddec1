#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

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

}  // namespace ceems::exporter::gpu
