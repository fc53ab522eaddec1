#include "api/answer/usage_cache.h"

#include <iterator>
#include <utility>

namespace ceems::api {
namespace {

constexpr std::int64_t kLifeMs = 15LL * 60 * 1000;

}  // namespace

std::optional<UsageCache::Hit> UsageCache::find(const std::string& key,
                                                std::uint64_t generation,
                                                std::int64_t now_ms) {
  const MutexLock lock(mutex_);
  if (generation != generation_) {
    return std::nullopt;
  }
  const auto found = places_.find(key);
  if (found == places_.end() || found->second->expires_ms <= now_ms) {
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return Hit{found->second->data, found->second->expires_ms};
}

void UsageCache::store(std::string key,
                       std::uint64_t generation,
                       std::int64_t now_ms,
                       std::string data) {
  const MutexLock lock(mutex_);
  if (generation < generation_) {
    return;  // the data is older than the last commit
  }
  if (generation != generation_) {
    places_.clear();
    entries_.clear();
    bytes_ = 0;
    generation_ = generation;
  }
  const std::size_t size = key.size() + data.size();
  if (size > kMaxEntryBytes) {
    return;
  }
  if (const auto old = places_.find(key); old != places_.end()) {
    remove(old->second);
  }
  while (bytes_ + size > kMaxBytes) {
    remove(std::prev(entries_.end()));
  }
  data.shrink_to_fit();
  entries_.push_front(Entry{.key = std::move(key),
                            .data = std::make_shared<const std::string>(std::move(data)),
                            .expires_ms = now_ms + kLifeMs});
  places_.emplace(entries_.front().key, entries_.begin());
  bytes_ += size;
}

void UsageCache::remove(Entries::iterator entry) {
  bytes_ -= entry->key.size() + entry->data->size();
  places_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace ceems::api
