#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/pod_store.h"

namespace ceems::kube {

/// A view of the pods of a cluster.
class PodSource {
 public:
  virtual ~PodSource() = default;
  /// Returns all current pods, and deleted ones until they are forgotten, in any order. May wait up
  /// to `wait`. If that is not enough, or after a stop, fails with kUnavailable and the cause.
  virtual Result<std::vector<std::shared_ptr<const StoredPod>>> pods(
      std::chrono::milliseconds wait, const std::stop_token& stop) = 0;
  /// Drops deleted pods that are no longer needed. Pods in `uids` that still exist are kept.
  virtual void forget(const std::vector<std::string>& uids) = 0;
};

}  // namespace ceems::kube
