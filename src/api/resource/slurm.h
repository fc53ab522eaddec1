#pragma once

#include "api/resource/manager.h"

namespace ceems::api {

/// How sacct is started (docs/api/resource-managers.md).
enum class SlurmMode {
  kCapability,  ///< as root, by raising CAP_SETUID and CAP_SETGID
  kSudo,        ///< through `sudo -n -E`
  kNative,      ///< as the current user, who may not see the jobs of others
};

/// Manager "slurm" of one cluster, over sacct and sacctmgr of `cli.path` (or of PATH).
/// extra_config: `command_timeout` (5m). kNotFound when sacct is not there, kInvalidArgument for
/// other configuration errors. `may_become_root` decides for kCapability; production passes what
/// the process holds.
Result<std::unique_ptr<ResourceManager>> create_slurm(const ClusterConfig& config,
                                                      const ManagerContext& context,
                                                      bool may_become_root);

ManagerSpec slurm_manager();

}  // namespace ceems::api
