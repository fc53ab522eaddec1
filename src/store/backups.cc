#include "store/backups.h"

#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace ceems::store {

Backups::Backups(Database& database, std::string directory, std::chrono::milliseconds interval)
    : database_(database),
      directory_(std::move(directory)),
      interval_(interval),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Backups::run(const std::stop_token& stop) {
  Mutex mutex;
  Condition wake;
  while (true) {
    {
      MutexLock lock(mutex);
      wake.wait_for(lock, stop, interval_, [] { return false; });
    }
    if (stop.stop_requested()) {
      return;
    }
    const auto name = database_.backup(directory_, stop);
    if (name) {
      log::info("backup written", {{"file", *name}});
    } else {
      log::error("backup failed", {{"err", name.error().message}});
    }
  }
}

}  // namespace ceems::store
