#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/slurm/account_limits.h"
#include "ingest/manager/slurm/job.h"
#include "ingest/manager/slurm/limits.h"
#include "model/unit.h"

namespace ceems::ingest {

/// The accounting data of one SLURM cluster. Must be called from one thread at a time. If a call
/// fails, it may have passed on only some of the jobs.
class SlurmSource {
 public:
  using JobSink = std::function<void(const SlurmJob&)>;

  virtual ~SlurmSource() = default;
  /// Passes on every run of a job that held resources in the window, without steps. It may pass on
  /// others, too.
  virtual Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) = 0;
  /// Does the same for these raw job ids, whenever the jobs ran.
  virtual Result<> jobs_by_id(const std::vector<std::string>& ids,
                              const JobSink& job,
                              std::stop_token stop) = 0;
  /// Returns which users belong to which accounts, see add_association(). kNoData if there are none
  /// at all, see no_associations().
  virtual Result<std::set<Membership>> associations(std::stop_token stop) = 0;
  /// Returns the coordinators by account. An empty list of accounts is an error, because SLURM
  /// always has at least one.
  virtual Result<ProjectLeads> coordinators(std::stop_token stop) = 0;
  /// Passes on the lines that `sacct --batch-script` prints of these jobs, by the ids that SLURM
  /// shows. Sources without scripts fail.
  virtual Result<> scripts(const std::vector<std::string>& /*ids*/,
                           std::chrono::milliseconds /*timeout*/,
                           const std::function<void(std::string_view)>& /*line*/,
                           const std::stop_token& /*stop*/) {
    return fail(ErrorCode::kUnavailable, "no scripts");
  }
  /// What the partitions allow; nothing from sources that do not know.
  virtual Result<std::optional<PartitionLimits>> limits(const std::stop_token& /*stop*/) {
    return std::nullopt;
  }
  /// What the QOS and associations of the cluster of this name allow; nothing from sources that do
  /// not know.
  virtual Result<std::optional<AccountLimits>> account_limits(const std::string& /*cluster*/,
                                                              const std::stop_token& /*stop*/) {
    return std::nullopt;
  }
};

/// What the configuration decides about jobs.
struct SlurmChoices {
  bool coordinators_lead = false;  ///< coordinators of an account lead the project
  bool reads_js1 = false;          ///< units get what jobstats keeps of them as the tag "js1"
  /// Units get the directives of their script as the tag "script_options", where the command that
  /// submitted them does not say how they asked.
  bool reads_scripts = false;
};

/// Adds the membership of a user in an account, with texts as SLURM prints them. Ignores the user
/// root, the account root and associations without a user, which belong to the account itself.
void add_association(std::string_view account,
                     std::string_view user,
                     std::set<Membership>& members);

/// The error for a list without any association. A cluster that SLURM knows has at least that of
/// root, but the commands end with success for a cluster that it does not know.
std::unexpected<Error> no_associations(std::string_view source, std::string_view cluster);

/// Creates the manager "slurm" of one cluster. It uses sacct and sacctmgr from `cli.path` (or
/// PATH), or with `extra_config.api: rest` slurmrestd at `web.url`. The other keys of extra_config
/// are documented in docs/api/resource-managers.md. kNotFound if sacct does not exist,
/// kInvalidArgument for other configuration errors. `may_become_root` allows commands to run as
/// root by raising capabilities; slurm_manager() sets it if the process is root or may raise them.
Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root);

/// Creates the manager for any source of records. A job that ran at the end of the last window and
/// is missing from the next one is queried by its id, because its end was recorded late. The unit
/// is reported again until a window starts at or after the end of the one that reported it. A job
/// that SLURM no longer knows stays as it is. A job whose start was recorded late counts from its
/// start. `clock` limits the time for scripts, and says when limits are read again.
std::unique_ptr<ResourceManager> make_slurm(std::string cluster_id,
                                            std::unique_ptr<SlurmSource> source,
                                            TimeZone zone,
                                            SlurmChoices choices = {},
                                            const Clock& clock = real_clock());

}  // namespace ceems::ingest
