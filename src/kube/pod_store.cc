#include "kube/pod_store.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ceems::kube {

std::int64_t StoredPod::end_ms() const {
  if (!pod.finished() && gone_ms == 0) {
    return 0;
  }
  std::int64_t end = pod.finished_ms;
  if (end == 0 && pod.finished()) {
    for (const std::int64_t moment : {pod.deletion_ms, pod.unready_ms, finished_seen_ms}) {
      end = end == 0 ? moment : end;
    }
  }
  if (end == 0 && gone_ms > 0) {
    // deletionTimestamp is the end of the grace period; most pods are gone before it.
    end = pod.deletion_ms > 0 ? std::min(pod.deletion_ms, gone_ms) : gone_ms;
  }
  return std::max({end, pod.start_ms, pod.created_ms, std::int64_t{1}});
}

void PodStore::mark_deleted(std::shared_ptr<const StoredPod>& stored, std::int64_t gone_ms) {
  auto dead = std::make_shared<StoredPod>(*stored);
  dead->gone_ms = gone_ms;
  stored = std::move(dead);
}

void PodStore::put(Pod pod, std::int64_t now_ms) {
  auto& stored = pods_[pod.uid];
  auto next = std::make_shared<StoredPod>();
  if (stored != nullptr && pod.finished()) {
    next->finished_seen_ms = stored->pod.finished() ? stored->finished_seen_ms : now_ms;
  }
  next->pod = std::move(pod);
  stored = std::move(next);
}

void PodStore::replace(std::vector<Pod> pods, std::int64_t known_ms) {
  std::unordered_set<std::string> listed;
  for (auto& pod : pods) {
    listed.insert(pod.uid);
    put(std::move(pod), known_ms);
  }
  for (auto& [uid, stored] : pods_) {
    if (stored->gone_ms == 0 && !listed.contains(uid)) {
      mark_deleted(stored, known_ms);
    }
  }
}

void PodStore::apply(WatchEvent event, std::int64_t now_ms) {
  switch (event.type) {
    case WatchEvent::Type::kAdded:
    case WatchEvent::Type::kModified:
      put(std::move(event.pod), now_ms);
      break;
    case WatchEvent::Type::kDeleted: {
      const std::string uid = event.pod.uid;
      put(std::move(event.pod), now_ms);
      mark_deleted(pods_[uid], now_ms);
      break;
    }
    case WatchEvent::Type::kBookmark:
    case WatchEvent::Type::kError:
      break;
  }
}

std::vector<std::shared_ptr<const StoredPod>> PodStore::pods() const {
  std::vector<std::shared_ptr<const StoredPod>> all;
  all.reserve(pods_.size());
  for (const auto& [uid, stored] : pods_) {
    all.push_back(stored);
  }
  return all;
}

void PodStore::forget(const std::vector<std::string>& uids) {
  for (const auto& uid : uids) {
    const auto found = pods_.find(uid);
    if (found != pods_.end() && found->second->gone_ms > 0) {
      pods_.erase(found);
    }
  }
}

}  // namespace ceems::kube
