#include "api/report/facts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "api/report/evidence_numbers.h"
#include "api/report/requests.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using model::Metric;
using report::NodeUse;
using report::Number;

constexpr double kPercent = 100;

Number total_of(const std::optional<double>& a, const std::optional<double>& b) {
  Number sum = a;
  add_to(sum, b);
  return sum;
}

/// Energy of the unit in the database.
Number kwh_of(const StoredUnit& unit) {
  return total_of(unit.metric(Metric::kTotalCpuEnergyUsageKwh, "total"),
                  unit.metric(Metric::kTotalGpuEnergyUsageKwh, "total"));
}

/// The source of emission factors to show: a site's own, then the sources in docs/report.md.
std::string provider_of(const StoredUnit& unit) {
  constexpr std::array<std::string_view, 4> kKnown{"rte_total", "emaps_total", "owid_total",
                                                   "global_total"};
  std::set<std::string, std::less<>> names;
  for (const Metric metric : {Metric::kTotalCpuEmissionsGms, Metric::kTotalGpuEmissionsGms}) {
    for (const auto& [name, value] : unit.unit.metric(metric)) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    if (std::ranges::find(kKnown, name) == kKnown.end()) {
      return name;
    }
  }
  for (const std::string_view name : kKnown) {
    if (names.contains(name)) {
      return std::string(name);
    }
  }
  return {};
}

/// "node" contains the others; what they leave is "other".
std::map<std::string, double> by_domain(const std::vector<NodeMeasurements>& nodes) {
  std::map<std::string, double> all;
  for (const NodeMeasurements& node : nodes) {
    double parts = 0;
    for (const auto& [domain, joules] : node.joules) {
      if (domain != "node") {
        all[is_gpu(domain) ? "gpu" : domain] += joules / kJoulesPerKwh;
        parts += joules;
      }
    }
    const auto whole = node.joules.find("node");
    if (whole != node.joules.end() && !node.joules.contains("other") && whole->second > parts) {
      all["other"] += (whole->second - parts) / kJoulesPerKwh;
    }
  }
  return all;
}

/// Parts that are no more than the whole. The counters are read now, the database was written at
/// the last update, and a site's rules may measure other than the exporter; so where the parts are
/// more, they are made less, each by the same share.
void fit_parts(report::Energy& energy) {
  double parts = 0;
  for (const auto& [domain, kwh] : energy.domains) {
    parts += kwh;
  }
  parts = std::max(parts, energy.idle_kwh.value_or(0));
  if (!energy.kwh || parts <= *energy.kwh) {
    return;
  }
  const double share = *energy.kwh / parts;
  for (auto& [domain, kwh] : energy.domains) {
    kwh *= share;
  }
  energy.idle_kwh = scaled(energy.idle_kwh, share);
}

/// What was not used is a part of the idle energy, whichever of them is newer.
void add_not_used(const Number& kwh, report::Energy& energy) {
  if (kwh && energy.idle_kwh) {
    energy.not_used_kwh = std::min(*kwh, *energy.idle_kwh);
  }
}

Number memory_per_node(const Evidence& evidence) {
  const auto nodes = evidence.unit.allocated("nodes");
  return scaled(memory_of(evidence.unit), 1 / std::max(nodes.value_or(1), 1.0));
}

void add_nodes(const Evidence& evidence, report::Report& report) {
  const double elapsed = elapsed_of(evidence.run);
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    NodeUse use{.node = node.node,
                .cpus = node.cpus,
                .cpu_seconds = node.cpu_seconds,
                .mem_peak = node.mem_peak,
                .mem_alloc = memory_per_node(evidence)};
    if (!use.mem_alloc) {
      use.mem_alloc = node.mem_total;
    }
    for (const auto& gpu : node.gpus) {
      const auto share = [elapsed](const Number& seconds) {
        return seconds && elapsed > 0 ? Number(std::min(*seconds / elapsed, 1.0)) : std::nullopt;
      };
      use.gpus.push_back({.index = gpu.index,
                          .uuid = gpu.uuid,
                          .busy = share(gpu.busy_seconds),
                          .sm = share(gpu.sm_seconds),
                          .mem_peak = gpu.mem_peak,
                          .mem_total = gpu.mem_total});
    }
    report.nodes.push_back(std::move(use));
  }
}

/// What jobstats kept of the job, where there are no measurements of ours.
void add_js1(const StoredUnit& unit, report::Report& report) {
  const std::string text = unit.tag("js1");
  if (text.empty()) {
    return;
  }
  auto summary = report::parse_js1(text);
  if (summary) {
    report.nodes = std::move(summary->nodes);
    report.from_jobstats = !report.nodes.empty();
  } else {
    log::debug("cannot read a summary of jobstats",
               {{"uuid", unit.unit.uuid}, {"err", summary.error().message}});
  }
}

/// Means and maxima over nodes and GPUs. A mean exists only if every part of it was measured.
void add_use(const Evidence& evidence, report::Report& report) {
  report::Use& use = report.use;
  use.cpu = scaled(evidence.unit.metric(Metric::kAvgCpuUsage, "global"), 1 / kPercent);
  use.mem = scaled(evidence.unit.metric(Metric::kAvgCpuMemUsage, "global"), 1 / kPercent);
  use.gpu_busy = scaled(evidence.unit.metric(Metric::kAvgGpuUsage, "global"), 1 / kPercent);
  use.mem_alloc_node = memory_per_node(evidence);
  double busy = 0;
  double sm = 0;
  double gpus = 0;
  bool all_busy = true;
  bool all_sm = true;
  double cpu_seconds = 0;
  double cpus = 0;
  bool all_cpus = !report.nodes.empty();
  for (const NodeUse& node : report.nodes) {
    all_cpus = all_cpus && node.cpu_seconds && node.cpus;
    cpu_seconds += node.cpu_seconds.value_or(0);
    cpus += node.cpus.value_or(0);
    if (node.mem_peak && node.mem_peak > use.mem_peak_node) {
      use.mem_peak_node = node.mem_peak;
    }
    for (const report::GpuUse& gpu : node.gpus) {
      gpus += 1;
      busy += gpu.busy.value_or(0);
      sm += gpu.sm.value_or(0);
      all_busy = all_busy && gpu.busy;
      all_sm = all_sm && gpu.sm;
      if (gpu.mem_peak && gpu.mem_total && *gpu.mem_total > 0) {
        const Number share = *gpu.mem_peak / *gpu.mem_total;
        use.gpu_mem = std::max(use.gpu_mem, share);
      }
    }
  }
  if (gpus > 0 && all_busy) {
    use.gpu_busy = busy / gpus;
  }
  if (gpus > 0 && all_sm) {
    use.gpu_sm = sm / gpus;
  }
  const double elapsed = elapsed_of(evidence.run);
  if (!use.cpu && all_cpus && cpus * elapsed > 0) {
    use.cpu = cpu_seconds / (cpus * elapsed);
  }
  if (!use.mem_alloc_node && !report.nodes.empty()) {
    use.mem_alloc_node = report.nodes.front().mem_alloc;
  }
}

Number coverage_of(const Evidence& evidence) {
  if (evidence.measured == nullptr) {
    return std::nullopt;
  }
  const double elapsed = elapsed_of(evidence.run);
  const double nodes = std::max(evidence.unit.allocated("nodes").value_or(0),
                                static_cast<double>(evidence.measured->nodes.size()));
  if (elapsed <= 0 || nodes <= 0) {
    return std::nullopt;
  }
  double covered = 0;
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    covered += std::min(node.covered_seconds / elapsed, 1.0);
  }
  return std::min(covered / nodes, 1.0);
}

void add_comparison(const FamilyValues& values, std::size_t runs, report::Compared& compared) {
  compared.runs = runs;
  if (const auto cpu = statistics_of(values.cpu)) {
    compared.cpu_low = cpu->min;
    compared.cpu_high = cpu->max;
  }
  if (const auto gpu = statistics_of(values.gpu)) {
    compared.gpu_low = gpu->min;
    compared.gpu_high = gpu->max;
  }
  if (const auto kwh = statistics_of(values.kwh)) {
    compared.median_kwh = kwh->median;
  }
}

}  // namespace

report::Report report_of(const Evidence& evidence) {
  const StoredUnit& unit = evidence.unit;
  report::Report report{.cluster_id = unit.unit.cluster_id,
                        .uuid = unit.unit.uuid,
                        .started_ms = unit.unit.started_at_ts,
                        .ended_ms = unit.unit.ended_at_ts,
                        .started_text = unit.unit.started_at};
  report.job = {.name = unit.unit.name,
                .user = unit.unit.username,
                .project = unit.unit.project,
                .partition = unit.tag("partition"),
                .qos = unit.tag("qos"),
                .state = unit.unit.state,
                .manager = unit.unit.resource_manager,
                .nodes = unit.allocated("nodes"),
                .cpus = cpus_of(unit),
                .gpus = gpus_of(unit),
                .elapsed = {},
                .limit = unit.allocated("time_limit"),
                .waited = {}};
  if (const auto job = unit.allocated("array_job"), task = unit.allocated("array_task");
      job && task) {
    report.job.array = fmt::format("{:.0f}_{:.0f}", *job, *task);
  }
  if (const auto job = unit.allocated("het_job"), part = unit.allocated("het_offset");
      job && part) {
    report.job.array = fmt::format("{:.0f}+{:.0f}", *job, *part);
  }
  if (unit.unit.started_at_ts > 0) {
    report.job.elapsed = elapsed_of(evidence.run);
  }
  if (const auto eligible = unit.allocated("eligible"); eligible && *eligible > 0) {
    const double waited = (static_cast<double>(unit.unit.started_at_ts) - *eligible) / 1000;  // ms
    report.job.waited = waited >= 0 ? Number(waited) : std::nullopt;
  }
  if (evidence.measured != nullptr) {
    add_nodes(evidence, report);
    report.energy.method = evidence.measured->method;
    report.energy.domains = by_domain(evidence.measured->nodes);
    report.energy.idle_kwh = idle_kwh_of(evidence.measured->nodes, false);
  }
  if (report.nodes.empty()) {
    add_js1(unit, report);
  }
  add_use(evidence, report);
  report.energy.kwh = kwh_of(unit);
  fit_parts(report.energy);
  add_not_used(evidence.not_used_kwh, report.energy);
  report.co2.provider = provider_of(unit);
  if (!report.co2.provider.empty()) {
    report.co2.grams = total_of(unit.metric(Metric::kTotalCpuEmissionsGms, report.co2.provider),
                                unit.metric(Metric::kTotalGpuEmissionsGms, report.co2.provider));
  }
  report.coverage = coverage_of(evidence);
  add_comparison(family_values(evidence, report), evidence.earlier.size() + 1, report.compared);
  if (unit.unit.ended_at_ts <= 0) {
    report.state = report::State::kSoFar;
  } else if (report.coverage && *report.coverage >= advice::kCoverage) {
    report.state = report::State::kFinal;
  }
  return report;
}

}  // namespace ceems::api
