#pragma once

#include <vector>

#include "tool/rules/model.h"

// The recording rules of each kind of job, in groups.
namespace ceems::tool::rules {

/// The power of hosts with GPUs, as their meter reports it, minus that of the GPUs, by instance and
/// instancehost.
std::string host_minus_gpu_watts(const HostPlan& plan);

/// The groups of records of one job of CEEMS exporters: use, power and emissions of units and of
/// the whole job, and their input and output if the job exports it.
std::vector<Group> host_groups(const HostPlan& plan, const Common& common);

/// The records of emissions of units: power in watts, the records selected by `power`.
std::vector<Rule> unit_emissions(std::string_view record,
                                 const std::string& power,
                                 const Emissions& emissions);
/// The record of emissions of a job.
std::vector<Rule> job_emissions(std::string_view record,
                                const std::string& power,
                                std::string_view job,
                                const Emissions& emissions);

/// The metrics of DCGM that profile GPUs, which become records of units, in the order of the rules.
const std::vector<std::string>& profiling_metrics();

/// The groups of records of one job of a GPU exporter: use, power and emissions of the units on its
/// GPUs and of the whole job.
std::vector<Group> gpu_groups(const GpuPlan& plan, const Common& common);

}  // namespace ceems::tool::rules
