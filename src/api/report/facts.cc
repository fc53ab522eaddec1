#include "api/report/facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "report/family.h"

namespace ceems::api {
namespace {

using model::Metric;
using report::NodeUse;
using report::Number;

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kPercent = 100;
constexpr double kUnusedNode = 0.01;  // of its CPU time [jobstats: 0 %]
constexpr double kBusyNode = 0.2;

Number scaled(const std::optional<double>& number, double by) {
  return number ? Number(*number * by) : std::nullopt;
}
void add_to(Number& sum, const Number& part) {
  if (part) {
    sum = sum.value_or(0) + *part;
  }
}
Number total_of(const std::optional<double>& a, const std::optional<double>& b) {
  Number sum = a;
  add_to(sum, b);
  return sum;
}

double elapsed_of(const UnitRun& run) {
  return std::max(static_cast<double>(run.ended_ms - run.started_ms) / 1000, 0.0);
}
double elapsed_of(const StoredUnit& unit) {
  return std::max(static_cast<double>(unit.unit.ended_at_ts - unit.unit.started_at_ts) / 1000, 0.0);
}

/// Energy of the unit in the database.
Number kwh_of(const StoredUnit& unit) {
  return total_of(unit.metric(Metric::kTotalCpuEnergyUsageKwh, "total"),
                  unit.metric(Metric::kTotalGpuEnergyUsageKwh, "total"));
}

/// The source of emission factors to show: a site's own, then those of docs/report.md.
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
        all[domain.starts_with("gpu") ? "gpu" : domain] += joules / kJoulesPerKwh;
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

Number idle_kwh_of(const std::vector<NodeMeasurements>& nodes, bool of_gpus) {
  Number sum;
  for (const NodeMeasurements& node : nodes) {
    const bool has_whole = node.idle_joules.contains("node");
    for (const auto& [domain, joules] : node.idle_joules) {
      const bool gpu = domain.starts_with("gpu");
      if (of_gpus ? gpu : (has_whole ? domain == "node" : true)) {
        add_to(sum, joules / kJoulesPerKwh);
      }
    }
  }
  return sum;
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

Number memory_per_node(const Evidence& evidence) {
  const auto memory = evidence.unit.allocated("mem");
  const auto nodes = evidence.unit.allocated("nodes");
  if (!memory || *memory <= 0) {
    return std::nullopt;
  }
  constexpr double kMiB = 1024.0 * 1024;  // OpenStack's unit of a flavor's memory
  const double unit = evidence.unit.unit.resource_manager == "openstack" ? kMiB : 1;
  return *memory * unit / std::max(nodes.value_or(1), 1.0);
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

/// Values of the family, this run first.
struct FamilyValues {
  std::vector<double> runtime, memory, cpu, gpu, kwh;
};

FamilyValues family_values(const Evidence& evidence, const report::Report& report) {
  FamilyValues all;
  const auto add = [](std::vector<double>& list, const Number& value) {
    if (value) {
      list.push_back(*value);
    }
  };
  add(all.runtime, report.job.elapsed);
  add(all.memory, report.use.mem_peak_node);
  add(all.cpu, report.use.cpu);
  add(all.gpu, report.use.gpu_busy);
  add(all.kwh, report.energy.kwh);
  for (const EarlierRun& run : evidence.earlier) {
    const double elapsed = elapsed_of(run.unit);
    all.runtime.push_back(elapsed);
    add(all.memory, run.measured.mem_peak);
    add(all.cpu, scaled(run.unit.metric(Metric::kAvgCpuUsage, "global"), 1 / kPercent));
    if (run.measured.gpu_busy_seconds && run.measured.gpus > 0 && elapsed > 0) {
      all.gpu.push_back(*run.measured.gpu_busy_seconds /
                        (static_cast<double>(run.measured.gpus) * elapsed));
    } else {
      add(all.gpu, scaled(run.unit.metric(Metric::kAvgGpuUsage, "global"), 1 / kPercent));
    }
    add(all.kwh, kwh_of(run.unit));
  }
  return all;
}

void add_comparison(const FamilyValues& values, std::size_t runs, report::Compared& compared) {
  compared.runs = runs;
  if (const auto cpu = report::statistics_of(values.cpu)) {
    compared.cpu_low = cpu->min;
    compared.cpu_high = cpu->max;
  }
  if (const auto gpu = report::statistics_of(values.gpu)) {
    compared.gpu_low = gpu->min;
    compared.gpu_high = gpu->max;
  }
  if (const auto kwh = report::statistics_of(values.kwh)) {
    compared.median_kwh = kwh->median;
  }
}

bool is_interactive(std::string_view name) {
  return name == "interactive" || name.starts_with("sys/dashboard");
}

void set(advice::Facts& facts, std::string_view name, const Number& value) {
  if (value) {
    facts.set(name, *value);
  }
}

/// How many CPUs of the operating system are one of the manager, which may count cores: as in the
/// allocation, which the exporter sees as a set of CPUs.
double threads_per_cpu(const Evidence& evidence) {
  double seen = 0;
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    seen += node.cpus.value_or(0);
  }
  const auto allocated = evidence.unit.allocated("cpus");
  return allocated && *allocated > 0 ? std::max(seen / *allocated, 1.0) : 1.0;
}

/// Facts of the machines: the smallest counts, because a job must fit on any.
void add_machines(const Evidence& evidence, advice::Facts& facts) {
  Number cpus;
  Number memory;
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    if (!node.node_cpus || !node.node_mem || *node.node_cpus <= 0) {
      return;
    }
    cpus = std::min(cpus.value_or(*node.node_cpus), *node.node_cpus);
    memory = std::min(memory.value_or(*node.node_mem), *node.node_mem);
  }
  if (!cpus || !memory) {
    return;
  }
  *cpus /= threads_per_cpu(evidence);
  facts.set("node.cpus", *cpus);
  facts.set("node.mem", *memory);
  facts.set("node.mem_per_cpu", *memory / *cpus);
  const auto allocated = evidence.unit.allocated("cpus");
  if (allocated) {
    const double nodes = std::max(evidence.unit.allocated("nodes").value_or(1), 1.0);
    facts.set("alloc.exclusive", *allocated >= *cpus * nodes);
  }
}

void add_node_facts(const Evidence& evidence, const report::Report& report, advice::Facts& facts) {
  const double elapsed = elapsed_of(evidence.run);
  Number used_max;
  Number fails;
  Number io;
  Number idle;
  Number peaks;
  Number cpu_seconds;
  double unused = 0;
  double busy = 0;
  bool all_cpus = true;
  bool all_idle = true;
  bool all_peaks = true;
  bool all_used_max = true;
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    all_used_max = all_used_max && node.cpu_used_max;
    add_to(used_max, node.cpu_used_max);
    add_to(fails, node.mem_fail_count);
    add_to(io, node.io_bytes);
    all_peaks = all_peaks && node.mem_peak;
    add_to(peaks, node.mem_peak);
    all_idle = all_idle && node.idle_seconds;
    if (node.idle_seconds) {  // the job is idle while all its nodes are
      idle = std::min(idle.value_or(*node.idle_seconds), *node.idle_seconds);
    }
    add_to(cpu_seconds, node.cpu_seconds);
    all_cpus = all_cpus && node.cpu_seconds && node.cpus && *node.cpus > 0;
    if (all_cpus && elapsed > 0) {
      const double share = *node.cpu_seconds / (*node.cpus * elapsed);
      unused += share < kUnusedNode ? 1 : 0;
      busy += share >= kBusyNode ? 1 : 0;
    }
  }
  if (all_used_max) {
    set(facts, "cpu.used_max", used_max);
  }
  set(facts, "mem.fail_count", fails);
  if (io && elapsed > 0) {
    facts.set("io.bytes_per_s", *io / elapsed);
  }
  if (all_idle) {
    set(facts, "idle.seconds", idle);
  }
  if (all_peaks) {
    set(facts, "mem.peak_sum", peaks);
    set(facts, "mem.peak_node_max", report.use.mem_peak_node);
  }
  if (all_cpus) {
    facts.set("cpu.unused_nodes", unused);
    facts.set("cpu.busy_nodes", busy);
    if (cpu_seconds && elapsed > 0) {
      facts.set("cpu.used", *cpu_seconds / elapsed);
    }
  }
  set(facts, "idle.kwh", idle_kwh_of(evidence.measured->nodes, false));
  set(facts, "idle.kwh_gpu", idle_kwh_of(evidence.measured->nodes, true));
}

void add_gpu_facts(const report::Report& report, advice::Facts& facts) {
  double gpus = 0;
  double unused = 0;
  Number unused_peak;
  Number peak;
  Number least_unused;
  Number per_node;
  bool same = true;
  for (const NodeUse& node : report.nodes) {
    double on_node = 0;
    for (const report::GpuUse& gpu : node.gpus) {
      if (!gpu.busy) {
        return;  // whether the others are used does not say much
      }
      gpus += 1;
      peak = std::max(peak, gpu.mem_peak);
      if (*gpu.busy == 0) {
        on_node += 1;
        unused_peak = std::max(unused_peak, Number(gpu.mem_peak.value_or(0)));
      }
    }
    const auto count = static_cast<double>(node.gpus.size());
    same = same && (!per_node || *per_node == count);
    per_node = count;
    unused += on_node;
    least_unused = std::min(least_unused.value_or(on_node), on_node);
  }
  if (gpus == 0 || gpus < report.job.gpus.value_or(0)) {
    return;  // GPUs of a node that was not scraped, or that no library shows
  }
  facts.set("gpu.unused", unused);
  set(facts, "gpu.unused_per_node", least_unused);
  set(facts, "gpu.unused_mem_peak", unused > 0 ? unused_peak : Number(0));
  set(facts, "gpu.mem_peak_max", peak);
  if (same) {
    set(facts, "gpu.per_node", per_node);
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
                .cpus = total_of(unit.allocated("cpus"), unit.allocated("vcpus")),
                .gpus = unit.allocated("gpus"),
                .elapsed = {},
                .limit = unit.allocated("time_limit"),
                .waited = {}};
  if (const auto job = unit.allocated("array_job"), task = unit.allocated("array_task");
      job && task) {
    report.job.array = fmt::format("{:.0f}_{:.0f}", *job, *task);
  }
  if (unit.unit.started_at_ts > 0) {
    report.job.elapsed = elapsed_of(evidence.run);
  }
  if (const auto eligible = unit.allocated("eligible"); eligible && *eligible > 0) {
    const double waited = static_cast<double>(unit.unit.started_at_ts) / 1000 - *eligible;
    report.job.waited = waited >= 0 ? Number(waited) : std::nullopt;
  }
  if (evidence.measured != nullptr) {
    add_nodes(evidence, report);
    report.energy.method = evidence.measured->method;
    report.energy.domains = by_domain(evidence.measured->nodes);
    report.energy.idle_kwh = idle_kwh_of(evidence.measured->nodes, false);
  }
  add_use(evidence, report);
  report.energy.kwh = kwh_of(unit);
  fit_parts(report.energy);
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

advice::Facts facts_of(const Evidence& evidence, const report::Report& report) {
  advice::Facts facts;
  const StoredUnit& unit = evidence.unit;
  facts.set("state", report.job.state);
  if (!report.job.qos.empty()) {
    facts.set("qos", report.job.qos);
  }
  facts.set("interactive", is_interactive(unit.unit.name));
  set(facts, "coverage", report.coverage);
  set(facts, "runtime", report.job.elapsed);
  set(facts, "limit", report.job.limit);
  set(facts, "alloc.nodes", report.job.nodes);
  set(facts, "alloc.cpus", report.job.cpus);
  set(facts, "req.cpus", unit.allocated("req_cpus"));
  set(facts, "alloc.gpus", report.job.gpus);
  set(facts, "mem.alloc_node", report.use.mem_alloc_node);
  if (report.job.cpus && *report.job.cpus > 0) {
    const double nodes = std::max(report.job.nodes.value_or(1), 1.0);
    facts.set("alloc.cpus_per_node", *report.job.cpus / nodes);
    set(facts, "alloc.mem_per_cpu", scaled(report.use.mem_alloc_node, nodes / *report.job.cpus));
  }
  set(facts, "cpu.eff", report.use.cpu);
  set(facts, "gpu.busy", report.use.gpu_busy);
  set(facts, "gpu.sm", report.use.gpu_sm);
  set(facts, "gpu.mem", report.use.gpu_mem);
  if (evidence.measured != nullptr) {
    add_machines(evidence, facts);
    add_node_facts(evidence, report, facts);
    add_gpu_facts(report, facts);
  }
  const FamilyValues values = family_values(evidence, report);
  facts.set("family.n", static_cast<double>(evidence.earlier.size() + 1));
  facts.set("family.oom", static_cast<double>(evidence.out_of_memory));
  if (const auto runtime = report::statistics_of(values.runtime)) {
    facts.set("family.runtime_p95", runtime->p95);
    facts.set("family.runtime_max", runtime->max);
  }
  if (const auto memory = report::statistics_of(values.memory)) {
    facts.set("family.mem_p95", memory->p95);
    facts.set("family.mem_max", memory->max);
  }
  if (const auto cpu = report::statistics_of(values.cpu)) {
    facts.set("family.cpu_median", cpu->median);
  }
  if (const auto gpu = report::statistics_of(values.gpu)) {
    facts.set("family.gpu_median", gpu->median);
  }
  return facts;
}

advice::Facts earlier_facts(const advice::Facts& present, const EarlierRun& earlier) {
  advice::Facts facts = present;
  for (const char* name : {"coverage",
                           "qos",
                           "cpu.eff",
                           "cpu.used",
                           "cpu.used_max",
                           "cpu.unused_nodes",
                           "cpu.busy_nodes",
                           "gpu.busy",
                           "gpu.sm",
                           "gpu.mem",
                           "gpu.mem_peak_max",
                           "gpu.unused",
                           "gpu.unused_per_node",
                           "gpu.unused_mem_peak",
                           "mem.peak_node_max",
                           "mem.peak_sum",
                           "mem.fail_count",
                           "io.bytes_per_s",
                           "idle.seconds",
                           "idle.kwh",
                           "idle.kwh_gpu",
                           "limit",
                           "req.cpus",
                           "mem.alloc_node",
                           "alloc.mem_per_cpu"}) {
    facts.clear(name);
  }
  const StoredUnit& unit = earlier.unit;
  const double elapsed = elapsed_of(unit);
  facts.set("state", unit.unit.state);
  facts.set("runtime", elapsed);
  set(facts, "limit", unit.allocated("time_limit"));
  set(facts, "req.cpus", unit.allocated("req_cpus"));
  set(facts, "cpu.eff", scaled(unit.metric(Metric::kAvgCpuUsage, "global"), 1 / kPercent));
  set(facts, "cpu.used_max", earlier.measured.cpu_used_max);
  set(facts, "mem.peak_node_max", earlier.measured.mem_peak);
  const double nodes = std::max(unit.allocated("nodes").value_or(1), 1.0);
  if (const auto memory = unit.allocated("mem"); memory && *memory > 0) {
    facts.set("mem.alloc_node", *memory / nodes);
    if (const auto cpus = unit.allocated("cpus"); cpus && *cpus > 0) {
      facts.set("alloc.mem_per_cpu", *memory / *cpus);
    }
  }
  if (earlier.measured.gpus > 0 && elapsed > 0) {
    const auto gpus = static_cast<double>(earlier.measured.gpus);
    facts.set("gpu.unused", static_cast<double>(earlier.measured.gpus_unused));
    set(facts, "gpu.busy", scaled(earlier.measured.gpu_busy_seconds, 1 / (gpus * elapsed)));
  } else {
    set(facts, "gpu.busy", scaled(unit.metric(Metric::kAvgGpuUsage, "global"), 1 / kPercent));
  }
  return facts;
}

}  // namespace ceems::api
