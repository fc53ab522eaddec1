#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/source/on_change.h"
#include "exporter/unit/unit.h"
#include "exporter/unit/unit_source.h"
#include "os/command.h"

namespace ceems::exporter::lsf {

/// What LSF allocated to one job on this host.
struct Allocation {
  std::size_t slots = 0;  ///< CPUs: how often the host's name is in ALLOC_SLOT
  /// Device minors of whole GPUs (N of /dev/nvidia<N>), ascending and each once.
  std::vector<unsigned> gpu_minors = {};
  bool mig = false;  ///< the job has parts of GPUs, which LSF does not name

  bool operator==(const Allocation&) const = default;
};

/// Allocations by the id of the job, "6" or "6[1]".
using AllocationMap = std::map<std::string, Allocation, std::less<>>;

/// The fields that parse_bjobs() needs: `bjobs -json -o FIELDS`.
inline constexpr std::string_view kBjobsFields = "jobid jobindex alloc_slot nalloc_slot gpu_alloc";

/// Reads the output of bjobs (IBM Spectrum LSF, bjobs -json): the jobs that have slots or GPUs on
/// `host`. Names of hosts are equal if they are equal up to the first dot, in any case. Records
/// without a job id, such as those with an ERROR, are left out. kParse: not such a document.
Result<AllocationMap> parse_bjobs(std::string_view json_text, std::string_view host);

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

/// The units of another source with the CPUs that LSF allocated to them, because their cgroups do
/// not show these. A job that LSF does not know yet keeps the CPUs of its cpuset.
class AllocatedUnits final : public UnitSource {
 public:
  AllocatedUnits(std::shared_ptr<UnitSource> units, std::shared_ptr<Allocations> allocations);

  [[nodiscard]] std::string_view manager() const override { return units_->manager(); }
  [[nodiscard]] std::string_view controller() const override { return units_->controller(); }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds max_age) override;
  Result<std::shared_ptr<const UnitSnapshot>> energy_snapshot(
      std::chrono::milliseconds max_age) override;
  void want_processes() override { units_->want_processes(); }
  [[nodiscard]] bool has_young() const override { return units_->has_young(); }
  void refresh_young() override { units_->refresh_young(); }
  void mark_exported(const UnitSnapshot& snapshot) override { units_->mark_exported(snapshot); }

 private:
  std::shared_ptr<const UnitSnapshot> allocate(std::shared_ptr<const UnitSnapshot> plain);

  const std::shared_ptr<UnitSource> units_;
  const std::shared_ptr<Allocations> allocations_;

  Mutex mutex_;
  // The last result and what it was made of.
  std::shared_ptr<const UnitSnapshot> plain_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const AllocationMap> map_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<const UnitSnapshot> result_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter::lsf
