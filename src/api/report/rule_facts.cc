// The facts by which rules judge a run.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "api/report/evidence_numbers.h"
#include "api/report/facts.h"
#include "api/report/requests.h"
#include "api/report/slurm_request.h"
#include "base/statistics.h"

namespace ceems::api {
namespace {

using report::NodeUse;
using report::Number;

constexpr double kUnusedNode = 0.01;  // of its CPU time [jobstats: 0 %]
constexpr double kBusyNode = 0.2;

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
  const double threads = allocated && *allocated > 0 ? seen / *allocated : 1.0;
  // Otherwise it is a job that may run on all CPUs of the node, because its cgroup has no cpuset.
  constexpr double kMaxThreads = 8;  // a core of POWER
  const bool whole = threads == std::floor(threads);
  return whole && threads <= kMaxThreads ? std::max(threads, 1.0) : 1.0;
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
  const auto allocated = cpus_of(evidence.unit);
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
  // The database knows whether the counters began with the run.
  set(facts, "not_used.kwh", report.energy.not_used_kwh);
  if (report.energy.not_used_kwh) {
    set(facts, "not_used.kwh_gpu", not_used_gpu_kwh_of(evidence.measured->nodes));
  }
}

/// Facts of the node on which the fewest CPUs are left to each busy thread.
void add_threads(const Evidence& evidence, advice::Facts& facts) {
  const Number allocated = cpus_of(evidence.unit);
  struct Pinned {
    double busy = 0, on_cpus = 0, reserved = 0;
  };
  std::optional<Pinned> worst;
  Number far;
  for (const NodeMeasurements& node : evidence.measured->nodes) {
    if (node.far_gpus) {
      far = far.value_or(0) + std::floor(*node.far_gpus);
    }
    if (!node.busy_threads || !node.thread_cpus || *node.thread_cpus < 1 || !node.cpus) {
      continue;
    }
    const Pinned one{
        .busy = *node.busy_threads, .on_cpus = *node.thread_cpus, .reserved = *node.cpus};
    if (!worst || one.busy / one.on_cpus > worst->busy / worst->on_cpus) {
      worst = one;
    }
  }
  set(facts, "gpu.far", far);
  if (!worst || !allocated) {
    return;
  }
  facts.set("threads.busy", std::floor(worst->busy));
  facts.set("threads.cpus", worst->on_cpus);
  // Without a cpuset, the job seems to have all CPUs of the machine.
  facts.set("threads.reserved", std::min(worst->reserved, *allocated * threads_per_cpu(evidence)));
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

advice::Facts facts_of(const Evidence& evidence,
                       const report::Report& report,
                       const advice::RuleSet& rules) {
  advice::Facts facts;
  const StoredUnit& unit = evidence.unit;
  facts.set("state", std::string(common_state(unit, elapsed_of(evidence.run))));
  if (!report.job.qos.empty()) {
    facts.set("qos", report.job.qos);
  }
  facts.set("interactive", is_session(unit, rules.sessions));
  set(facts, "coverage", report.coverage);
  set(facts, "runtime", report.job.elapsed);
  set(facts, "limit", report.job.limit);
  set(facts, "alloc.nodes", unit.unit.resource_manager == "k8s" ? Number(1) : report.job.nodes);
  set(facts, "alloc.cpus", report.job.cpus);
  add_requests(unit, facts);
  add_slurm_request(unit, facts);
  if (!unit.allocated("partition_time")) {
    set(facts, "queue.limit", evidence.longest_limit);
  }
  set(facts, "alloc.gpus", report.job.gpus);
  const Number reserved = memory_is_reserved(unit) ? report.use.mem_alloc_node : std::nullopt;
  set(facts, "mem.alloc_node", reserved);
  if (report.job.cpus && *report.job.cpus > 0) {
    const double nodes = std::max(report.job.nodes.value_or(1), 1.0);
    facts.set("alloc.cpus_per_node", *report.job.cpus / nodes);
    set(facts, "alloc.mem_per_cpu", scaled(reserved, nodes / *report.job.cpus));
  }
  set(facts, "cpu.eff", report.use.cpu);
  set(facts, "gpu.busy", report.use.gpu_busy);
  set(facts, "gpu.sm", report.use.gpu_sm);
  set(facts, "gpu.mem", report.use.gpu_mem);
  if (evidence.measured != nullptr) {
    add_machines(evidence, facts);
    add_node_facts(evidence, report, facts);
    add_threads(evidence, facts);
    add_gpu_facts(report, facts);
  }
  add_partition_limits(unit, facts);
  const FamilyValues values = family_values(evidence, report);
  facts.set("family.n", static_cast<double>(evidence.earlier.size() + 1));
  facts.set("family.oom", static_cast<double>(evidence.out_of_memory));
  if (const auto runtime = statistics_of(values.runtime)) {
    facts.set("family.runtime_p95", runtime->p95);
    facts.set("family.runtime_max", runtime->max);
  }
  if (const auto memory = statistics_of(values.memory)) {
    facts.set("family.mem_p95", memory->p95);
    facts.set("family.mem_max", memory->max);
  }
  if (const auto cpu = statistics_of(values.cpu)) {
    facts.set("family.cpu_median", cpu->median);
  }
  if (const auto gpu = statistics_of(values.gpu)) {
    facts.set("family.gpu_median", gpu->median);
  }
  return facts;
}

advice::Facts earlier_facts(const advice::Facts& present, const store::FamilyRun& earlier) {
  advice::Facts facts = present;
  for (const char* name : {"coverage",
                           "qos",
                           "cpu.eff",
                           "cpu.used",
                           "cpu.used_max",
                           "cpu.unused_nodes",
                           "cpu.busy_nodes",
                           "gpu.busy",
                           "gpu.far",
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
                           "not_used.kwh",
                           "not_used.kwh_gpu",
                           "threads.busy",
                           "threads.cpus",
                           "threads.reserved",
                           "limit",
                           "req.cpus",
                           "mem.alloc_node",
                           "alloc.mem_per_cpu"}) {
    facts.clear(name);
  }
  const double elapsed = elapsed_of(earlier);
  // The store holds runs that completed, by the word of their manager, or ran out of memory.
  facts.set("state", earlier.state == "OUT_OF_MEMORY" ? "OUT_OF_MEMORY" : "COMPLETED");
  facts.set("runtime", elapsed);
  set(facts, "limit", earlier.time_limit);
  set(facts, "req.cpus", earlier.req_cpus);
  set(facts, "cpu.eff", earlier.cpu_use);
  set(facts, "cpu.used_max", earlier.numbers.cpu_used_max);
  set(facts, "mem.peak_node_max", earlier.numbers.mem_peak);
  const double nodes = std::max(earlier.nodes.value_or(1), 1.0);
  if (const auto memory = earlier.memory; memory && *memory > 0) {
    facts.set("mem.alloc_node", *memory / nodes);
    if (const auto cpus = earlier.cpus; cpus && *cpus > 0) {
      facts.set("alloc.mem_per_cpu", *memory / *cpus);
    }
  }
  if (earlier.numbers.gpus > 0 && elapsed > 0) {
    const auto gpus = static_cast<double>(earlier.numbers.gpus);
    facts.set("gpu.unused", static_cast<double>(earlier.numbers.gpus_unused));
    set(facts, "gpu.busy", scaled(earlier.numbers.gpu_busy_seconds, 1 / (gpus * elapsed)));
  } else {
    set(facts, "gpu.busy", earlier.gpu_use);
  }
  return facts;
}

}  // namespace ceems::api
