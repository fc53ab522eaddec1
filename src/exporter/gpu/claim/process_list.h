#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

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
