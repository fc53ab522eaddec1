#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/run/job.h"
#include "host/cgroup/mount.h"
#include "host/paths.h"

namespace ceems::exporter::run {

/// The cgroup that the resource manager has made for the job on this node.
struct JobCgroup {
  host::CgroupMount mount = {};
  std::string controller = {};  ///< of the v1 hierarchy; empty with v2
  std::string active = {};      ///< directory of that hierarchy
  std::string root = {};        ///< where `directory` begins
  std::string directory = {};   ///< of the job; empty if it has none
};
/// `cgroups` is the text of /proc/PID/cgroup of a process of the job, `version` that of
/// host::detect_cgroup().
JobCgroup find_job_cgroup(const host::Paths& paths,
                          const std::string& version,
                          std::string_view cgroups,
                          const Job& job);

/// Says whether a process is the one that is watched, or has the job's number in its environment,
/// which only its own user can read. Empty if there is neither.
std::function<bool(int pid)> names_job(const host::Paths& paths, const Job& job);

/// The processes of a cgroup and of those below it, ascending.
std::vector<int> processes_below(const std::string& directory);

/// The processes on this node of a job of SLURM, by their cgroup or their environment.
struct JobProcesses {
  std::vector<int> own = {};  ///< of this user, ascending
  bool others = false;        ///< there are some of another user than root
};
JobProcesses find_processes(const host::Paths& paths, const Job& job);
/// The environment with which a process of this user was started (proc_pid_environ(5)).
std::string environment_of(const host::Paths& paths, int pid);
/// The value of a variable in it; empty if it is not set.
std::string variable_in(std::string_view environment, std::string_view name);

/// Says whether a process belongs to the job on this node: whether it is in its cgroup or, without
/// one, this process, one that names_job() knows, or a descendant of these.
class Membership {
 public:
  Membership(host::Paths paths, Job job, int self);
  [[nodiscard]] bool has(int pid) const;

 private:
  host::Paths paths_;
  Job job_;
  int self_;
  JobCgroup cgroup_;
  std::function<bool(int pid)> names_;
};

}  // namespace ceems::exporter::run
