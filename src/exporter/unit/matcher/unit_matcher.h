#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

/// What a directory of a cgroup hierarchy is for a manager.
struct DirectoryMatch {
  enum class Kind {
    kSkip,     ///< neither the directory nor anything below it matters
    kSearch,   ///< units seldom appear below it: listed only now and then
    kDescend,  ///< units are directly or not far below it
    kUnit,     ///< a unit; everything below belongs to it
  };
  Kind kind = Kind::kSkip;
  bool inside = false;    ///< below a root of the manager (SLURM: the tree of one slurmd)
  std::string id = {};    ///< kUnit: identifier, not empty, as in the name of the directory
  std::string host = {};  ///< virtual node name of this directory and all below it
  bool sluid = false;     ///< kUnit: `id` is a SLUID, the job's number is still to be looked up
  /// Not where the manager makes it on its own machine: a user with a part of the hierarchy
  /// might have made it. A unit counts then only if its directory has the hierarchy root's owner.
  bool forgeable = false;
  bool part = false;     ///< kUnit: one of several directories of the unit, whose use adds up
  bool element = false;  ///< kUnit: `id` is that of an element of a job array and may have brackets
};

/// Decides which directories are units. Immutable and safe for concurrent use.
class UnitMatcher {
 public:
  virtual ~UnitMatcher() = default;
  /// Directory below the hierarchy's root where the search starts, such as "" for its root.
  [[nodiscard]] virtual std::string start() const = 0;
  /// `path` is the path on disk relative to the hierarchy's root, `name` its last component, and
  /// `parent` the match of the directory above.
  [[nodiscard]] virtual DirectoryMatch match(const std::string& path,
                                             std::string_view name,
                                             const DirectoryMatch& parent) const = 0;
  /// The identifier that users see. It consists of [A-Za-z0-9._:@+-] only, and of brackets for
  /// elements of job arrays ("6[1]"). It is the same at every start. It equals `match.id` if that
  /// has 1 to kMaxUuid of these characters and no others. Otherwise it is made of the allowed
  /// characters of the id and a hash of the path.
  [[nodiscard]] static std::string uuid_of(const DirectoryMatch& match, const std::string& path);

  static constexpr std::size_t kMaxUuid = 96;
};

/// SLURM jobs: directories named job_N, or with Slurm 26.05 and later by SLUID, below
/// [NODE_]slurmstepd.scope at any depth below a slice or the pods of Kubernetes (v2), but not below
/// user.slice, or /slurm[_NODE], at the top or below a pod (v1). The virtual node of a slurmd in a
/// pod is the pod's UID, unless it has a name.
std::unique_ptr<UnitMatcher> slurm_matcher(host::CgroupMode mode);

/// VMs of libvirt that OpenStack named: directories with "qemu-N-instance-HEX" in their names, at
/// any depth below a directory machine, machine.slice or *-machine.slice, wherever that is outside
/// of user.slice, pods and SLURM.
std::unique_ptr<UnitMatcher> libvirt_matcher();

/// The "instance-HEX" in the name of a VM's directory, which is unescaped first. Nothing if the
/// directory is not a VM's.
std::optional<std::string> libvirt_instance(std::string_view name);

/// Pods of Kubernetes at any depth, except below user.slice, where any user may make directories:
/// "podUID" (cgroupfs driver) or "...-podUID.slice" (systemd driver) below a directory of
/// is_k8s_root(), and "[PREFIX-]kubepods[-CLASS]-podUID.slice[:RUNTIME:ID]" wherever it is. So pods
/// are found with any --cgroup-root, of a kubelet in a container (kind), and with a runtime whose
/// cgroup driver is not the kubelet's. '_' in the UID becomes '-'. Containers and everything else
/// below a pod belong to it.
std::unique_ptr<UnitMatcher> k8s_matcher();

/// The UID in the name of a pod's directory; empty for other directories. `inside`: the directory
/// is below one of is_k8s_root(), so that "podUID" and "X-podUID.slice" are enough.
std::string k8s_pod_uid(std::string_view name, bool inside);

/// Jobs of LSF: directories "job.ID.PID.EPOCH", or "job.ID[INDEX].PID.EPOCH" for an element of an
/// array, at any depth below a directory "lsf" (or "lsf.slice", "lsf.service") in the first or
/// second level of the hierarchy. The names are from v1; v2 is expected to use the same.
std::unique_ptr<UnitMatcher> lsf_matcher();

/// Jobs of OpenPBS: directories "ID.SERVER", or "ID[INDEX].SERVER" for an element of an array,
/// below pbs_jobs.service/jobid (v1) or pbs_jobs.service/jobs (v2), in the first or second level of
/// the hierarchy. Names that systemd has escaped are unescaped. Without a server in the name the id
/// has none, either.
std::unique_ptr<UnitMatcher> openpbs_matcher();

/// The job's id in the name of a directory: "6" or "6[1]" of LSF, "12.srv" or "12[3].srv" of
/// OpenPBS. Empty for other names.
std::string lsf_job_id(std::string_view name);
std::string openpbs_job_id(std::string_view name);

/// True for the directories that hold the jobs of LSF or OpenPBS, wherever they are.
bool is_lsf_root(std::string_view name);
bool is_openpbs_root(std::string_view name);

/// True for the names of directories that hold pods (kubepods, kubepods.slice, X-kubepods.slice),
/// or the VMs and containers of systemd-machined, wherever they are.
bool is_k8s_root(std::string_view name);
bool is_libvirt_root(std::string_view name);

/// True where no manager of the machine has units: cgroups of users, jobs of SLURM, VMs.
bool holds_no_manager(std::string_view path, std::string_view name);

/// True for the 14 characters of a SLUID: 's' and 13 digits of Crockford's base 32.
bool is_sluid(std::string_view name);

/// Managers whose units are shown by another collector of this process.
struct OtherManagers {
  bool slurm = false;
  bool libvirt = false;
  bool k8s = false;
  bool lsf = false;
  bool openpbs = false;
};

/// Cgroups whose path matches one of `patterns`, each with a named group `id` and optionally
/// `host`. Patterns are in RE2 syntax and may match anywhere in the path relative to the
/// hierarchy's root. The default patterns are systemd services and scopes of the system and of
/// users, OpenRC services, and containers of Docker, Podman, containerd, CRI-O and LXC. Of nested
/// matches the outermost counts. Units of managers that have their own collector are left out.
/// kInvalidArgument: a pattern that does not compile or has no group `id`.
Result<std::unique_ptr<UnitMatcher>> pattern_matcher(const std::vector<std::string>& patterns,
                                                     host::CgroupMode mode,
                                                     OtherManagers others);

}  // namespace ceems::exporter
