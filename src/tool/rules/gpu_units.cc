#include "tool/rules/gpu_units.h"

#include <string_view>

#include <fmt/format.h>

#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

std::string of_units(const GpuPlan& plan, std::string_view metric) {
  return fmt::format("{}{{{}}}", metric, job_matcher(plan.cpu_jobs));
}

bool amd(const GpuPlan& plan) {
  return plan.kind != GpuKind::kNvidia;
}

/// The labels of a whole device, and of one of its instances.
std::string_view device(const GpuPlan& plan) {
  return amd(plan) ? "instancehost, index" : "gpuuuid";
}
std::string_view instance(const GpuPlan& plan) {
  return amd(plan) ? "instancehost, index, gpuiid" : "gpuuuid, gpuiid";
}

/// A series of units or of the GPU exporter, ready for joins.
std::string joinable(const GpuPlan& plan, const std::string& expression) {
  return amd(plan) ? with_host(expression) : expression;
}

std::string flag(const GpuPlan& plan) {
  return joinable(plan, of_units(plan, "ceems_compute_unit_gpu_index_flag"));
}

std::string max_by(std::string_view labels, const std::string& expression) {
  return fmt::format("max by ({}) ({})", labels, expression);
}

/// Only the labels of the flag.
std::string finished(const GpuPlan& plan, const std::string& expression) {
  return amd(plan) ? fmt::format("sum without (instancehost) (\n{}\n)", expression) : expression;
}

/// Each instance's value divided by the sum over its device, for devices whose sum is positive.
std::string share_of(const GpuPlan& plan, const std::string& value) {
  return fmt::format("{0} / on ({1}) group_left () (sum by ({1}) ({0}) > 0)", value, device(plan));
}

/// The number of SMs of each instance that units hold.
std::string multiprocessors(const GpuPlan& plan) {
  return max_by(instance(plan), joinable(plan, of_units(plan, "ceems_compute_unit_gpu_sm_count")));
}

/// The activity of each instance that units hold, of devices for whose every instance it is known.
std::string activity_share(const GpuPlan& plan) {
  const auto of_device = [&](std::string_view metric) {
    return max_by(instance(plan), with_device_labels(plan.kind, selector(metric, *plan.job)));
  };
  const std::string active =
      fmt::format("({} * {} * {})", of_device("DCGM_FI_PROF_SM_ACTIVE"),
                  of_device("DCGM_FI_PROF_SM_OCCUPANCY"), multiprocessors(plan));
  return fmt::format("({0} and on ({1}) (count by ({1}) ({2}) >= count by ({1}) ({3})))",
                     share_of(plan, active), device(plan), active,
                     max_by(instance(plan), flag(plan)));
}

/// The shares of the instances that units hold in the power of their device; the sum is 1.
std::string shares(const GpuPlan& plan) {
  const std::string held = max_by(instance(plan), flag(plan));
  const std::string by_size = share_of(plan, multiprocessors(plan));
  const std::string size_known =
      fmt::format("({0} and on ({1}) (count by ({1}) ({2}) >= count by ({1}) ({3})))", by_size,
                  device(plan), multiprocessors(plan), held);
  const std::string equal = fmt::format(
      "({0} * 0 + 1) / on ({1}) group_left () count by ({1}) ({0})", held, device(plan));
  std::string best = size_known;
  if (plan.kind == GpuKind::kNvidia && plan.job->has("DCGM_FI_PROF_SM_ACTIVE") &&
      plan.job->has("DCGM_FI_PROF_SM_OCCUPANCY")) {
    const std::string active = activity_share(plan);
    best = fmt::format("(\n    {0}\n    or\n    ({1} unless on ({2}) {0})\n  )", active, size_known,
                       device(plan));
  }
  return fmt::format("(\n  {0}\n  or\n  ({1} unless on ({2}) {0})\n)", best, equal, device(plan));
}

}  // namespace

std::string unit_share(const GpuPlan& plan, const std::string& value) {
  const std::string labelled = joinable(plan, with_device_labels(plan.kind, value));
  const std::string by_instance = fmt::format("{0}\n  * on ({1}) group_left ()\n{2}", flag(plan),
                                              instance(plan), max_by(instance(plan), labelled));
  if (!amd(plan)) {
    return by_instance;
  }
  // Its exporters number partitions of GPUs in other ways than units do, or not at all.
  return finished(plan, fmt::format("{}\nor\n{}\n  * on ({}) group_left ()\n{}", by_instance,
                                    flag(plan), device(plan), max_by(device(plan), labelled)));
}

std::string unit_power(const GpuPlan& plan, const std::string& device_watts) {
  return finished(
      plan, fmt::format("{}\n  * on ({}) group_left ()\n(\n{}\n  * on ({}) group_left ()\n{}\n)",
                        flag(plan), instance(plan), shares(plan), device(plan),
                        max_by(device(plan), joinable(plan, device_watts))));
}

}  // namespace ceems::tool::rules
