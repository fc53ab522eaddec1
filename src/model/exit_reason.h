#pragma once

#include <string_view>

namespace ceems::model {

/// Whether a unit that failed (`state`) was stopped because it needed more memory than it had
/// reserved, by what its resource manager says beside the state: `exit_reason` TERM_MEMLIMIT of
/// LSF's bacct and OOMKilled of the kubelet, `exit_status` -26 and -27 of OpenPBS
/// (JOB_EXEC_KILL_VMEM and JOB_EXEC_KILL_MEM of pbs_error.h). SLURM has a state for it. Lists,
/// filters and reports use this one.
constexpr bool ran_out_of_memory(std::string_view manager,
                                 std::string_view state,
                                 std::string_view exit_reason,
                                 std::string_view exit_status) {
  return (manager == "lsf" && state == "EXIT" && exit_reason == "TERM_MEMLIMIT") ||
         (manager == "k8s" && state == "Failed" && exit_reason == "OOMKilled") ||
         (manager == "openpbs" && state == "FAILED" &&
          (exit_status == "-26" || exit_status == "-27"));
}

}  // namespace ceems::model
