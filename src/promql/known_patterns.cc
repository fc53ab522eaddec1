#include "promql/known_patterns.h"

#include <utility>

namespace ceems::promql {
namespace {

constexpr std::size_t kLongest = 1024;  // longer ones are not worth their memory

}  // namespace

std::optional<bool> KnownPatterns::accepts_empty(std::string_view pattern) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = recent_.find(pattern); found != recent_.end()) {
    return found->second;
  }
  const auto found = older_.find(pattern);
  if (found == older_.end()) {
    return std::nullopt;
  }
  const bool accepts = found->second;
  keep(pattern, accepts);
  return accepts;
}

void KnownPatterns::add(std::string_view pattern, bool accepts_empty) {
  if (pattern.size() > kLongest || half_ == 0) {
    return;
  }
  const std::scoped_lock lock(mutex_);
  keep(pattern, accepts_empty);
}

void KnownPatterns::keep(std::string_view pattern, bool accepts_empty) {
  std::string key(pattern);  // it may be part of what goes
  if (recent_.size() >= half_) {
    older_ = std::exchange(recent_, {});
  }
  recent_.insert_or_assign(std::move(key), accepts_empty);
}

}  // namespace ceems::promql
