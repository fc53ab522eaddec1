#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/state/learned.h"

namespace ceems::exporter::energy {

/// The file that keeps learned values over restarts (docs/energy.md). Problems with it never stop
/// or delay the caller: a file that cannot be used is logged and ignored, one that cannot be
/// written is logged once, and a disk that hangs holds up only the thread that writes.
///
/// load() and save() are called by one thread, after privileges were dropped, so that the user of
/// the service owns the file. The destructor waits for a write that is under way.
class StateFile {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  static constexpr auto kPause = std::chrono::minutes(5);

  /// Does no I/O. `clock` must outlive the object.
  StateFile(std::string path, MachineIdentity machine, const Clock& clock);

  /// Reads the file. Empty if there is none or if it is refused, which is logged.
  Learned load();
  /// Whether save() is wanted: kPause after load() or after the last save().
  [[nodiscard]] bool due() const { return clock_.steady_now() - last_ >= kPause; }
  /// Writes `learned`, and entries of the file that it does not have, in another thread, if this
  /// changes the file. Leaves it to the next call if that thread still writes.
  void save(const Learned& learned);
  /// The same when the program ends. Returns when the file is written.
  void save_last(const Learned& learned);

 private:
  std::optional<std::string> changed_content(const Learned& learned) CEEMS_EXCLUDES(mutex_);
  void write(const std::string& text) CEEMS_EXCLUDES(mutex_);
  void warn_once(const Error& error) CEEMS_EXCLUDES(mutex_);

  const std::string path_;
  const MachineIdentity machine_;
  const Clock& clock_;
  Clock::SteadyTime last_;
  Learned loaded_;

  Mutex mutex_;
  std::string written_ CEEMS_GUARDED_BY(mutex_);  // the content of the file, as far as is known
  bool writing_ CEEMS_GUARDED_BY(mutex_) = false;
  bool failing_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread writer_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter::energy
