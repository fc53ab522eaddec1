#include "store/sql/upgrading.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace ceems::store {

Result<> UpgradeInUse::ready() const {
  return ready_ ? Result<>() : fail(ErrorCode::kUnavailable, "the database is being upgraded");
}

void UpgradeInUse::finish(bool ready) {
  ready_ = ready;
  const MutexLock lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool UpgradeInUse::wait(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return changed_.wait(lock, stop, [this] { return finished_.load(); }) && ready_;
}

void UpgradeInUse::start(std::function<Result<>(const std::stop_token& stop)> work) {
  ready_ = false;
  finished_ = false;
  thread_ = std::jthread([this, work = std::move(work)](const std::stop_token& stop) {
    const auto done = work(stop);
    if (!done && on_failed_ && !stop.stop_requested()) {
      on_failed_(done.error());
    } else if (!done && !stop.stop_requested()) {
      log::error("cannot upgrade the database", {{"err", done.error().message}});
    }
    finish(done.has_value());
  });
}

void UpgradeInUse::stop(const std::function<void()>& interrupt) {
  constexpr std::chrono::milliseconds kPause{20};
  if (!thread_.joinable()) {
    return;
  }
  thread_.request_stop();
  while (interrupt && !finished_) {
    interrupt();
    std::this_thread::sleep_for(kPause);
  }
  thread_.join();
}

}  // namespace ceems::store
