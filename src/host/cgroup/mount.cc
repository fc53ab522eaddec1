#include "host/cgroup/mount.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <array>
#include <system_error>
#include <utility>
#include <vector>

namespace ceems::host {
namespace {

namespace fs = std::filesystem;

// The magic number of the file system at `path`; 0 if statfs(2) fails.
long file_system_type(const fs::path& path) {
  struct statfs info{};
  return ::statfs(path.c_str(), &info) == 0 ? static_cast<long>(info.f_type) : 0;
}

bool has_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> sub_directories(const fs::path& directory) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      result.push_back(it->path());
    }
  }
  return result;
}

bool contains_v1_mount(const fs::path& root) {
  for (const fs::path& directory : sub_directories(root)) {
    if (file_system_type(directory) == CGROUP_SUPER_MAGIC) {
      return true;
    }
  }
  return false;
}

// The directory that contains the top-level cgroups of the resource managers.
fs::path top_of(const Paths& paths, const CgroupMount& mount, std::string_view active) {
  if (mount.mode == CgroupMode::kUnified) {
    return paths.cgroup;
  }
  return paths.cgroup / find_v1_hierarchy(paths.cgroup, active, true).value_or(std::string(active));
}

}  // namespace

CgroupMount detect_cgroup(const fs::path& root, std::string_view force) {
  const long type = file_system_type(root);
  CgroupMount mount;
  if (type == CGROUP2_SUPER_MAGIC) {
    mount = {CgroupMode::kUnified, true};
  } else if (contains_v1_mount(root)) {
    mount = {CgroupMode::kLegacy, true};
  } else if (file_system_type("/sys/fs/cgroup") == CGROUP2_SUPER_MAGIC) {
    mount = {CgroupMode::kUnified, false};
  }
  if (force == "v2") {
    mount = {CgroupMode::kUnified, type == CGROUP2_SUPER_MAGIC};
  } else if (force == "v1") {
    mount = {CgroupMode::kLegacy, mount.live && mount.mode == CgroupMode::kLegacy};
  }
  return mount;
}

std::optional<std::string> find_v1_hierarchy(const fs::path& root,
                                             std::string_view subsystem,
                                             bool combined_first) {
  constexpr std::array<std::array<std::string_view, 2>, 2> kPairs = {
      {{"cpu", "cpuacct"}, {"net_cls", "net_prio"}}};
  std::vector<std::string> names = {std::string(subsystem)};
  for (const auto& [first, second] : kPairs) {
    if (subsystem == first || subsystem == second) {
      const std::array<std::string, 2> joint = {std::string(first) + ',' + std::string(second),
                                                std::string(second) + ',' + std::string(first)};
      names.insert(combined_first ? names.begin() : names.end(), joint.begin(), joint.end());
      names.emplace_back(subsystem == first ? second : first);
    }
  }
  for (std::string& name : names) {
    if (has_directory(root / name)) {
      return std::move(name);
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> slurm_scope_node(std::string_view directory) {
  constexpr std::string_view kScope = "slurmstepd.scope";
  if (!directory.ends_with(kScope)) {
    return std::nullopt;
  }
  directory.remove_suffix(kScope.size());
  if (directory.empty()) {
    return directory;
  }
  if (!directory.ends_with('_')) {
    return std::nullopt;
  }
  directory.remove_suffix(1);
  return directory;
}

std::optional<std::string_view> slurm_v1_node(std::string_view directory) {
  constexpr std::string_view kRoot = "slurm";
  if (!directory.starts_with(kRoot)) {
    return std::nullopt;
  }
  directory.remove_prefix(kRoot.size());
  if (directory.empty()) {
    return directory;
  }
  if (!directory.starts_with('_')) {
    return std::nullopt;
  }
  directory.remove_prefix(1);
  return directory;
}

bool slurm_present(const Paths& paths, const CgroupMount& mount, std::string_view active) {
  const bool unified = mount.mode == CgroupMode::kUnified;
  const fs::path top = top_of(paths, mount, active);
  for (const fs::path& directory : sub_directories(unified ? top / "system.slice" : top)) {
    const std::string name = directory.filename();
    if (unified ? slurm_scope_node(name).has_value() : slurm_v1_node(name).has_value()) {
      return true;
    }
  }
  return false;
}

bool resource_manager_present(const Paths& paths,
                              const CgroupMount& mount,
                              std::string_view active) {
  if (slurm_present(paths, mount, active)) {
    return true;
  }
  const fs::path top = top_of(paths, mount, active);
  for (const char* const root :
       {"kubepods", "kubepods.slice", "lsf", "pbs_jobs.service", "system.slice/pbs_jobs.service"}) {
    if (has_directory(top / root)) {
      return true;
    }
  }
  for (const std::string_view machine : {"machine", "machine.slice"}) {
    for (const fs::path& directory : sub_directories(top / machine)) {
      // "machine-qemu\x2d1\x2d..." below machine.slice, "qemu-1-..." below machine.
      const std::string name = directory.filename();
      if (name.starts_with("qemu-") || name.starts_with("machine-qemu")) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ceems::host
