#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/lsf/bjobs.h"
#include "exporter/source/on_change.h"
#include "exporter/unit/unit.h"
#include "os/command.h"

namespace ceems::exporter::lsf {

struct AllocationOptions {
  /// Asks LSF. Called in a separate thread; must end soon after the token is stopped.
  std::function<Result<AllocationMap>(const std::stop_token&)> fetch;
  OnChangeTimes times = {};
};

/// What LSF allocated to the jobs of this host (see OnChange). While LSF does not answer, the last
/// answer holds. A job that LSF no longer lists keeps its allocation while it is in the snapshots.
/// Thread-safe.
class Allocations {
 public:
  /// `clock` must outlive it.
  Allocations(AllocationOptions options, const Clock& clock);

  void start() { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) { source_.wait_first(deadline); }

  /// The allocations by the last answer, which is refreshed if these are not the jobs that it
  /// covers. Null before the first answer.
  std::shared_ptr<const AllocationMap> of(const UnitSnapshot& snapshot);
  /// What of() returned last.
  [[nodiscard]] std::shared_ptr<const AllocationMap> last() const;

 private:
  void take(std::shared_ptr<const AllocationMap> fetched, const UnitSnapshot& snapshot)
      CEEMS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::shared_ptr<const AllocationMap> fetched_ CEEMS_GUARDED_BY(mutex_);  // the last answer
  std::shared_ptr<const AllocationMap> map_ CEEMS_GUARDED_BY(mutex_);      // with what was kept
  OnChange<AllocationMap> source_;  // value() is called with the mutex locked
};

/// Runs `bjobs` at this path for the jobs of `host`, for at most a second. Errors: any of the
/// runner's, an exit status other than 0, output of more than 16 MiB or that is not readable.
Result<AllocationMap> run_bjobs(os::CommandRunner& runner,
                                const std::string& path,
                                const std::string& host,
                                const std::stop_token& stop);

}  // namespace ceems::exporter::lsf
