#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "host/paths.h"

namespace ceems::host {

/// The interface of a cgroup file system. Hybrid hosts (v1 controllers beside an empty v2
/// hierarchy) are kLegacy, because we read the controllers.
enum class CgroupMode { kUnified, kLegacy };

struct CgroupMount {
  CgroupMode mode = CgroupMode::kLegacy;
  /// Whether this is the kernel's file system rather than a tree of plain files: its pids are real,
  /// no directory has a second name, st_nlink counts sub-directories, and cgroup.events can be
  /// watched.
  bool live = false;
};

/// Detects the mode of `root`. `force` ("v1" or "v2") overrides everything else. Otherwise the file
/// system at `root` decides (a directory that contains v1 mounts is v1). For plain files it is the
/// file system at /sys/fs/cgroup.
CgroupMount detect_cgroup(const std::filesystem::path& root, std::string_view force = {});

/// The name of the directory below `root` that contains the v1 hierarchy `subsystem`. Kernels mount
/// cpu and cpuacct (and likewise net_cls and net_prio) together, under either order of the two
/// names, or separately. `combined_first` prefers the joint directory to one with the exact name.
/// Nothing if there is no such directory.
std::optional<std::string> find_v1_hierarchy(const std::filesystem::path& root,
                                             std::string_view subsystem,
                                             bool combined_first);

/// Whether SLURM alone, or any of SLURM, LSF, OpenPBS, libvirt and Kubernetes, has made cgroups.
/// Their own collectors should then handle them. Only a few well-known places are checked.
bool slurm_present(const Paths& paths, const CgroupMount& mount, std::string_view active);
bool resource_manager_present(const Paths& paths,
                              const CgroupMount& mount,
                              std::string_view active);

/// The node name of a SLURM root in v2, which is called "slurmstepd.scope" or
/// "<node>_slurmstepd.scope"; "" for the plain form. Nothing for other directories.
std::optional<std::string_view> slurm_scope_node(std::string_view directory);
/// The same for a SLURM root in v1, which is called "slurm" or "slurm_<node>".
std::optional<std::string_view> slurm_v1_node(std::string_view directory);

}  // namespace ceems::host
