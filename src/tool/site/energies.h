#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tool/site/finding.h"

namespace ceems::tool {

/// Jobs of a cluster below which SLURM's energies say nothing.
inline constexpr std::size_t kMinComparedJobs = 20;

/// For each cluster of an answer of units/admin that has kMinComparedJobs jobs with an energy of
/// SLURM's own plugin (ConsumedEnergy) and one of ours: whether the median of ours ÷ SLURM's is
/// within 25 %. The median, because SLURM charges a job with its whole nodes, also if it shares
/// them. Jobs below 10 Wh are left out. An answer of another form is a finding, too.
std::vector<Finding> compare_with_slurm(std::string_view answer);

}  // namespace ceems::tool
