// How right the energy of jobs is, on simulated nodes whose truth is known.
//
//   energy [NODES [HOURS [SEED [SCENARIO]]]]
//
// For each scenario, or those whose name contains SCENARIO, prints a table of the errors of our
// accounting and of the rules of others by class of job and kind of meters, with the goals, and at
// the end a summary.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "energy/agreement.h"
#include "energy/gpu_nodes.h"
#include "energy/gpus.h"
#include "energy/node.h"
#include "energy/report.h"
#include "energy/rules.h"
#include "energy/scenario.h"

namespace {

using namespace ceems::bench::energy;  // NOLINT(google-build-using-namespace)

constexpr double kStep = 0.05;
constexpr double kLeast = 1e-9;
constexpr double kIdleAfter = 1800;
constexpr double kVaried = 0.2;  // between the lowest and highest use of a minute
constexpr double kMinute = 60;
constexpr double kSeen = 2;      // seconds after which a socket at rest has shown its power
constexpr double kAtRest = 0.9;  // busy cores with which it is

double charge_of(const Charges& charges, std::size_t job) {
  const auto found = charges.find(job);
  return found == charges.end() ? 0 : found->second;
}

/// Whether the use of the node's CPUs has varied.
class Variation {
 public:
  void advance(const Node& node) {
    if (node.time() < next_) {
      return;
    }
    if (next_ > 0) {
      const Hardware& hardware = node.hardware();
      const auto cpus = static_cast<double>(hardware.sockets * hardware.cores * hardware.threads);
      const double use = (node.busy_seconds() - busy_seconds_) / kMinute / cpus;
      lowest_ = std::min(lowest_, use);
      highest_ = std::max(highest_, use);
    }
    next_ = node.time() + kMinute;
    busy_seconds_ = node.busy_seconds();
  }
  [[nodiscard]] bool varied() const { return highest_ - lowest_ >= kVaried; }

 private:
  double next_ = 0;
  double busy_seconds_ = 0;
  double lowest_ = 1;
  double highest_ = 0;
};

/// What the meters cannot show: while a socket has one busy core or more, all readings are the same
/// if it draws a watt more when idle and the first core wakes a watt less. An assumed average over
/// all nodes is off by the rest.
class Unseen {
 public:
  explicit Unseen(const Node& node) : seconds_(node.hardware().sockets) {}
  void advance(const Node& node) {
    for (std::size_t socket = 0; socket < seconds_.size(); ++socket) {
      seconds_[socket] += node.power().busy_cores[socket] < kAtRest ? kStep : 0;
    }
  }
  /// Watts of the packages by which their idle power is taken too high.
  [[nodiscard]] double watts(const Node& node) const {
    const auto busy = std::ranges::count_if(seconds_, [](double rest) { return rest < kSeen; });
    return static_cast<double>(busy) *
           (node.hardware().package_awake - (kLeastAwake + kMaxAwake) / 2);
  }

 private:
  std::vector<double> seconds_;  // at rest, by socket
};

struct Run {
  Run(const Node& node, const MeterSet& set, const View& view)
      : meters(set),
        wall(node, set),
        ours(node, set, view),
        reference(node, set),
        kepler(node, set) {}
  /// Idle power of what the meters see.
  [[nodiscard]] double idle_watts(const Node& node) const {
    const Hardware& hardware = node.hardware();
    return meters.wall_period > 0
               ? node.idle_wall()
               : static_cast<double>(hardware.sockets) *
                     (hardware.package_idle + (meters.dram ? hardware.dram_idle : 0));
  }
  /// In percent.
  [[nodiscard]] double idle_error(const Node& node) const {
    return 100 * (ours.idle_watts() / idle_watts(node) - 1);
  }
  [[nodiscard]] double unseen_error(const Node& node, const Unseen& unseen) const {
    const Hardware& hardware = node.hardware();
    const double at_wall = meters.wall_period > 0 ? (1 + hardware.fans) / hardware.supply : 1;
    return 100 * unseen.watts(node) * at_wall / idle_watts(node);
  }
  MeterSet meters;
  WallMeter wall;
  OurRule ours;
  ReferenceRule reference;
  KeplerRule kepler;
};

void simulate(const Scenario& scenario,
              std::uint64_t seed,
              double seconds,
              std::vector<Result>& results) {
  Prepared prepared = prepare(scenario, seed, seconds);
  Node& node = prepared.node;
  const double begin = prepared.begin;
  while (node.time() < begin) {
    node.advance(kStep);
  }
  const double wall_before = node.wall_joules();
  std::vector<double> truth_before;
  for (const Job& job : node.jobs()) {
    truth_before.push_back(job.truth_joules);
  }
  std::vector<Run> runs;
  runs.reserve(scenario.meters.size());
  for (const MeterSet& set : scenario.meters) {
    runs.emplace_back(node, set, scenario.view);
  }
  Variation variation;
  Unseen unseen(node);
  bool first = true;
  while (node.time() < begin + seconds) {
    node.advance(kStep);
    variation.advance(node);
    unseen.advance(node);
    for (Run& run : runs) {
      run.wall.advance(node);
      run.ours.advance(node, run.wall);
      run.reference.advance(node, run.wall);
      run.kepler.advance(node, run.wall);
    }
    if (first && variation.varied() && node.time() >= begin + kIdleAfter) {
      first = false;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        results[i].idle_first.push_back(runs[i].idle_error(node));
      }
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[i];
    Result& result = results[i];
    run.ours.collect();
    // Where meters see only a part of the node, jobs are due their shares of that part.
    const double seen = run.ours.joules() / (node.wall_joules() - wall_before);
    for (const Job& job : node.jobs()) {
      const double due = (job.truth_joules - truth_before[job.number]) * seen;
      if (due < kLeast) {
        continue;
      }
      result.add(Rule::kOurs, job.what, charge_of(run.ours.charges(), job.number), due);
      result.add(Rule::kReference, job.what, charge_of(run.reference.charges(), job.number), due);
      result.add(Rule::kKepler, job.what, charge_of(run.kepler.charges(), job.number), due);
    }
    if (variation.varied()) {
      result.idle_last.push_back(run.idle_error(node));
      result.idle_unseen.push_back(run.unseen_error(node, unseen));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, double otherwise) {
    return argc > at ? std::strtod(argv[at], nullptr) : otherwise;
  };
  const auto nodes = static_cast<std::uint64_t>(number(1, 20));
  const double seconds = number(2, 2) * 3600;
  const auto seed = static_cast<std::uint64_t>(number(3, 1));
  const std::string_view wanted = argc > 4 ? argv[4] : "";
  if (nodes == 0 || seconds <= 0) {
    fmt::print(stderr, "usage: energy [NODES [HOURS [SEED [SCENARIO]]]]\n");
    return 2;
  }
  fmt::print(
      "{} nodes, {:.1f} hours each, seed {}. Bias and, in brackets, mean error, in percent.\n",
      nodes, seconds / 3600, seed);
  struct Done {
    const Scenario* scenario = nullptr;
    std::vector<Result> results;
  };
  std::vector<Done> all;
  for (const Scenario& scenario : scenarios()) {
    if (!scenario.name.contains(wanted)) {
      continue;
    }
    std::vector<Result> results(scenario.meters.size());
    for (std::uint64_t node = 0; node < nodes; ++node) {
      simulate(scenario, seed + node, seconds, results);
    }
    print(scenario.name, scenario.meters, results);
    static_cast<void>(std::fflush(stdout));
    all.push_back({.scenario = &scenario, .results = std::move(results)});
  }
  simulate_agreement(nodes, seed, wanted);
  simulate_gpu_nodes(nodes, seconds, seed, wanted);
  if (std::string_view("GPUs").contains(wanted)) {
    simulate_gpus(nodes, seconds, seed);
  }
  if (!all.empty()) {
    print_summary_head();
    for (const Done& done : all) {
      print_summary(done.scenario->name, done.scenario->meters, done.results);
    }
  }
  return 0;
}
