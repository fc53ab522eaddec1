#pragma once

#include <string>
#include <vector>

#include "advice/value.h"
#include "api/report/maker.h"

namespace ceems::api {

// The form in which a job of SLURM was asked for. sbatch refuses some options beside others, and
// some add up, so a suggested line uses the options of the job. Pure functions.

/// Sets the facts slurm.* (docs/report.md) of a job of SLURM: from the command that submitted it,
/// else from what the accounting says of its memory and GPUs. The directives of a script are not
/// known, so nothing is set that one of them could contradict. Facts that hold text have digits and
/// names of resources only, because a user writes the command.
void add_slurm_request(const StoredUnit& unit, advice::Facts& facts);

/// Sets the facts queue.* from what the manager said of the partition when the job ran. Call after
/// add_slurm_request(), and after `node.mem` is set.
void add_partition_limits(const StoredUnit& unit, advice::Facts& facts);

/// Whether one of the `sessions` of a rule file (advice::RuleSet) matches the unit: a person who
/// works, not a batch job.
bool is_session(const StoredUnit& unit, const std::vector<std::string>& sessions);

}  // namespace ceems::api
