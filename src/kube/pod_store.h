#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kube/objects.h"

namespace ceems::kube {

/// A pod and what we observed of it. Times are epoch milliseconds; 0 means not observed.
struct StoredPod {
  Pod pod;
  std::int64_t finished_seen_ms = 0;  ///< when we first saw that it had finished
  std::int64_t gone_ms = 0;           ///< when it was deleted, as far as we know

  /// When the pod ended: the end of its last container if known. Otherwise, for a finished pod, it
  /// is the first of these times that is known: its deletion, the end of its readiness, the time we
  /// saw that it had finished. For a pod deleted while it ran, it is the deletion. Never before its
  /// start; 0 while the pod runs.
  [[nodiscard]] std::int64_t end_ms() const;
};

/// The pods of a cluster: those that exist, and deleted ones until they are forgotten. Of pods that
/// claim to mirror the same static pod, the one that was created first does; the others keep the
/// UIDs that they have in the API server. Not thread-safe, but the objects it returns never change.
class PodStore {
 public:
  /// Takes a complete list. Pods missing from it were deleted while we did not watch; `known_ms` is
  /// the last moment at which we knew that they existed.
  void replace(std::vector<Pod> pods, std::int64_t known_ms);
  /// Applies an event seen at `now_ms`. Bookmarks and errors change nothing.
  void apply(WatchEvent event, std::int64_t now_ms);

  [[nodiscard]] std::vector<std::shared_ptr<const StoredPod>> pods() const;
  [[nodiscard]] std::size_t size() const { return pods_.size(); }
  /// Drops the deleted ones among these pods.
  void forget(const std::vector<std::string>& uids);

 private:
  std::shared_ptr<const StoredPod>& put(Pod pod, std::int64_t now_ms);
  void settle_claim(Pod& pod);
  void mark_deleted(std::shared_ptr<const StoredPod>& stored, std::int64_t gone_ms);

  std::unordered_map<std::string, std::shared_ptr<const StoredPod>> pods_;
};

}  // namespace ceems::kube
