#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "net/relay/server_addresses.h"
#include "testing/eventually.h"

namespace ceems::net {

/// A resolver whose lookups wait until the test supplies their results.
class FakeResolver {
 public:
  FakeResolver() = default;
  FakeResolver(const FakeResolver&) = delete;
  FakeResolver& operator=(const FakeResolver&) = delete;
  ~FakeResolver() { answer_all(fail(ErrorCode::kUnavailable, "no such name")); }

  [[nodiscard]] Lookup lookup() const {
    return [shared = shared_](const std::string& host,
                              const std::string& port) -> Result<SocketAddresses> {
      MutexLock lock(shared->mutex);
      shared->asked = host + ":" + port;
      ++shared->begun;
      shared->changed.notify_all();
      shared->changed.wait(lock, [&]() CEEMS_REQUIRES(shared->mutex) {
        return !shared->answers.empty() || shared->rest;
      });
      if (shared->answers.empty()) {
        return *shared->rest;
      }
      auto answer = std::move(shared->answers.front());
      shared->answers.erase(shared->answers.begin());
      return answer;
    };
  }
  /// Ends one lookup, either the current or the next one, with this result.
  void answer(Result<SocketAddresses> found) const {
    const MutexLock lock(shared_->mutex);
    shared_->answers.push_back(std::move(found));
    shared_->changed.notify_all();
  }
  /// Ends all other lookups with this result.
  void answer_all(Result<SocketAddresses> found) const {
    const MutexLock lock(shared_->mutex);
    shared_->rest = std::move(found);
    shared_->changed.notify_all();
  }
  void wait_for(int lookups) const {
    MutexLock lock(shared_->mutex);
    EXPECT_TRUE(shared_->changed.wait_for(
        lock, ceems::testing::kPatience,
        [&]() CEEMS_REQUIRES(shared_->mutex) { return shared_->begun >= lookups; }));
  }
  /// Waits until no lookup and no server uses the resolver any more.
  [[nodiscard]] bool is_left_alone() const {
    return ceems::testing::eventually([this] { return shared_.use_count() == 1; });
  }
  [[nodiscard]] int begun() const {
    const MutexLock lock(shared_->mutex);
    return shared_->begun;
  }
  [[nodiscard]] std::string asked() const {
    const MutexLock lock(shared_->mutex);
    return shared_->asked;
  }

 private:
  struct Shared {
    Mutex mutex;
    Condition changed;
    std::vector<Result<SocketAddresses>> answers CEEMS_GUARDED_BY(mutex);
    std::optional<Result<SocketAddresses>> rest CEEMS_GUARDED_BY(mutex);
    int begun CEEMS_GUARDED_BY(mutex) = 0;
    std::string asked CEEMS_GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace ceems::net
