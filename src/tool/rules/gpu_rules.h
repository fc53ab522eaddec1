#pragma once

#include <vector>

#include "tool/rules/model.h"

namespace ceems::tool::rules {

/// The metrics of DCGM that profile GPUs, which become records of units, in the order of the rules.
const std::vector<std::string>& profiling_metrics();

/// The groups of records of one job of a GPU exporter: use, power and emissions of the units on its
/// GPUs and of the whole job.
std::vector<Group> gpu_groups(const GpuPlan& plan, const Common& common);

}  // namespace ceems::tool::rules
