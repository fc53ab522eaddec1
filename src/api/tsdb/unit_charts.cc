#include "api/tsdb/unit_charts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include <fmt/format.h>

namespace ceems::api {

/// Where the values of a chart are. {0}: the unit's matchers, {1}: the cluster's, {2}: the range of
/// rates. For devices, {1} has their matchers, too.
struct ChartSource {
  enum class Of : std::uint8_t {
    kUnit,       ///< the unit's own series
    kDevice,     ///< series of devices, which have the label gpuuuid
    kDeviceHost  ///< the same without it: they are told apart by hostname and index
  };
  std::string_view query;
  Of of = Of::kUnit;
};

namespace {

using Of = ChartSource::Of;

constexpr std::string_view kGpuLabels = "hostname, index, gpuuuid, gpuiid";

constexpr std::array kCpu{
    ChartSource{"rate(ceems_compute_unit_cpu_user_seconds_total{{{0}}}[{2}]) + "
                "rate(ceems_compute_unit_cpu_system_seconds_total{{{0}}}[{2}])"}};
constexpr std::array kCpuLimit{ChartSource{"ceems_compute_unit_cpus{{{0}}}"}};
constexpr std::array kMemory{ChartSource{"ceems_compute_unit_memory_used_bytes{{{0}}}"}};
// More than 2^60 means that there is no limit.
constexpr std::array kMemoryLimit{
    ChartSource{"ceems_compute_unit_memory_total_bytes{{{0}}} < 1152921504606846976"}};
// Energy is that of the domain "node" where it is known, otherwise the sum of the other domains, as
// in unit_counters.h. Here "node" includes the GPUs, because the page shows the whole power of the
// unit.
constexpr std::array kPower{
    ChartSource{"rate(ceems_compute_unit_energy_joules_total{{{0},domain=\"node\"}}[{2}])"},
    ChartSource{"rate(ceems_compute_unit_energy_joules_total{{{0},domain!=\"node\"}}[{2}])"},
    ChartSource{"uuid:ceems_host_power_watts:pue{{{0}}}"}};
constexpr std::array kPowerParts{
    ChartSource{"rate(ceems_compute_unit_energy_joules_total{{{0},domain!=\"node\"}}[{2}])"}};
constexpr std::array kGpuUse{
    ChartSource{"100 * rate(ceems_compute_unit_gpu_busy_seconds_total{{{0}}}[{2}])"},
    ChartSource{"100 * ceems_gpu_utilization_ratio{{{1}}}", Of::kDevice},
    ChartSource{"100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{1}}}", Of::kDevice},
    ChartSource{"DCGM_FI_DEV_GPU_UTIL{{{1}}}", Of::kDevice},
    ChartSource{"gpu_gfx_activity{{{1}}}", Of::kDeviceHost},
    ChartSource{"amd_gpu_use_percent{{{1}}}", Of::kDeviceHost}};
constexpr std::array kGpuSm{
    ChartSource{"100 * rate(ceems_compute_unit_gpu_sm_seconds_total{{{0}}}[{2}])"},
    ChartSource{"100 * ceems_gpu_sm_active_ratio{{{1}}}", Of::kDevice},
    ChartSource{"100 * DCGM_FI_PROF_SM_ACTIVE{{{1}}}", Of::kDevice}};
constexpr std::array kGpuMemory{ChartSource{"ceems_compute_unit_gpu_memory_used_bytes{{{0}}}"},
                                ChartSource{"ceems_gpu_memory_used_bytes{{{1}}}", Of::kDevice},
                                ChartSource{"1048576 * DCGM_FI_DEV_FB_USED{{{1}}}", Of::kDevice},
                                ChartSource{"1048576 * gpu_used_vram{{{1}}}", Of::kDeviceHost}};
constexpr std::array kGpuMemoryLimit{
    ChartSource{"ceems_gpu_memory_total_bytes{{{1}}}", Of::kDevice},
    ChartSource{"1048576 * (DCGM_FI_DEV_FB_USED{{{1}}} + DCGM_FI_DEV_FB_FREE{{{1}}})", Of::kDevice},
    ChartSource{"1048576 * gpu_total_vram{{{1}}}", Of::kDeviceHost}};
constexpr std::array kGpuClock{
    ChartSource{"ceems_gpu_clock_hertz{{clock=\"graphics\",{1}}}", Of::kDevice},
    ChartSource{"1e6 * DCGM_FI_DEV_SM_CLOCK{{{1}}}", Of::kDevice}};
constexpr std::array kGpuPower{ChartSource{"ceems_gpu_power_watts{{{1}}}", Of::kDevice},
                               ChartSource{"DCGM_FI_DEV_POWER_USAGE_INSTANT{{{1}}}", Of::kDevice},
                               ChartSource{"DCGM_FI_DEV_POWER_USAGE{{{1}}}", Of::kDevice},
                               ChartSource{"gpu_power_usage{{{1}}}", Of::kDeviceHost},
                               ChartSource{"amd_gpu_power{{{1}}} / 1e6", Of::kDeviceHost}};
constexpr std::array kGpuPowerLimit{ChartSource{"ceems_gpu_power_limit_watts{{{1}}}", Of::kDevice}};
constexpr std::array kRead{
    ChartSource{"rate(ceems_ebpf_read_bytes_total{{{0}}}[{2}])"},
    ChartSource{"rate(ceems_compute_unit_blkio_read_total_bytes{{{0}}}[{2}])"}};
constexpr std::array kWrite{
    ChartSource{"rate(ceems_ebpf_write_bytes_total{{{0}}}[{2}])"},
    ChartSource{"rate(ceems_compute_unit_blkio_write_total_bytes{{{0}}}[{2}])"}};
constexpr std::array kIn{ChartSource{"rate(ceems_ebpf_ingress_bytes_total{{{0}}}[{2}])"}};
constexpr std::array kOut{ChartSource{"rate(ceems_ebpf_egress_bytes_total{{{0}}}[{2}])"}};
constexpr std::array kCpuPressure{
    ChartSource{"100 * rate(ceems_compute_unit_cpu_psi_seconds{{{0}}}[{2}])"}};
constexpr std::array kMemoryPressure{
    ChartSource{"100 * rate(ceems_compute_unit_memory_psi_seconds{{{0}}}[{2}])"}};
constexpr std::array kIpc{
    ChartSource{"sum by (hostname) (rate(ceems_perf_instructions_total{{{0}}}[{2}])) / "
                "sum by (hostname) (rate(ceems_perf_cpucycles_total{{{0}}}[{2}]))"}};
// Providers of the site's own zone first, as on the page of the grid.
constexpr std::array kIntensity{
    ChartSource{"ceems_emissions_gCo2_kWh{{provider!~\"rte|emaps|owid|global\",{1}}}"},
    ChartSource{"ceems_emissions_gCo2_kWh{{provider=\"rte\",{1}}}"},
    ChartSource{"ceems_emissions_gCo2_kWh{{provider=\"emaps\",{1}}}"},
    ChartSource{"ceems_emissions_gCo2_kWh{{provider=\"owid\",{1}}}"},
    ChartSource{"ceems_emissions_gCo2_kWh{{provider=\"global\",{1}}}"}};

constexpr std::array kCharts{
    UnitChart{"cpu", "cores", "sum", "", ChartBy::kNode, kCpu, kCpuLimit},
    UnitChart{"memory", "bytes", "sum", "", ChartBy::kNode, kMemory, kMemoryLimit},
    UnitChart{"power", "watts", "sum", "energy", ChartBy::kComponent, kPower, {}},
    UnitChart{"gpu_use", "percent", "avg", "gpu", ChartBy::kGpu, kGpuUse, {}},
    UnitChart{"gpu_sm", "percent", "avg", "gpu", ChartBy::kGpu, kGpuSm, {}},
    UnitChart{"gpu_memory", "bytes", "sum", "gpu", ChartBy::kGpu, kGpuMemory, kGpuMemoryLimit},
    UnitChart{"gpu_clock", "hertz", "avg", "gpu", ChartBy::kGpu, kGpuClock, {}},
    UnitChart{"gpu_power", "watts", "sum", "gpu", ChartBy::kGpu, kGpuPower, kGpuPowerLimit},
    UnitChart{"io_read", "bytes per second", "sum", "ebpf", ChartBy::kNode, kRead, {}},
    UnitChart{"io_write", "bytes per second", "sum", "ebpf", ChartBy::kNode, kWrite, {}},
    UnitChart{"net_in", "bytes per second", "sum", "ebpf", ChartBy::kNode, kIn, {}},
    UnitChart{"net_out", "bytes per second", "sum", "ebpf", ChartBy::kNode, kOut, {}},
    UnitChart{"psi_cpu", "percent", "avg", "", ChartBy::kNode, kCpuPressure, {}},
    UnitChart{"psi_memory", "percent", "avg", "", ChartBy::kNode, kMemoryPressure, {}},
    UnitChart{"ipc", "instructions per cycle", "avg", "perf", ChartBy::kNode, kIpc, {}},
    UnitChart{"intensity", "grams per kWh", "avg", "emissions", ChartBy::kSum, kIntensity, {}},
    // The power times the intensity, see chart_query().
    UnitChart{"emissions", "grams per hour", "sum", "emissions", ChartBy::kSum, {}, {}},
};

/// The values of a device's series, with the labels of the unit's devices.
std::string of_devices(const ChartSource& source,
                       const std::string& values,
                       const ChartScope& scope) {
  const std::string_view keys =
      source.of == Of::kDevice ? "gpuuuid, gpuiid" : "hostname, index, gpuiid";
  return fmt::format("{0} * 0 + on ({1}) group_left () max by ({1}) ({2})", devices_query(scope),
                     keys, values);
}

std::string readings_of(const ChartSource& source, const ChartScope& scope) {
  const bool by_id = source.of == Of::kDevice && !scope.devices.empty();
  return fmt::format(
      fmt::runtime(source.query), scope.unit,
      by_id ? fmt::format("{}{}{}", scope.devices, scope.cluster.empty() ? "" : ",", scope.cluster)
            : scope.cluster,
      scope.range);
}

std::string query_of(const ChartSource& source, const ChartScope& scope) {
  const std::string values = readings_of(source, scope);
  return source.of == Of::kUnit ? values : of_devices(source, values, scope);
}

/// The folded values of the first source that has some, for each line.
std::string folded(std::span<const ChartSource> sources,
                   const UnitChart& chart,
                   ChartBy by,
                   const ChartScope& scope) {
  const std::string_view labels = labels_of(by);
  std::string query;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const ChartSource& source = sources[i];
    if (sources.data() == chart.first.data() && ((scope.sources >> i) & 1U) == 0) {
      continue;
    }
    query += query.empty() ? "" : " or ";
    query += labels.empty()
                 ? fmt::format("{}({})", chart.fold, query_of(source, scope))
                 : fmt::format("{} by ({}) ({})", chart.fold, labels, query_of(source, scope));
  }
  return query;
}

}  // namespace

std::optional<ChartBy> chart_by(std::string_view text) {
  const auto* const found = std::ranges::find(kChartBys, text);
  return found == kChartBys.end()
             ? std::nullopt
             : std::optional(static_cast<ChartBy>(std::distance(kChartBys.begin(), found)));
}

std::string_view labels_of(ChartBy by) {
  constexpr std::array<std::string_view, 4> kLabels{"", "hostname", kGpuLabels, "domain"};
  return kLabels.at(static_cast<std::size_t>(by));
}

std::span<const UnitChart> unit_charts() {
  return kCharts;
}

const UnitChart* find_unit_chart(std::string_view name) {
  const auto* const found = std::ranges::find(kCharts, name, &UnitChart::name);
  return found == kCharts.end() ? nullptr : found;
}

bool has_lines(const UnitChart& chart, ChartBy by) {
  return by == ChartBy::kSum || by == chart.finest ||
         (by == ChartBy::kNode && chart.finest != ChartBy::kSum);
}

std::string chart_query(const UnitChart& chart, ChartBy by, const ChartScope& scope) {
  if (chart.name == "emissions") {
    const auto sum_of = [&](std::string_view name) {
      const UnitChart& part = *find_unit_chart(name);
      return folded(part.first, part, ChartBy::kSum, scope);
    };
    return fmt::format("({}) / 1000 * ({})", sum_of("power"), sum_of("intensity"));
  }
  return folded(by == ChartBy::kComponent ? std::span<const ChartSource>(kPowerParts) : chart.first,
                chart, by, scope);
}

std::string sources_query(const UnitChart& chart, const ChartScope& scope) {
  std::string query;
  for (std::size_t i = 0; i < chart.first.size(); ++i) {
    query += fmt::format("{}label_replace(count({}), \"source\", \"{}\", \"\", \"\")",
                         query.empty() ? "" : " or ", readings_of(chart.first[i], scope), i);
  }
  return query;
}

std::string limit_query(const UnitChart& chart, ChartBy by, const ChartScope& scope) {
  return folded(chart.limit, chart, by, scope);
}

std::string devices_query(const ChartScope& scope) {
  return fmt::format("max by ({}) (ceems_compute_unit_gpu_index_flag{{{}}} > 0)", kGpuLabels,
                     scope.unit);
}

}  // namespace ceems::api
