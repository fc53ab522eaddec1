// Histories of jobs that use what they ask for, as they come: with noise, phases and odd runs.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/test_runs.h"

namespace ceems::advice {
namespace {

class Histories {
 public:
  explicit Histories(unsigned seed) : random_(seed) {}

  /// A run of a healthy job after some earlier ones.
  Facts next() {
    const bool gpu = between(0, 1) < 0.4;
    Facts facts = gpu ? gpu_run() : cpu_run();
    const double nodes = std::floor(between(1, 9));
    const double cpus_per_node = std::floor(between(1, 65));
    facts.set("alloc.nodes", nodes);
    facts.set("alloc.cpus_per_node", nodes > 1 ? std::max(cpus_per_node, 32.0) : cpus_per_node);
    const Value per_node = facts.value_of("alloc.cpus_per_node");
    const double cpus = std::get<double>(per_node) * nodes;
    facts.set("alloc.cpus", cpus);
    facts.set("req.cpus", between(0, 1) < 0.3 ? 1.0 : cpus);
    facts.set("alloc.exclusive", std::get<double>(per_node) >= 64);
    facts.set("cpu.busy_nodes", nodes);
    facts.set("cpu.eff", gpu ? between(0.01, 1) : between(0.82, 1.02));
    facts.set("cpu.used", cpus * std::get<double>(facts.value_of("cpu.eff")));
    facts.set("cpu.used_max", cpus * between(0.9, 1));
    if (gpu) {
      facts.set("alloc.gpus", 4 * nodes);
      facts.set("gpu.busy", between(0.3, 1));
      facts.set("gpu.sm", between(0.25, 0.9));
      facts.set("gpu.mem", between(0.01, 1));
    }
    // Memory: either the default of the node or most of what was asked for.
    const bool by_default = between(0, 1) < 0.5;
    const double per_cpu = by_default ? 4 * kGiB : between(4.3, 16) * kGiB;
    const double reserved = per_cpu * std::get<double>(per_node);
    const double peak = reserved * (by_default ? between(0.01, 0.94) : between(0.72, 0.94));
    facts.set("alloc.mem_per_cpu", per_cpu);
    facts.set("mem.alloc_node", reserved);
    facts.set("mem.peak_node_max", peak);
    facts.set("mem.peak_sum", peak * nodes);
    // Time: a limit that most runs come near, and some that fail early.
    const double limit = between(600, 7 * 86400);
    const double longest = limit * between(0.65, 0.99);
    const bool early = between(0, 1) < 0.2;
    facts.set("limit", limit);
    facts.set("runtime", early ? longest * between(0.001, 1) : longest);
    facts.set("state", early ? "FAILED" : "COMPLETED");
    facts.set("family.n", std::floor(between(1, 21)));
    facts.set("family.runtime_p95", longest);
    facts.set("family.runtime_max", longest);
    facts.set("family.mem_p95", peak * between(0.9, 1));
    facts.set("family.mem_max", peak);
    facts.set("family.cpu_median", gpu ? between(0.01, 1) : between(0.85, 1));
    facts.set("family.gpu_median", between(0.4, 1));
    facts.set("idle.seconds", longest * between(0, 0.0005));
    facts.set("io.bytes_per_s", between(0, 1) < 0.5 ? between(0, 1e9) : 0);
    facts.set("coverage", between(0.8, 1));
    // Threads on all CPUs, or on one hardware thread of each core.
    const double share = between(0, 1) < 0.3 ? 0.5 : 1;
    facts.set("threads.reserved", std::get<double>(per_node));
    facts.set("threads.cpus", std::ceil(share * std::get<double>(per_node)));
    facts.set("threads.busy", std::floor(share * std::get<double>(per_node) * between(0, 1.2)));
    facts.set("gpu.far", 0);
    if (between(0, 1) < 0.2) {  // no TSDB, or an older exporter
      for (const char* name : {"mem.peak_node_max", "io.bytes_per_s", "gpu.sm", "node.mem"}) {
        facts.clear(name);
      }
    }
    return facts;
  }

 private:
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  std::mt19937 random_;
};

TEST(HealthyJobs, GetNoAdvice) {
  Histories histories(20261125);
  int praised = 0;
  for (int i = 0; i < 1000; ++i) {
    const Facts facts = histories.next();
    EXPECT_THAT(said(facts), ::testing::IsEmpty()) << i;
    praised += judge(core_rules(), {.facts = facts}).empty() ? 0 : 1;
  }
  EXPECT_GT(praised, 100);  // the judge did look at them
}

}  // namespace
}  // namespace ceems::advice
