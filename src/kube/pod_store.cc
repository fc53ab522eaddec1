#include "kube/pod_store.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace ceems::kube {
namespace {

/// Its UID in the API server.
const std::string& object_uid(const Pod& pod) {
  return pod.mirror_uid.empty() ? pod.uid : pod.mirror_uid;
}

bool same_object(const Pod& one, const Pod& other) {
  return object_uid(one) == object_uid(other);
}

}  // namespace

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

void PodStore::settle_claim(Pod& pod) {
  const auto found = pod.mirror_uid.empty() ? pods_.end() : pods_.find(pod.uid);
  if (found == pods_.end() || found->second->gone_ms > 0 || same_object(found->second->pod, pod)) {
    return;
  }
  // The API server sets these times.
  if (found->second->pod.created_ms <= pod.created_ms) {
    pod.uid = std::exchange(pod.mirror_uid, {});
    return;
  }
  auto other = std::make_shared<StoredPod>(*found->second);
  other->pod.uid = std::exchange(other->pod.mirror_uid, {});
  pods_.erase(found);
  pods_[other->pod.uid] = std::move(other);
}

std::shared_ptr<const StoredPod>& PodStore::put(Pod pod, std::int64_t now_ms) {
  settle_claim(pod);
  auto& stored = pods_[pod.uid];
  auto next = std::make_shared<StoredPod>();
  if (stored != nullptr && pod.finished()) {
    next->finished_seen_ms = stored->pod.finished() ? stored->finished_seen_ms : now_ms;
  }
  next->pod = std::move(pod);
  stored = std::move(next);
  return stored;
}

void PodStore::replace(std::vector<Pod> pods, std::int64_t known_ms) {
  std::unordered_set<std::string> listed;
  for (const auto& pod : pods) {
    listed.insert(object_uid(pod));
  }
  for (auto& [uid, stored] : pods_) {
    if (stored->gone_ms == 0 && !listed.contains(object_uid(stored->pod))) {
      mark_deleted(stored, known_ms);
    }
  }
  for (auto& pod : pods) {
    put(std::move(pod), known_ms);
  }
}

void PodStore::apply(WatchEvent event, std::int64_t now_ms) {
  switch (event.type) {
    case WatchEvent::Type::kAdded:
    case WatchEvent::Type::kModified:
      put(std::move(event.pod), now_ms);
      break;
    case WatchEvent::Type::kDeleted:
      mark_deleted(put(std::move(event.pod), now_ms), now_ms);
      break;
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
