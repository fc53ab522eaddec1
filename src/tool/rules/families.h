#pragma once

#include <string>
#include <vector>

#include "tool/rules/model.h"

// The rules that differ by the meter of the host. Power is split among units by their shares of
// the node's CPU time and memory, and equally among all units where nothing better is known.

namespace ceems::tool::rules {

/// CPU seconds per second of each unit, with the labels of the unit.
std::string unit_cpu(const Job& job);

/// The records of the power of instances, and of units from them.
std::vector<Rule> unit_power_rules(const HostPlan& plan, double pue);
/// The power of all hosts of the job, by job.
std::string job_power(const HostPlan& plan, double pue);

}  // namespace ceems::tool::rules
