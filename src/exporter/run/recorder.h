#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/account/account.h"
#include "exporter/marks/ledger.h"
#include "exporter/run/job_source.h"
#include "exporter/run/report/summary.h"

namespace ceems::exporter::run {

/// Turns the samples of the energy account into lines for the job file and into the summary of the
/// node. Safe for concurrent use.
class Recorder {
 public:
  /// `begin` has the names and the start. `interval`: of the sampler. `clock` must outlive it.
  /// `marks`: what the job says about itself; may be null.
  Recorder(NodeSummary begin,
           std::shared_ptr<const JobSource> source,
           std::shared_ptr<marks::Ledger> marks,
           std::chrono::milliseconds interval,
           const Clock& clock);

  /// Takes a sample at `time`.
  void take(const energy::Account& account, Clock::SteadyTime time) CEEMS_EXCLUDES(mutex_);

  /// The lines since the last call, and the summary that belongs to them.
  struct Part {
    std::string lines;
    NodeSummary summary;
  };
  Part take_part() CEEMS_EXCLUDES(mutex_);
  /// Only every `stride`-th sample becomes lines from now on.
  void set_stride(std::uint64_t stride) CEEMS_EXCLUDES(mutex_);
  /// Where the ranks of the job are on this node.
  void set_placement(std::string text, std::vector<std::string> faults) CEEMS_EXCLUDES(mutex_);
  /// The command ended with this status, on this node.
  void end(std::optional<int> exit_status) CEEMS_EXCLUDES(mutex_);

 private:
  void take_use(const energy::Account& account) CEEMS_REQUIRES(mutex_);
  void take_marks(double seconds) CEEMS_REQUIRES(mutex_);
  void add_line(std::string_view name, double value, const std::string& labels = {})
      CEEMS_REQUIRES(mutex_);
  void add_lines(const UnitStats& stats) CEEMS_REQUIRES(mutex_);
  void add_lines_of_marks() CEEMS_REQUIRES(mutex_);

  const std::shared_ptr<const JobSource> source_;
  const std::shared_ptr<marks::Ledger> marks_;
  const std::chrono::milliseconds interval_;
  const Clock& clock_;
  const std::string labels_;  // of all lines

  Mutex mutex_;
  NodeSummary summary_ CEEMS_GUARDED_BY(mutex_);
  std::string lines_ CEEMS_GUARDED_BY(mutex_);
  std::uint64_t stride_ CEEMS_GUARDED_BY(mutex_) = 1;
  std::optional<Clock::SteadyTime> last_ CEEMS_GUARDED_BY(mutex_);
};

/// How the energy of each domain is known, from what the account has counted so far: by its name.
std::map<std::string, std::string> methods_of(const energy::Account& account);

}  // namespace ceems::exporter::run
