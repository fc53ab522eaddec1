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

/// A bounded map of what was found out about texts. When it is full, the one that nobody has asked
/// for or stored for the longest time goes: one at a time, so that no call pays for many. Safe for
/// concurrent use.
template <typename Value>
class RecentMap {
 public:
  /// Keys longer than this many bytes are not worth their memory: they are not kept.
  RecentMap(std::size_t most, std::size_t longest_key) : most_(most), longest_(longest_key) {
    places_.reserve(most + 1);
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
    if (key.size() > longest_ || most_ == 0) {
      return;
    }
    std::list<Entry> spare;  // what is left there is taken down when the lock is open again
    spare.push_back({std::string(key), std::move(value)});
    const MutexLock lock(mutex_);
    const auto [place, is_new] = places_.try_emplace(spare.front().key, spare.begin());
    if (!is_new) {
      std::swap(place->second->value, spare.front().value);
      entries_.splice(entries_.begin(), entries_, place->second);
      return;
    }
    entries_.splice(entries_.begin(), spare);
    if (entries_.size() > most_) {
      places_.erase(entries_.back().key);
      spare.splice(spare.begin(), entries_, std::prev(entries_.end()));
    }
  }

 private:
  struct Entry {
    std::string key;
    Value value;
  };
  /// By the keys of the entries themselves.
  using Places = std::unordered_map<std::string_view, typename std::list<Entry>::iterator>;

  const std::size_t most_;
  const std::size_t longest_;
  Mutex mutex_;
  std::list<Entry> entries_ CEEMS_GUARDED_BY(mutex_);  ///< the most recent one in front
  Places places_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems
