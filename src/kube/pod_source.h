#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/pod_store.h"

namespace ceems::kube {

/// Who knows the pods of a cluster.
class PodSource {
 public:
  virtual ~PodSource() = default;
  /// All pods as of now, and deleted ones that were not forgotten, in any order. May take `wait`;
  /// then, or when stopped, kUnavailable with what stands in the way.
  virtual Result<std::vector<std::shared_ptr<const StoredPod>>> pods(
      std::chrono::milliseconds wait, const std::stop_token& stop) = 0;
  /// Deleted pods that are not needed any more; those that are still there stay.
  virtual void forget(const std::vector<std::string>& uids) = 0;
};

}  // namespace ceems::kube
