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
  /// Part of the GPU or instance that is the unit's, 0...1: its shares by those in use there, else
  /// one by the number of units. All shares of one GPU or instance add up to 1 within one manager.
  double share = 1;
  Evidence evidence = Evidence::kManager;
};

/// Who holds which GPU now, for what is accounted by GPU (energy, metrics of processes).
/// Thread-safe.
class Assignments {
 public:
  using List = std::vector<Assignment>;

  /// Replaces what one manager's units hold.
  void publish(const std::string& manager, List list);
  /// What the units of all managers hold, managers in byte order.
  [[nodiscard]] std::shared_ptr<const List> all() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, List> by_manager_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const List> all_ CEEMS_GUARDED_BY(mutex_) = std::make_shared<const List>();
};

}  // namespace ceems::exporter::gpu
