#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

/// What a directory of a cgroup hierarchy is to a manager.
struct DirectoryMatch {
  enum class Kind {
    kSkip,     ///< neither it nor anything below it matters
    kSearch,   ///< units may appear below it, but seldom: looked into now and then
    kDescend,  ///< units are directly or not far below it
    kUnit,     ///< a unit; everything below belongs to it
  };
  Kind kind = Kind::kSkip;
  bool inside = false;    ///< below a root of the manager (SLURM: one slurmd's tree)
  std::string id = {};    ///< kUnit: identifier, not empty, as found
  std::string host = {};  ///< virtual node name, from here on down
  bool sluid = false;     ///< kUnit: `id` is a SLUID, the job's number is to be found
};

/// Tells which directories are units. Immutable, safe for concurrent use.
class UnitMatcher {
 public:
  virtual ~UnitMatcher() = default;
  /// Directory below the hierarchy's root where the search starts: "" or "/system.slice".
  [[nodiscard]] virtual std::string start() const = 0;
  /// `path` is relative to the hierarchy's root, as on disk; `name` its last component; `parent`
  /// what the directory above was found to be.
  [[nodiscard]] virtual DirectoryMatch match(const std::string& path,
                                             std::string_view name,
                                             const DirectoryMatch& parent) const = 0;
  /// The identifier shown to users, made of [A-Za-z0-9._:@+-] only and the same at every start. It
  /// is `match.id` where that has no other characters and 1...kMaxUuid of them; else its
  /// harmless characters and a hash of the path.
  [[nodiscard]] static std::string uuid_of(const DirectoryMatch& match, const std::string& path);

  static constexpr std::size_t kMaxUuid = 96;
};

/// SLURM jobs: directories job_N, or of Slurm >= 26.05 named by
/// SLUID, below */[NODE_]slurmstepd.scope (v2) or /slurm[_NODE] (v1).
std::unique_ptr<UnitMatcher> slurm_matcher(host::CgroupMode mode);

/// VMs of libvirt that OpenStack named: directories with
/// "qemu-N-instance-HEX" in their names at any depth below /machine or /machine.slice.
std::unique_ptr<UnitMatcher> libvirt_matcher();

/// The "instance-HEX" in the name of a VM's directory, un-escaped first; nothing where it is none.
std::optional<std::string> libvirt_instance(std::string_view name);

/// Pods of Kubernetes: directories "podUID" (cgroupfs driver) or
/// "...-podUID.slice" (systemd driver) at any depth below /kubepods or /kubepods.slice. '_' in the
/// UID becomes '-'. Containers and whatever else is below belong to their pod.
std::unique_ptr<UnitMatcher> k8s_matcher();

/// True for the directories at the top of a hierarchy that hold pods, and VMs and containers of
/// systemd-machined.
bool is_k8s_root(std::string_view path);
bool is_libvirt_root(std::string_view path);

/// True for the 14 characters of a SLUID: 's' and 13 digits of Crockford's base 32.
bool is_sluid(std::string_view name);

/// Managers whose units another collector of this process shows.
struct OtherManagers {
  bool slurm = false;
  bool libvirt = false;
  bool k8s = false;
};

/// Cgroups whose path fits one of `patterns` (RE2 syntax, searched anywhere in the path relative to
/// the hierarchy's root), each with a named group `id` and maybe `host`; none: systemd services and
/// scopes of the system and of users, OpenRC services, containers of Docker, Podman, containerd,
/// CRI-O and LXC. Of nested matches the outermost counts. The units of managers that have a
/// collector of their own are left out.
/// Errors: kInvalidArgument for a pattern that does not compile or has no group `id`.
Result<std::unique_ptr<UnitMatcher>> pattern_matcher(const std::vector<std::string>& patterns,
                                                     host::CgroupMode mode,
                                                     OtherManagers others);

}  // namespace ceems::exporter
