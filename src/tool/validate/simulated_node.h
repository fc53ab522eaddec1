#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tool/validate/run.h"

namespace ceems::tool::validate {

/// A node of formulas for tests: 64 CPUs on 32 cores, whose power and whose exporter's errors are
/// known. Time passes only in wait().
class SimulatedNode final : public TestedNode {
 public:
  static constexpr double kIdleWatts = 200;
  static constexpr double kAwakeWatts = 9;  ///< of the first busy core
  static constexpr double kSecondThread = 0.25;
  static constexpr double kSupply = 0.93;
  static constexpr int kCpus = 64;

  /// Charged / due of each class.
  std::map<LoadClass, double> charged{
      {LoadClass::kCompute, 1.10}, {LoadClass::kScalar, 1.0}, {LoadClass::kMemory, 0.95}};
  double noise = 0.2;          ///< watts, of the meter
  double other_load = 0;       ///< fraction of the CPU time
  bool shows_loads = true;     ///< the exporter has the pattern of the cgroups
  double meter_period = 1;     ///< seconds
  double exporter_factor = 1;  ///< the exporter's power of the node / that at the wall
  bool loads_die = false;
  double seconds_until_signal = INFINITY;

  static std::vector<std::vector<int>> cores() {
    std::vector<std::vector<int>> cores;
    for (int core = 0; core < kCpus / 2; ++core) {
      cores.push_back({core, core + kCpus / 2});
    }
    return cores;
  }
  [[nodiscard]] std::size_t running() const { return loads_.size(); }

  double now() override { return time_; }
  Result<> wait(double seconds) override {
    const double end = time_ + seconds;
    while (time_ < end - 1e-9) {
      step(std::min(meter_period, end - time_));
      if (time_ - kBegin > seconds_until_signal) {
        return fail(ErrorCode::kUnavailable, "interrupted");
      }
    }
    return {};
  }
  Result<ExporterPage> page() override {
    ExporterPage page;
    page.node["ipmi_dcmi"] = exporter_factor * joules_;
    if (shows_loads) {
      page.units = units_;
    }
    return page;
  }
  Result<CpuUse> cpu_use() override {
    return CpuUse{.busy = busy_, .all = kCpus * (time_ - kBegin)};
  }
  Result<> start(const std::string& uuid, const Assignment& load) override {
    loads_[uuid] = load;
    units_[uuid] = 0;
    return {};
  }
  Result<> stop(const std::string& uuid) override {
    loads_.erase(uuid);
    return loads_die ? Result<>(fail(ErrorCode::kUnavailable, "ended early")) : Result<>();
  }
  Result<std::vector<WattReading>> readings() override { return readings_; }
  std::string busiest() override { return "80 % of a CPU by backup (process 7)"; }

 private:
  static constexpr double kBegin = 1.7e9;

  static double marginal(const Assignment& load) {
    const double core = load.load == LoadClass::kCompute ? 4.0 : 3.0;
    std::map<int, int> threads;
    for (const int cpu : load.cpus) {
      ++threads[cpu % (kCpus / 2)];
    }
    double watts = 0;
    for (const auto& [number, count] : threads) {
      watts += core * (1 + kSecondThread * (count - 1));
    }
    return watts;
  }
  void step(double seconds) {
    double active = loads_.empty() ? 0 : kAwakeWatts;
    double alone = 0;
    double cpus = 0;
    for (const auto& [uuid, load] : loads_) {
      active += marginal(load);
      alone += kAwakeWatts + marginal(load);
      cpus += static_cast<double>(load.cpus.size());
    }
    const double added = active / kSupply;
    for (const auto& [uuid, load] : loads_) {
      const double due = kIdleWatts * static_cast<double>(load.cpus.size()) / kCpus +
                         added * (kAwakeWatts + marginal(load)) / alone;
      units_[uuid] += charged.at(load.load) * due * seconds;
    }
    joules_ += (kIdleWatts + added) * seconds;
    busy_ += std::min<double>(kCpus, kCpus * other_load + cpus) * seconds;
    time_ += seconds;
    readings_.push_back({.time = time_, .watts = kIdleWatts + added + noise_(random_) * noise});
  }

  double time_ = kBegin;
  double joules_ = 0;
  double busy_ = 0;
  std::map<std::string, Assignment> loads_;
  std::map<std::string, double, std::less<>> units_;
  std::vector<WattReading> readings_;
  std::mt19937 random_{1};
  std::normal_distribution<double> noise_;
};

/// A record of a run on the simulated node, without errors and signature.
inline Result<Record> simulated_record(SimulatedNode& node, double seconds = 40) {
  RunOptions options;
  options.times = {.load_seconds = seconds, .idle_seconds = seconds / 2, .settle_seconds = 5};
  CEEMS_TRY(windows,
            run_loads(node, plan_loads(SimulatedNode::cores()), SimulatedNode::kCpus, options));
  Record record;
  record.date = "2026-01-31";
  record.tool_version = "1.2.3";
  record.exporter_version = "1.2.3";
  record.node = {.cpu = "Simulated CPU",
                 .cpu_family = "Unknown CPU",
                 .sockets = 1,
                 .cores = SimulatedNode::kCpus / 2,
                 .cpus = SimulatedNode::kCpus,
                 .memory_gib = 256,
                 .virtual_machine = false,
                 .gpus = {},
                 .kernel = "6.1.0"};
  record.meter = "csv";
  record.meter_model = "a \"stand-in\" <meter>";
  record.independent = true;
  record.sources = {{.domain = "node", .kind = "ipmi_dcmi", .method = "measured"}};
  record.settle_seconds = options.times.settle_seconds;
  record.windows = std::move(windows);
  return record;
}

}  // namespace ceems::tool::validate
