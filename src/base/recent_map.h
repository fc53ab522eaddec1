#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"

namespace ceems {

/// A bounded map of results by text, for caches. When it is full, each new entry evicts the least
/// recently used one, so no call pays for many evictions. Safe for concurrent use.
template <typename Value>
class RecentMap {
 public:
  /// Holds up to `max_entries`. Keys longer than `max_key_bytes` are not kept, because they are not
  /// worth their memory.
  RecentMap(std::size_t max_entries, std::size_t max_key_bytes)
      : max_entries_(max_entries), max_key_bytes_(max_key_bytes) {
    places_.reserve(max_entries + 1);
  }

  std::optional<Value> find(std::string_view key) {
    const MutexLock lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) {
      return std::nullopt;
    }
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  void store(std::string_view key, Value value) {
    if (key.size() > max_key_bytes_ || max_entries_ == 0) {
      return;
    }
    std::list<Entry> spare;  // entries left here are destroyed after the mutex is released
    spare.push_back({std::string(key), std::move(value)});
    const MutexLock lock(mutex_);
    const auto [place, is_new] = places_.try_emplace(spare.front().key, spare.begin());
    if (!is_new) {
      std::swap(place->second->value, spare.front().value);
      entries_.splice(entries_.begin(), entries_, place->second);
      return;
    }
    entries_.splice(entries_.begin(), spare);
    if (entries_.size() > max_entries_) {
      places_.erase(entries_.back().key);
      spare.splice(spare.begin(), entries_, std::prev(entries_.end()));
    }
  }

 private:
  struct Entry {
    std::string key;
    Value value;
  };
  /// The keys refer to the texts of the entries.
  using Places = std::unordered_map<std::string_view, typename std::list<Entry>::iterator>;

  const std::size_t max_entries_;
  const std::size_t max_key_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ CEEMS_GUARDED_BY(mutex_);  ///< the most recently used first
  Places places_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems
