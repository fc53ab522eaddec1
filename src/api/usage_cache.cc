#include "api/usage_cache.h"

#include <utility>

namespace ceems::api {
namespace {

constexpr std::int64_t kLifeMs = 15LL * 60 * 1000;
constexpr std::size_t kMaxBytes = std::size_t{32} << 20U;

}  // namespace

std::optional<UsageCache::Hit> UsageCache::find(const std::string& key,
                                                std::uint64_t generation,
                                                std::int64_t now_ms) {
  const MutexLock lock(mutex_);
  if (generation != generation_) {
    return std::nullopt;
  }
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.expires_ms <= now_ms) {
    return std::nullopt;
  }
  return Hit{found->second.data, found->second.expires_ms};
}

void UsageCache::store(std::string key,
                       std::uint64_t generation,
                       std::int64_t now_ms,
                       std::string data) {
  const MutexLock lock(mutex_);
  if (generation < generation_) {
    return;  // the data is older than the last commit
  }
  const std::size_t size = key.size() + data.size();
  if (generation != generation_ || bytes_ + size > kMaxBytes) {
    entries_.clear();
    bytes_ = 0;
    generation_ = generation;
  }
  if (size > kMaxBytes / 4) {
    return;
  }
  bytes_ += size;
  entries_.insert_or_assign(
      std::move(key),
      Entry{std::make_shared<const std::string>(std::move(data)), now_ms + kLifeMs});
}

}  // namespace ceems::api
