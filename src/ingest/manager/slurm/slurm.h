#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/slurm/job.h"
#include "model/unit.h"

namespace ceems::ingest {

/// Where the accounting data of one SLURM cluster come from. Calls come from one thread at a time.
/// After an error the jobs that were handed over may be incomplete.
class SlurmSource {
 public:
  using JobSink = std::function<void(const SlurmJob&)>;

  virtual ~SlurmSource() = default;
  /// Every start of a job, steps left out, that held resources in the window; others may come too.
  virtual Result<> jobs(model::Window window, const JobSink& job, std::stop_token stop) = 0;
  /// The same for these raw job ids, whenever they ran.
  virtual Result<> jobs_by_id(const std::vector<std::string>& ids,
                              const JobSink& job,
                              std::stop_token stop) = 0;
  /// Which users belong to which accounts, see add_association().
  virtual Result<std::set<Membership>> associations(std::stop_token stop) = 0;
  /// Coordinators of accounts, by account. An error when no account is listed: there always is one.
  virtual Result<ProjectLeads> coordinators(std::stop_token stop) = 0;
};

/// Adds the membership of a user in an account, with texts as SLURM has them. Associations of the
/// user or account root and those of an account itself, without user, are left out.
void add_association(std::string_view account,
                     std::string_view user,
                     std::set<Membership>& members);

/// Manager "slurm" of one cluster: over sacct and sacctmgr of `cli.path` (or of PATH), or with
/// `extra_config.api: rest` over slurmrestd at `web.url`. Other keys of extra_config are in
/// docs/api/resource-managers.md. kNotFound when sacct is not there, kInvalidArgument for other
/// configuration errors. `may_become_root` lets commands run as root by raising capabilities;
/// production passes what the process holds.
Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root);

/// The manager over any source of records. A job that ran at the end of the last window and is not
/// in the next one is queried by its id: its end was recorded late. The unit is reported again
/// until a window starts at or after the end of the one that reported it; a job that SLURM no
/// longer knows stays as it is. A job whose start was recorded late counts from its start. With
/// `coordinators_lead` the coordinators of an account lead the project.
std::unique_ptr<ResourceManager> make_slurm(std::string cluster_id,
                                            std::unique_ptr<SlurmSource> source,
                                            TimeZone zone,
                                            bool coordinators_lead = false);

}  // namespace ceems::ingest
