#include "tool/rules/gpu_units.h"

#include <string_view>

#include <fmt/format.h>

#include "tool/rules/promql.h"

namespace ceems::tool::rules {
namespace {

bool amd(const GpuPlan& plan) {
  return plan.kind != GpuKind::kNvidia;
}

/// By which labels series of units and of the GPU exporter belong together.
struct Keys {
  std::string_view device;         ///< of a whole device
  std::string_view instance;       ///< of one of its instances
  std::string_view which_of = {};  ///< matchers of the series of units that they fit
};

constexpr Keys kNvidia{.device = "gpuuuid", .instance = "gpuuuid, gpuiid"};
constexpr Keys kAmd{.device = "instancehost, index", .instance = "instancehost, index, gpuiid"};
/// Partitions of a GPU have an index each, and only one of them reports its power. All have the
/// serial number of the GPU.
constexpr Keys kAmdPartitions{.device = "instancehost, gpuuuid",
                              .instance = "instancehost, gpuuuid, gpuiid",
                              .which_of = ",gpuiid!=\"\",gpuuuid!=\"\""};

const Keys& usual_keys(const GpuPlan& plan) {
  return amd(plan) ? kAmd : kNvidia;
}

/// A series of units or of the GPU exporter, ready for joins.
std::string joinable(const GpuPlan& plan, const std::string& expression) {
  return amd(plan) ? with_host(expression) : expression;
}

std::string of_units(const GpuPlan& plan, const Keys& keys, std::string_view metric) {
  return joinable(plan,
                  fmt::format("{}{{{}{}}}", metric, job_matcher(plan.cpu_jobs), keys.which_of));
}

std::string flag(const GpuPlan& plan, const Keys& keys) {
  return of_units(plan, keys, "ceems_compute_unit_gpu_index_flag");
}

std::string max_by(std::string_view labels, const std::string& expression) {
  return fmt::format("max by ({}) ({})", labels, expression);
}

/// Only the labels of the flag.
std::string finished(const GpuPlan& plan, const std::string& expression) {
  return amd(plan) ? fmt::format("sum without (instancehost) (\n{}\n)", expression) : expression;
}

/// Each instance's value divided by the sum over its device, for devices whose sum is positive.
std::string share_of(const Keys& keys, const std::string& value) {
  return fmt::format("{0} / on ({1}) group_left () (sum by ({1}) ({0}) > 0)", value, keys.device);
}

/// The number of SMs of each instance that units hold.
std::string multiprocessors(const GpuPlan& plan, const Keys& keys) {
  return max_by(keys.instance, of_units(plan, keys, "ceems_compute_unit_gpu_sm_count"));
}

/// The activity of each instance that units hold, of devices for whose every instance it is known.
std::string activity_share(const GpuPlan& plan, const Keys& keys) {
  const auto of_device = [&](std::string_view metric) {
    return max_by(keys.instance, with_device_labels(plan.kind, selector(metric, *plan.job)));
  };
  const std::string active =
      fmt::format("({} * {} * {})", of_device("DCGM_FI_PROF_SM_ACTIVE"),
                  of_device("DCGM_FI_PROF_SM_OCCUPANCY"), multiprocessors(plan, keys));
  return fmt::format("({0} and on ({1}) (count by ({1}) ({2}) >= count by ({1}) ({3})))",
                     share_of(keys, active), keys.device, active,
                     max_by(keys.instance, flag(plan, keys)));
}

/// The shares of the instances that units hold in the power of their device; the sum is 1.
std::string shares(const GpuPlan& plan, const Keys& keys) {
  const std::string held = max_by(keys.instance, flag(plan, keys));
  const std::string by_size = share_of(keys, multiprocessors(plan, keys));
  const std::string size_known =
      fmt::format("({0} and on ({1}) (count by ({1}) ({2}) >= count by ({1}) ({3})))", by_size,
                  keys.device, multiprocessors(plan, keys), held);
  const std::string equal =
      fmt::format("({0} * 0 + 1) / on ({1}) group_left () count by ({1}) ({0})", held, keys.device);
  std::string best = size_known;
  if (plan.kind == GpuKind::kNvidia && plan.job->has("DCGM_FI_PROF_SM_ACTIVE") &&
      plan.job->has("DCGM_FI_PROF_SM_OCCUPANCY")) {
    const std::string active = activity_share(plan, keys);
    best = fmt::format("(\n    {0}\n    or\n    ({1} unless on ({2}) {0})\n  )", active, size_known,
                       keys.device);
  }
  return fmt::format("(\n  {0}\n  or\n  ({1} unless on ({2}) {0})\n)", best, equal, keys.device);
}

}  // namespace

std::string unit_share(const GpuPlan& plan, const std::string& value) {
  const Keys& keys = usual_keys(plan);
  const std::string labelled = joinable(plan, with_device_labels(plan.kind, value));
  std::string by_instance = fmt::format("{0}\n  * on ({1}) group_left ()\n{2}", flag(plan, keys),
                                        keys.instance, max_by(keys.instance, labelled));
  if (!amd(plan)) {
    return by_instance;
  }
  // Its exporters number partitions of GPUs in other ways than units do, or not at all.
  return finished(plan, fmt::format("{}\nor\n{}\n  * on ({}) group_left ()\n{}", by_instance,
                                    flag(plan, keys), keys.device, max_by(keys.device, labelled)));
}

std::string unit_power(const GpuPlan& plan, const std::string& device_watts) {
  const auto power = [&plan](const Keys& keys, const std::string& watts) {
    return fmt::format("{}\n  * on ({}) group_left ()\n(\n{}\n  * on ({}) group_left ()\n{}\n)",
                       flag(plan, keys), keys.instance, shares(plan, keys), keys.device,
                       max_by(keys.device, joinable(plan, watts)));
  };
  std::string all = power(usual_keys(plan), device_watts);
  if (plan.kind == GpuKind::kAmdDevice) {
    all = power(kAmdPartitions, copied(device_watts, "gpuuuid", "serial_number")) + "\nor\n" + all;
  }
  return finished(plan, all);
}

}  // namespace ceems::tool::rules
