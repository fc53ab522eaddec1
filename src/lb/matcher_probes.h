#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "lb/backends.h"

namespace ceems::lb {

/// Asks all servers whether they honour matchers (matcher_support.h), at once and from then on
/// before what is known expires, so that requests of users find the answer and do not wait for it.
/// The destructor waits for the question that is open: cancel the clients of the servers before.
class MatcherProbes {
 public:
  /// The servers in use, with their types.
  using Targets =
      std::function<std::vector<std::pair<gate::BackendType, std::shared_ptr<const Backends>>>()>;

  /// `targets` is called on the thread.
  MatcherProbes(Targets targets, std::chrono::milliseconds interval);
  MatcherProbes(const MatcherProbes&) = delete;
  MatcherProbes& operator=(const MatcherProbes&) = delete;
  ~MatcherProbes();

  /// After the servers have changed.
  void check_now() CEEMS_EXCLUDES(mutex_);

 private:
  void run(const std::stop_token& stop) CEEMS_EXCLUDES(mutex_);
  void ask_all(const std::stop_token& stop) const;

  Targets targets_;
  std::chrono::milliseconds interval_;
  Mutex mutex_;
  Condition due_changed_;
  bool due_ CEEMS_GUARDED_BY(mutex_) = true;
  std::jthread thread_;  // last, so that it ends before the other members are destroyed
};

}  // namespace ceems::lb
