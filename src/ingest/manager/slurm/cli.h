#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ingest/manager/slurm/source.h"
#include "os/command.h"

namespace ceems::ingest {

/// How sacct is started (docs/api/resource-managers.md).
enum class SlurmMode {
  kCapability,  ///< as root, by raising CAP_SETUID and CAP_SETGID
  kSudo,        ///< through `sudo -n -E`
  kNative,      ///< as the current user, who may not see the jobs of others
};

struct SlurmCliOptions {
  std::string cluster_id;           ///< for the log
  std::filesystem::path directory;  ///< of sacct and sacctmgr
  SlurmMode mode = SlurmMode::kNative;
  std::string sudo = {};                                ///< path, for kSudo
  std::map<std::string, std::string> environment = {};  ///< TZ and SLURM_TIME_FORMAT are set here
  std::chrono::milliseconds timeout{};
  std::string slurm_cluster = {};  ///< name in slurmdbd; empty: as slurm.conf has it
  MemoryRule memory = MemoryRule::kTruncated;
};

/// SLURM over sacct and sacctmgr. Their output is read line by line.
std::unique_ptr<SlurmSource> make_slurm_cli(SlurmCliOptions options, os::CommandRunner& runner);

/// "proj1|alice,bob", a line of
/// `sacctmgr --parsable2 --noheader list account withcoord format=Account,Coordinators`. False for
/// a line that names no account.
bool add_coordinator_line(std::string_view line, ProjectLeads& leads);

}  // namespace ceems::ingest
