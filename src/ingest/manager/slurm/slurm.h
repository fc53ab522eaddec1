#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "ingest/manager/slurm/source.h"

namespace ceems::ingest {

/// Manager "slurm" of one cluster: over sacct and sacctmgr of `cli.path` (or of PATH), or with
/// `extra_config.api: rest` over slurmrestd at `web.url`. Other keys of extra_config are in
/// docs/api/resource-managers.md. kNotFound when sacct is not there, kInvalidArgument for other
/// configuration errors. `may_become_root` lets commands run as root by raising capabilities;
/// production passes what the process holds.
Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root);

/// The manager over any source of records. A job that ran at the end of the last window and is not
/// in the next one is asked for by its id: its end was recorded late. The unit is told again until
/// a window starts behind the one it was told in; one that SLURM knows no more stays as it is. A
/// job whose start was recorded late counts from its start. With `coordinators_lead` the
/// coordinators of an account lead the project.
std::unique_ptr<ResourceManager> make_slurm(std::string cluster_id,
                                            std::unique_ptr<SlurmSource> source,
                                            TimeZone zone,
                                            bool coordinators_lead = false);

ManagerSpec slurm_manager();

}  // namespace ceems::ingest
