#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "tool/rules/groups.h"
#include "tool/rules/promql.h"

// How values of devices become values of units. ceems_compute_unit_gpu_index_flag has a series for
// each unit and device, 1 or, on shared devices, the unit's share. Devices are joined by gpuuuid
// and gpuiid (NVIDIA), or by host, index and gpuiid (AMD), whose exporters do not name a device
// uniquely. A device is one series on its side of the join, however often its exporter reports it.

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

/// `value`, a vector of the GPU exporter, times the share of each unit, with the labels of the
/// flag.
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

/// The power of each unit on each of its devices, with the labels of the flag. `device_watts` is
/// the record of the power of devices, with device labels.
///
/// The power of a whole GPU is split among its instances that units hold: by SM_ACTIVE ×
/// SM_OCCUPANCY × number of SMs if DCGM exports these for all of them and one is active, otherwise
/// by the number of SMs, otherwise equally.
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

constexpr std::string_view kProfilingPrefix = "DCGM_FI_PROF_";
constexpr std::string_view kAmdProfilingPrefix = "gpu_prof_";

std::string of(const GpuPlan& plan, std::string_view metric) {
  return selector(metric, *plan.job);
}

/// Percent of the GPU that is in use.
std::string usage(const GpuPlan& plan) {
  switch (plan.kind) {
    case GpuKind::kNvidia: {
      std::string coarse = of(plan, "DCGM_FI_DEV_GPU_UTIL");
      if (!plan.job->has("DCGM_FI_PROF_GR_ENGINE_ACTIVE")) {
        return coarse;
      }
      // A fraction, which instances of a GPU have as well.
      return fmt::format("(100 * {} or {})", of(plan, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), coarse);
    }
    case GpuKind::kAmdSmi:
      return of(plan, "amd_gpu_use_percent");
    case GpuKind::kAmdDevice:
      return of(plan, "gpu_gfx_activity");
  }
  return {};
}

std::string memory_usage(const GpuPlan& plan) {
  switch (plan.kind) {
    case GpuKind::kNvidia: {
      const std::string used = of(plan, "DCGM_FI_DEV_FB_USED");
      return fmt::format("(100 * {0} / ({0} + {1}))", used, of(plan, "DCGM_FI_DEV_FB_FREE"));
    }
    case GpuKind::kAmdSmi:
      return of(plan, "amd_gpu_memory_use_percent");
    case GpuKind::kAmdDevice:
      return fmt::format("(100 * {} / {})", of(plan, "gpu_used_vram"), of(plan, "gpu_total_vram"));
  }
  return {};
}

/// The records of memory. Later releases give them a label `type` for GPUs of AMD.
std::vector<Rule> memory_rules(const GpuPlan& plan, RecordNames names) {
  constexpr std::string_view kRecord = "uuid:ceems_gpu_memory_usage:ratio";
  const std::string vram = unit_share(plan, memory_usage(plan));
  if (plan.kind != GpuKind::kAmdDevice || names == RecordNames::kOld) {
    return {{.record = std::string(kRecord), .expression = vram}};
  }
  std::vector<Rule> rules{
      {.record = std::string(kRecord), .expression = vram, .labels = {{"type", "vram"}}}};
  if (names == RecordNames::kLater) {  // with both, averages over all types would be wrong
    for (const auto& [type, metric] :
         {std::pair{"gtt", "gtt"}, std::pair{"visiblevram", "visible_vram"}}) {
      const std::string ratio =
          fmt::format("(100 * {} / {})", of(plan, fmt::format("gpu_used_{}", metric)),
                      of(plan, fmt::format("gpu_total_{}", metric)));
      rules.push_back({.record = std::string(kRecord),
                       .expression = unit_share(plan, ratio),
                       .labels = {{"type", type}}});
    }
  }
  return rules;
}

std::string device_record(const GpuPlan& plan) {
  switch (plan.kind) {
    case GpuKind::kNvidia:
      return fmt::format("dev:{}:pue", gpu_power_metrics(plan).front());
    case GpuKind::kAmdSmi:
      return "dev:amd_gpu_power_watts:pue";
    case GpuKind::kAmdDevice:
      return "dev:gpu_power_usage_watts:pue";
  }
  return {};
}

/// Records of profiling metrics of DCGM: percent, or bytes per second.
void add_profiling(const GpuPlan& plan, RecordNames names, std::vector<Rule>& rules) {
  for (const std::string& metric : profiling_metrics()) {
    if (!plan.job->has(metric)) {
      continue;
    }
    const std::string name = to_lower(std::string_view(metric).substr(kProfilingPrefix.size()));
    const bool bytes = name.ends_with("_bytes");
    const std::string value =
        unit_share(plan, bytes ? of(plan, metric) : fmt::format("100 * {}", of(plan, metric)));
    const auto add = [&](std::string_view prefix, std::string_view suffix) {
      rules.push_back({.record = fmt::format("uuid:ceems_gpu_{}{}:{}", prefix, name, suffix),
                       .expression = value});
    };
    if (names == RecordNames::kOld || (names == RecordNames::kBoth && !bytes)) {
      add("", "ratio");
    }
    if (names == RecordNames::kOld) {
      continue;
    }
    if (!bytes) {
      add("prof_", "ratio");
      continue;
    }
    add("prof_", "sum");  // the dashboards of CEEMS read this name
    add("prof_", "rate");
  }
}

/// Records of profiling metrics of AMD's device metrics exporter, which only later releases have.
void add_amd_profiling(const GpuPlan& plan, RecordNames names, std::vector<Rule>& rules) {
  if (plan.kind != GpuKind::kAmdDevice || names == RecordNames::kOld) {
    return;
  }
  for (const std::string& metric : plan.job->series) {
    if (!metric.starts_with(kAmdProfilingPrefix)) {
      continue;
    }
    const std::string name = metric.substr(kAmdProfilingPrefix.size());
    const bool ratio =
        name.find("active") != std::string::npos || name.find("percent") != std::string::npos;
    rules.push_back(
        {.record = fmt::format("uuid:ceems_gpu_prof_{}:{}", name, ratio ? "ratio" : "sum"),
         .expression = unit_share(plan, of(plan, metric))});
  }
}

Group unit_group(const GpuPlan& plan, const Common& common) {
  Group group{
      .name = "compute-unit-gpu-rules-" + plan.job->name, .interval = common.interval, .rules = {}};
  auto& rules = group.rules;
  rules.push_back(
      {.record = "uuid:ceems_gpu_usage:ratio", .expression = unit_share(plan, usage(plan))});
  std::ranges::move(memory_rules(plan, common.names), std::back_inserter(rules));
  rules.push_back(
      {.record = device_record(plan), .expression = scaled(common.pue, gpu_watts(plan))});
  rules.push_back({.record = "uuid:ceems_gpu_power_watts:pue",
                   .expression = unit_power(plan, of(plan, device_record(plan)))});
  std::ranges::move(unit_emissions("uuid:ceems_gpu_emissions_g_s:pue",
                                   fmt::format("uuid:ceems_gpu_power_watts:pue{{{}}}",
                                               job_matcher(plan.cpu_jobs)),
                                   common.emissions),
                    std::back_inserter(rules));
  if (plan.kind == GpuKind::kNvidia) {
    add_profiling(plan, common.names, rules);
  }
  add_amd_profiling(plan, common.names, rules);
  return group;
}

Group job_group(const GpuPlan& plan, const Common& common) {
  Group group{.name = "host-agg-gpu-rules-" + plan.job->name,
              .interval = rate_window(*plan.job),
              .rules = {}};
  auto& rules = group.rules;
  // Instances of a GPU have no DCGM_FI_DEV_GPU_UTIL.
  rules.push_back({.record = "job:ceems_gpu_usage:avg",
                   .expression = fmt::format("avg by (job) ({})", usage(plan))});
  rules.push_back({.record = "job:ceems_gpu_memory_usage:avg_ratio",
                   .expression = fmt::format("avg by (job) ({})", memory_usage(plan))});
  std::string watts = gpu_watts_by_host(plan);
  if (plan.counted_elsewhere) {  // and would count twice, as ceems-compat.rules.yml has them
    watts = fmt::format("{} unless on (instancehost) {}", watts,
                        with_host("ceems_node_energy_joules_total{domain=\"gpu\"}"));
  }
  rules.push_back({.record = "job:ceems_gpu_power_watts:pue",
                   .expression = scaled(common.pue, with_label(fmt::format("sum({})", watts), "job",
                                                               plan.job->name))});
  std::ranges::move(
      job_emissions("job:ceems_gpu_emissions_g_s:pue", of(plan, "job:ceems_gpu_power_watts:pue"),
                    plan.job->name, common.emissions),
      std::back_inserter(rules));
  return group;
}

}  // namespace

const std::vector<std::string>& profiling_metrics() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const char* suffix :
         {"SM_ACTIVE", "SM_OCCUPANCY", "GR_ENGINE_ACTIVE", "PIPE_TENSOR_ACTIVE", "PIPE_FP64_ACTIVE",
          "PIPE_FP32_ACTIVE", "PIPE_FP16_ACTIVE", "DRAM_ACTIVE", "NVLINK_TX_BYTES",
          "NVLINK_RX_BYTES", "PCIE_TX_BYTES", "PCIE_RX_BYTES"}) {
      names.push_back(fmt::format("{}{}", kProfilingPrefix, suffix));
    }
    return names;
  }();
  return kNames;
}

std::vector<Group> gpu_groups(const GpuPlan& plan, const Common& common) {
  return {unit_group(plan, common), job_group(plan, common)};
}

}  // namespace ceems::tool::rules
