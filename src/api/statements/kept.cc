#include "api/statements/kept.h"

#include <algorithm>
#include <utility>

namespace ceems::api {

KeptStatements::Statement KeptStatements::find(const std::string& key) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_,
                [now = clock_->steady_now()](const Entry& entry) { return entry.until <= now; });
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  return found == entries_.end() ? nullptr : found->statement;
}

void KeptStatements::keep(std::string key, Statement statement) {
  const MutexLock lock(mutex_);
  std::erase_if(entries_, [&key](const Entry& entry) { return entry.key == key; });
  if (entries_.size() >= kMaxKept) {
    entries_.erase(entries_.begin());
  }
  entries_.push_back({.key = std::move(key),
                      .until = clock_->steady_now() + kKept,
                      .statement = std::move(statement)});
}

KeptStatements::Turn KeptStatements::take_turn() {
  const MutexLock lock(mutex_);
  if (turns_ >= kMaxTurns) {
    return nullptr;
  }
  ++turns_;
  return {this, [](KeptStatements* self) {
            const MutexLock again(self->mutex_);
            --self->turns_;
          }};
}

}  // namespace ceems::api
