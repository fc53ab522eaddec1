#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"

namespace ceems::store {

/// The upgrade of a database that is already in use: of a file of the reference's version 9, or of
/// an older database of ours. Questions about people, projects, clusters and who owns a unit are
/// answered as before the upgrade. Everything else asks ready() first: queries of units, usage and
/// counts, because the indexes that they need do not exist yet, and all writing. Thread-safe,
/// except start() and stop().
class UpgradeInUse {
 public:
  /// `on_failed` may be empty.
  explicit UpgradeInUse(std::function<void(const Error&)> on_failed)
      : on_failed_(std::move(on_failed)) {}

  /// Runs `work` on a thread of its own. ready() fails until it has succeeded.
  void start(std::function<Result<>(const std::stop_token& stop)> work);
  /// Ends the thread. Calls `interrupt`, if there is one, again and again until `work` has
  /// returned.
  void stop(const std::function<void()>& interrupt = {});

  /// kUnavailable during the upgrade and after one that failed. Without an upgrade, it succeeds.
  [[nodiscard]] Result<> ready() const;
  /// Waits for the end of the upgrade. False after an error or a stop.
  bool wait(const std::stop_token& stop);

 private:
  void finish(bool ready);

  std::function<void(const Error&)> on_failed_;
  std::atomic<bool> ready_ = true;
  std::atomic<bool> finished_ = true;
  Mutex mutex_;  ///< for changed_
  Condition changed_;
  std::jthread thread_;
};

}  // namespace ceems::store
