#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ceems::api {

/// What the lines of a unit's chart are of. kSum: one line for the whole unit.
enum class ChartBy : std::uint8_t { kSum, kNode, kGpu, kComponent };
inline constexpr std::array<std::string_view, 4> kChartBys{"sum", "node", "gpu", "component"};
std::optional<ChartBy> chart_by(std::string_view text);
/// The labels of such a line, separated by commas; empty for kSum.
std::string_view labels_of(ChartBy by);

struct ChartSource;

/// What a unit did over time, as `metric` of units/series names it.
struct UnitChart {
  std::string_view name;
  std::string_view unit;
  std::string_view fold;               ///< how several values become one: "sum" or "avg"
  std::string_view collector;          ///< of the exporter, which has to be switched on for it
  ChartBy finest = ChartBy::kNode;     ///< kSum: it has no other lines
  std::span<const ChartSource> first;  ///< the first of them that has a value of a line counts
  std::span<const ChartSource> limit;  ///< of what was reserved; may be empty
};
std::span<const UnitChart> unit_charts();
/// Null for other names.
const UnitChart* find_unit_chart(std::string_view name);
/// Whether the chart has lines of this kind.
bool has_lines(const UnitChart& chart, ChartBy by);

/// What the queries are confined to.
struct ChartScope {
  std::string unit;     ///< matchers of the unit's own series: `uuid="1",ceems_id="c"`
  std::string cluster;  ///< a matcher of all series of the cluster, or empty: `ceems_id="c"`
  std::string devices;  ///< a matcher of the unit's devices, or empty: `gpuuuid=~"a|b"`
  std::string range;    ///< of rates: "60s"
  /// Which of the sources of a chart are read, by a bit for each.
  std::uint32_t sources = ~0U;
};

/// PromQL of the chart's lines. Devices are those of ceems_compute_unit_gpu_index_flag of the unit.
/// Their values are looked for in the metrics of the collector `gpu`, of NVIDIA's DCGM exporter and
/// of AMD's two exporters (packaging/samples/prometheus-gpu-exporters.yml).
std::string chart_query(const UnitChart& chart, ChartBy by, const ChartScope& scope);
/// PromQL with a series for each source of the chart that has values, which its label `source`
/// numbers.
std::string sources_query(const UnitChart& chart, const ChartScope& scope);
/// PromQL of what was reserved, by the same lines; empty if there is no such value.
std::string limit_query(const UnitChart& chart, ChartBy by, const ChartScope& scope);
/// PromQL of the devices of the unit, one series each, with the labels of ChartBy::kGpu.
std::string devices_query(const ChartScope& scope);

}  // namespace ceems::api
