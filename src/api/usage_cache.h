#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"

namespace ceems::api {

/// Caches answers of usage/current, which sum over many rows and which dashboards request
/// repeatedly. An entry is valid for 15 minutes or until the next commit, because a commit may
/// bring new usage or revoke a right. Keys are compared as a whole, not by hash. Safe for
/// concurrent use; memory is bounded.
class UsageCache {
 public:
  struct Hit {
    std::shared_ptr<const std::string> data;
    std::int64_t expires_ms = 0;
  };

  std::optional<Hit> find(const std::string& key, std::uint64_t generation, std::int64_t now_ms);
  void store(std::string key, std::uint64_t generation, std::int64_t now_ms, std::string data);

 private:
  struct Entry {
    std::shared_ptr<const std::string> data;
    std::int64_t expires_ms = 0;
  };

  Mutex mutex_;
  std::uint64_t generation_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Entry> entries_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
