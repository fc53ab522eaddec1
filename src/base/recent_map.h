#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ceems {

/// A bounded map of what was found out about texts. Two halves: when the recent one is full it
/// becomes the older one, whose entries go unless somebody asks for them. Safe for concurrent use.
template <typename Value>
class RecentMap {
 public:
  /// Keys longer than this many bytes are not worth their memory: they are not kept.
  RecentMap(std::size_t most, std::size_t longest_key) : half_(most / 2), longest_(longest_key) {}

  std::optional<Value> find(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = recent_.find(key); found != recent_.end()) {
      return found->second;
    }
    const auto found = older_.find(key);
    if (found == older_.end()) {
      return std::nullopt;
    }
    auto node = older_.extract(found);
    Value value = node.mapped();
    keep(std::move(node.key()), value);
    return value;
  }

  void store(std::string_view key, Value value) {
    if (key.size() > longest_ || half_ == 0) {
      return;
    }
    const std::scoped_lock lock(mutex_);
    keep(std::string(key), std::move(value));
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Map = std::unordered_map<std::string, Value, Hash, std::equal_to<>>;

  void keep(std::string key, Value value) {
    if (recent_.size() >= half_) {
      older_ = std::exchange(recent_, {});
    }
    recent_.insert_or_assign(std::move(key), std::move(value));
  }

  std::mutex mutex_;
  std::size_t half_;
  std::size_t longest_;
  Map recent_;
  Map older_;
};

}  // namespace ceems
