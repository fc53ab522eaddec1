#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace ceems::exporter {

/// What shows that a manager runs a job on this node.
enum class JobEvidence {
  kNone,
  kStep,  ///< one of its steps runs
  kJob,   ///< the job runs, whether or not a step does
};

struct RunningJob {
  std::string id;
  std::string host;           ///< virtual node name; empty if there is none
  Clock::SystemTime since{};  ///< when its evidence was written
};

struct RunningJobsOptions {
  /// SlurmdSpoolDir of slurm.conf, each with %n and %h; those that do not exist count as empty.
  std::vector<std::string> spools;
  std::string map_directory;  ///< of prologs, as in gpu::SlurmClaimOptions; empty: none
  uid_t trusted_uid = 0;      ///< another user who may own the files, for tests
};

/// Which jobs slurmd runs, by what only root can write:
///
/// - SPOOL/jobNNNNN, the directory of a batch script, exists while the script runs (kJob).
/// - SPOOL/NODE_JOB.STEP is the socket of a step's daemon. The steps extern, batch and interactive
///   last as long as the job (kJob), others do not (kStep).
/// - MAP/JOB or MAP/NODE.JOB, the file that a prolog writes and the epilog removes (kJob).
///
/// A file of a prolog without NODE, and a spool without %n, count for each virtual node: SLURM of
/// Debian names the node in the cgroups of all jobs, and prologs rarely do.
///
/// A directory that belongs to another user than root, or that others may write to, counts as
/// empty. Slurm names the files in slurmd/slurmd/req.c and interfaces/stepd_api.c. Directories are
/// listed again after kPause. Not thread-safe.
class RunningJobs {
 public:
  static constexpr auto kPause = std::chrono::seconds(2);

  explicit RunningJobs(RunningJobsOptions options);

  JobEvidence look(const std::string& id, const std::string& host, Clock::SteadyTime now);
  /// The jobs of the map directory.
  const std::vector<RunningJob>& listed(Clock::SteadyTime now);

 private:
  void refresh(Clock::SteadyTime now);
  void read_spool(const std::string& path, std::string_view host, bool of_all);
  void read_map();
  [[nodiscard]] bool is_trusted(const std::string& path,
                                mode_t type,
                                Clock::SystemTime* time) const;

  const RunningJobsOptions options_;
  std::string hostname_;
  Clock::SteadyTime read_{};
  bool ever_read_ = false;
  std::set<std::string, std::less<>> hosts_;            // virtual nodes that were asked for
  std::set<std::pair<std::string, std::string>> jobs_;  // host ("" for any) and id
  std::set<std::pair<std::string, std::string>> steps_;
  std::set<std::string, std::less<>> anywhere_;  // jobs whose virtual node is not named
  std::vector<RunningJob> listed_;
};

/// The job and step in the name of a step daemon's socket, "NODE_JOB.STEP" or "NODE_JOB.STEP.HET".
struct StepSocket {
  std::string_view node;
  std::string_view job;
  bool lasts = false;  ///< the step lasts as long as the job
};
std::optional<StepSocket> parse_step_socket(std::string_view name);

}  // namespace ceems::exporter
