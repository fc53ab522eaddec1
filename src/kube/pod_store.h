#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kube/objects.h"

namespace ceems::kube {

/// A pod and what was seen of it. Times are epoch milliseconds; 0: not so far.
struct StoredPod {
  Pod pod;
  std::int64_t finished_seen_ms = 0;  ///< when its phase was first seen to be one of the last
  std::int64_t gone_ms = 0;           ///< when it was deleted, as far as we know

  /// When it was over: its last container's end; else, for a pod that finished, the deletion, the
  /// end of its readiness or the time it was seen; for one that was deleted while it ran, the
  /// deletion. Never before its start. 0 while it goes on.
  [[nodiscard]] std::int64_t end_ms() const;
};

/// The pods of a cluster: those there are, and those deleted until they are forgotten. Not
/// thread-safe; what it gives out never changes.
class PodStore {
 public:
  /// What a list said. Pods it does not name were deleted unseen; `known_ms` is the last moment at
  /// which it was known that they were there.
  void replace(std::vector<Pod> pods, std::int64_t known_ms);
  /// An event at `now_ms`; bookmarks and errors change nothing.
  void apply(WatchEvent event, std::int64_t now_ms);

  [[nodiscard]] std::vector<std::shared_ptr<const StoredPod>> pods() const;
  [[nodiscard]] std::size_t size() const { return pods_.size(); }
  /// Drops those of these pods that were deleted.
  void forget(const std::vector<std::string>& uids);

 private:
  void put(Pod pod, std::int64_t now_ms);
  void bury(std::shared_ptr<const StoredPod>& stored, std::int64_t gone_ms);

  std::unordered_map<std::string, std::shared_ptr<const StoredPod>> pods_;
};

}  // namespace ceems::kube
