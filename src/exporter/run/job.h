#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::exporter::run {

/// The value of an environment variable; empty if it is not set.
using Environment = std::function<std::string(const std::string& name)>;

/// The job in which `ceems_exporter run` was started, as its resource manager describes it in the
/// environment. The user controls all of it, so it is data: used for texts and file names only.
struct Job {
  std::string manager = {};             ///< "slurm", "pbs", "lsf"; "run" without a resource manager
  std::string id = {};                  ///< of the job; without a manager, of the process
  std::string name = {};                ///< empty if it has none
  std::string cluster = {};             ///< empty if unknown
  std::string node = {};                ///< this machine, as the manager calls it
  std::vector<std::string> nodes = {};  ///< of the job, each once; empty if they are not known
  std::string node_file = {};  ///< file with a line for each slot (PBS, LSF); otherwise empty
  std::size_t node_count = 1;  ///< 1 if unknown
  bool on_node = true;         ///< this process runs on a node of the job
  std::vector<std::string> gpus = {};  ///< reserved on this node, as the manager names them
  std::string id_variable = {};        ///< variable that holds `id` in processes of the job

  int watched = 0;  ///< process to measure with its descendants; 0: our own descendants
  std::vector<int> members = {};  ///< some processes of the job, if this process is not one of them
  /// The first task of a step, or in none: `srun ceems_exporter run` starts one run for each task.
  bool first_task = true;

  [[nodiscard]] bool managed() const { return manager != "run"; }
};

/// `pid` identifies a run without a resource manager.
Job describe_job(const Environment& environment, const std::string& hostname, int pid);

/// Makes it a job of this manager, whatever the environment says: for programs that are started on
/// a node without the environment of the job. The manager is one of Job::manager.
void set_manager(Job& job, const std::string& manager, const std::string& id);

/// The node of the list that this host is, whether either has a domain or not; the host without its
/// domain if it is none of them.
std::string node_name_of(const std::vector<std::string>& nodes, std::string_view hostname);

/// The names in a file with a line for each slot, each once, in their order.
std::vector<std::string> nodes_in_file(std::string_view text);

/// A name for a file: letters, digits, '.', '_' and '-', at most 64 of them and no '.' at the
/// start.
std::string file_name_of(std::string_view text);

/// The directory of the whole job, from the text of /proc/self/cgroup: "/slurm/uid_7/job_4711" for
/// "…/job_4711/step_0/task_0". `controller` is that of the v1 hierarchy, empty with v2. Nothing if
/// the process is not in a cgroup of its job.
std::optional<std::string> job_directory(std::string_view cgroups,
                                         std::string_view controller,
                                         const Job& job);

}  // namespace ceems::exporter::run
