#pragma once

#include <string>
#include <vector>

#include "advice/judge.h"

// Runs of jobs for tests of rules: everything that is known of a healthy job, to be changed.

namespace ceems::advice {

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

/// A job of two hours on one of two nodes with 64 CPUs and 256 GiB each, of which nothing is left
/// unused.
inline Facts cpu_run() {
  Facts facts;
  facts.set("state", "COMPLETED");
  facts.set("qos", "normal");
  facts.set("interactive", false);
  facts.set("coverage", 1.0);
  facts.set("runtime", 7200);
  facts.set("limit", 10800);
  facts.set("alloc.nodes", 1);
  facts.set("alloc.cpus", 16);
  facts.set("req.cpus", 16);
  facts.set("alloc.cpus_per_node", 16);
  facts.set("alloc.gpus", 0);
  facts.set("alloc.exclusive", false);
  facts.set("alloc.mem_per_cpu", 8 * kGiB);
  facts.set("node.cpus", 64);
  facts.set("node.mem", 256 * kGiB);
  facts.set("node.mem_per_cpu", 4 * kGiB);
  facts.set("mem.alloc_node", 128 * kGiB);
  facts.set("mem.peak_node_max", 100 * kGiB);
  facts.set("mem.peak_sum", 100 * kGiB);
  facts.set("mem.fail_count", 0);
  facts.set("cpu.eff", 0.95);
  facts.set("cpu.used", 15.2);
  facts.set("cpu.used_max", 15.9);
  facts.set("cpu.unused_nodes", 0);
  facts.set("cpu.busy_nodes", 1);
  facts.set("io.bytes_per_s", 1e6);
  facts.set("idle.seconds", 0);
  facts.set("idle.kwh", 0.1);
  facts.set("not_used.kwh", 0.05);
  facts.set("family.n", 1);
  facts.set("family.runtime_p95", 7200);
  facts.set("family.runtime_max", 7200);
  facts.set("family.mem_p95", 100 * kGiB);
  facts.set("family.mem_max", 100 * kGiB);
  facts.set("family.cpu_median", 0.95);
  facts.set("family.oom", 0);
  facts.set("slurm.mem", "node");
  facts.set("slurm.by_tasks", false);
  facts.set("slurm.by_cpus", true);
  facts.set("slurm.tasks", 1);
  facts.set("slurm.by_tasks_per_node", false);
  facts.set("slurm.time", true);
  return facts;
}

/// The same with four GPUs that work.
inline Facts gpu_run() {
  Facts facts = cpu_run();
  facts.set("alloc.gpus", 4);
  facts.set("gpu.per_node", 4);
  facts.set("gpu.unused", 0);
  facts.set("gpu.unused_per_node", 0);
  facts.set("gpu.busy", 0.8);
  facts.set("gpu.sm", 0.6);
  facts.set("gpu.mem", 0.5);
  facts.set("gpu.mem_peak_max", 20 * kGiB);
  facts.set("family.gpu_median", 0.8);
  facts.set("idle.kwh_gpu", 0.4);
  facts.set("not_used.kwh_gpu", 0.3);
  facts.set("cpu.eff", 0.2);
  facts.set("family.cpu_median", 0.2);
  facts.set("slurm.gpus_by", "node");
  facts.set("slurm.gpus_option", "--gres=gpu:");
  facts.set("slurm.gpus_asked", 4);
  facts.set("slurm.gpus_more", "");
  return facts;
}

using Change = std::pair<std::string, double>;

inline Facts changed(Facts facts, const std::vector<Change>& changes) {
  for (const auto& [name, value] : changes) {
    facts.set(name, value);
  }
  return facts;
}

/// The same on both nodes.
inline Facts two_nodes_run() {
  return changed(cpu_run(), {{"alloc.nodes", 2}, {"alloc.cpus", 32}, {"cpu.busy_nodes", 2}});
}

/// A server of 16 CPUs and 128 GiB that has run for a week and fits in 4 CPUs and 32 GiB.
inline Facts server_run() {
  Facts facts = changed(cpu_run(), {{"runtime", 604800},
                                    {"cpu.used_max", 3.3},
                                    {"mem.peak_node_max", 20 * kGiB},
                                    {"flavor.vcpus", 4},
                                    {"flavor.mem", 32 * kGiB}});
  facts.set("flavor.name", "m1.medium");
  facts.set("flavor.now", "m1.large");
  facts.set("flavor.server", "4f0e");
  return facts;
}

/// Facts of the family that follow from the run itself, as the first run of its kind has them.
inline Facts first_run(Facts facts) {
  for (const auto& [of_family, of_run] :
       std::vector<std::pair<std::string, std::string>>{{"family.runtime_p95", "runtime"},
                                                        {"family.runtime_max", "runtime"},
                                                        {"family.mem_p95", "mem.peak_node_max"},
                                                        {"family.mem_max", "mem.peak_node_max"},
                                                        {"family.cpu_median", "cpu.eff"},
                                                        {"family.gpu_median", "gpu.busy"}}) {
    const Value value = facts.value_of(of_run);
    if (const double* number = std::get_if<double>(&value)) {
      facts.set(of_family, *number);
    } else {
      facts.clear(of_family);
    }
  }
  return facts;
}

/// The rules that have something to say.
inline std::vector<std::string> rules_found(const Facts& facts,
                                            const RuleSet& rules = core_rules()) {
  std::vector<std::string> ids;
  for (const Finding& finding : judge(rules, {.facts = facts})) {
    ids.push_back(finding.rule);
  }
  return ids;
}

/// The same without "good".
inline std::vector<std::string> said(const Facts& facts, const RuleSet& rules = core_rules()) {
  std::vector<std::string> ids = rules_found(facts, rules);
  std::erase(ids, "good");
  return ids;
}

}  // namespace ceems::advice
