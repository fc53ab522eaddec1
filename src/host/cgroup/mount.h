#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "host/paths.h"

namespace ceems::host {

/// Which interface a cgroup file system offers. Hybrid hosts (v1 controllers beside an empty v2
/// hierarchy) are kLegacy: the controllers are what we read.
enum class CgroupMode { kUnified, kLegacy };

struct CgroupMount {
  CgroupMode mode = CgroupMode::kLegacy;
  /// The kernel's file system, not a tree of plain files: its pids are real, its directories have
  /// no other names, st_nlink counts sub-directories and cgroup.events can be waited for.
  bool live = false;
};

/// Tells the mode of `root`: `force` "v1" or "v2" decides; else the type of the file system there
/// (a directory of v1 mounts counts); else, for plain files, the one at /sys/fs/cgroup.
CgroupMount detect_cgroup(const std::filesystem::path& root, std::string_view force = {});

/// The directory below `root` that holds v1 hierarchy `subsystem`: kernels mount cpu and cpuacct
/// (net_cls and net_prio) together under either order of the two names, or apart. `combined_first`
/// prefers the joint directory to one of the exact name. Nothing where none exists.
std::optional<std::string> find_v1_hierarchy(const std::filesystem::path& root,
                                             std::string_view subsystem,
                                             bool combined_first);

/// True where SLURM, libvirt or Kubernetes have made cgroups, so that a collector of its own should
/// look after them. Looks at a few well-known places only.
bool slurm_present(const Paths& paths, const CgroupMount& mount, std::string_view active);
bool resource_manager_present(const Paths& paths,
                              const CgroupMount& mount,
                              std::string_view active);

/// "slurmstepd.scope" or "<node>_slurmstepd.scope": a SLURM root in v2; gives the node name, "" for
/// the plain form.
std::optional<std::string_view> slurm_scope_node(std::string_view directory);
/// "slurm" or "slurm_<node>": a SLURM root in v1.
std::optional<std::string_view> slurm_v1_node(std::string_view directory);

}  // namespace ceems::host
