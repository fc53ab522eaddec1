#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/lsf/bjobs.h"
#include "exporter/source/slow_source.h"
#include "exporter/unit/unit.h"
#include "os/command.h"

namespace ceems::exporter::lsf {

struct AllocationOptions {
  /// Asks LSF. Called in a separate thread; must end soon after the token is stopped.
  std::function<Result<AllocationMap>(const std::stop_token&)> fetch;
  /// Age at which LSF is asked again for the same jobs.
  std::chrono::milliseconds refresh = std::chrono::minutes(15);
  std::chrono::milliseconds pause_after_error{5000};
  /// How long a snapshot with new jobs waits for their allocations, and how often the thread checks
  /// for requests.
  std::chrono::milliseconds patience{20};
  std::chrono::milliseconds period{1000};
  std::chrono::milliseconds first_wait{1500};  ///< how long the start waits for the first answer
};

/// What LSF allocated to the jobs of this host. A thread asks LSF when the jobs have changed, and
/// every 15 minutes. While LSF does not answer, the last answer holds. A job that LSF no longer
/// lists keeps its allocation while it is in the snapshots. Thread-safe.
class Allocations {
 public:
  /// `clock` must outlive it.
  Allocations(AllocationOptions options, const Clock& clock);

  void start() { source_.start(); }
  void wait_first(std::chrono::steady_clock::time_point deadline) { source_.wait_first(deadline); }

  /// The allocations by the last answer, which is asked for again if these are not the jobs that it
  /// was asked for. Null before the first answer.
  std::shared_ptr<const AllocationMap> of(const UnitSnapshot& snapshot);
  /// What of() returned last.
  [[nodiscard]] std::shared_ptr<const AllocationMap> last() const;

 private:
  struct Fetched {
    std::uint64_t request = 0;  // the newest request when fetching began
    std::shared_ptr<const AllocationMap> map;
  };

  Result<Fetched> read(const std::stop_token& stop);
  void take(std::shared_ptr<const AllocationMap> fetched, const UnitSnapshot& snapshot)
      CEEMS_REQUIRES(mutex_);

  const AllocationOptions options_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requested_ = 0;

  // Used by the thread only.
  Fetched done_;
  std::optional<Error> error_;
  std::uint64_t failed_request_ = 0;
  Clock::SteadyTime retry_at_{};

  mutable Mutex mutex_;
  std::vector<std::string> jobs_ CEEMS_GUARDED_BY(mutex_);  // of the newest request
  bool waiting_ CEEMS_GUARDED_BY(mutex_) = true;            // for the answer to it
  Clock::SteadyTime refreshed_ CEEMS_GUARDED_BY(mutex_){};
  std::shared_ptr<const AllocationMap> fetched_ CEEMS_GUARDED_BY(mutex_);  // the last answer
  std::shared_ptr<const AllocationMap> map_ CEEMS_GUARDED_BY(mutex_);      // with what was kept

  SlowSource<Fetched> source_;  // the last member: its thread uses all of the above
};

/// Runs `bjobs` at this path for the jobs of `host`, for at most a second. Errors: those of the
/// runner, an exit status other than 0, output of more than 16 MiB or that is not readable.
Result<AllocationMap> run_bjobs(os::CommandRunner& runner,
                                const std::string& path,
                                const std::string& host,
                                const std::stop_token& stop);

}  // namespace ceems::exporter::lsf
