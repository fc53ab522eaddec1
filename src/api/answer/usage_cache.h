#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"

namespace ceems::api {

/// Caches answers of usage/current, which sum over many rows and which dashboards request
/// repeatedly. An entry is valid for 15 minutes or until the next commit, because that may bring
/// new usage or revoke a right (Reader::usage_generation()). Keys are compared as a whole, not by
/// hash. Keys and answers take at most kMaxBytes; the least recently used ones make room for new
/// ones. Safe for concurrent use.
class UsageCache {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20U;
  /// Larger answers are not kept, because they would evict all others.
  static constexpr std::size_t kMaxEntryBytes = kMaxBytes / 2;

  struct Hit {
    std::shared_ptr<const std::string> data;
    std::int64_t expires_ms = 0;
  };

  std::optional<Hit> find(const std::string& key, std::uint64_t generation, std::int64_t now_ms);
  void store(std::string key, std::uint64_t generation, std::int64_t now_ms, std::string data);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const std::string> data;
    std::int64_t expires_ms = 0;
  };
  using Entries = std::list<Entry>;

  void remove(Entries::iterator entry) CEEMS_REQUIRES(mutex_);

  Mutex mutex_;
  std::uint64_t generation_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ CEEMS_GUARDED_BY(mutex_) = 0;
  Entries entries_ CEEMS_GUARDED_BY(mutex_);  ///< the most recently used first
  /// The keys refer to texts in the entries.
  std::unordered_map<std::string_view, Entries::iterator> places_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
