#pragma once

#include <vector>

#include "tool/rules/model.h"

namespace ceems::tool::rules {

/// The name of the series that measures the power of hosts, and of the record of it: the newest
/// name that the job exports.
std::string host_metric(const HostPlan& plan);
/// The power of hosts in watts, one series for each instance, as the meter reports it. For kRapl
/// and kCray this is not used.
std::string host_watts(const HostPlan& plan);
/// The same minus the power of the GPUs on the host, by instance and instancehost. Hosts that had
/// no GPU in the last hour keep their whole power.
std::string host_watts_without_gpus(const HostPlan& plan);
/// The difference alone, for hosts with GPUs.
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

}  // namespace ceems::tool::rules
