// How right the energy of jobs is, on simulated nodes whose truth is known.
//
//   energy [NODES [HOURS [SEED]]]
//
// Prints a table of the errors of our accounting and of the reference's rules by class of job and
// kind of meters, and one of the idle power that was learned.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "energy/node.h"
#include "energy/rules.h"

namespace {

using namespace ceems::bench::energy;  // NOLINT(google-build-using-namespace)

constexpr double kStep = 0.05;
constexpr double kWarmUp = 1800;
constexpr double kLeast = 1e-9;

constexpr std::array kMeterSets = {
    MeterSet{.name = "packages, DRAM, wall 1 s", .wall_period = 1, .wall_delay = 0},
    MeterSet{.name = "packages, DRAM, BMC 60 s", .wall_period = 60, .wall_delay = 5},
    MeterSet{.name = "BMC only, 10 s",
             .packages = false,
             .dram = false,
             .wall_period = 10,
             .wall_delay = 2},
    MeterSet{.name = "packages only", .dram = false},
};

/// Errors of one rule over all jobs of one class.
struct Errors {
  double charged = 0;
  double truth = 0;
  double relative = 0;  ///< sum of |charged - truth| / truth
  double absolute = 0;  ///< sum of |charged - truth|
  double jobs = 0;

  void add(double charge, double due) {
    charged += charge;
    truth += due;
    absolute += std::abs(charge - due);
    relative += std::abs(charge - due) / due;
    jobs += 1;
  }
  /// In percent.
  [[nodiscard]] double bias() const { return truth > 0 ? 100 * (charged / truth - 1) : 0; }
  [[nodiscard]] double mean_error() const { return truth > 0 ? 100 * absolute / truth : 0; }
  [[nodiscard]] double mape() const { return jobs > 0 ? 100 * relative / jobs : 0; }
};

struct Result {
  std::array<Errors, kClassCount> ours, reference;
  Errors ours_long, reference_long;
  std::vector<double> idle_error;  ///< of each node, in percent
};

double charge_of(const Charges& charges, std::size_t job) {
  const auto found = charges.find(job);
  return found == charges.end() ? 0 : found->second;
}

struct Run {
  explicit Run(const Node& node, const MeterSet& set)
      : meters(set), wall(node, set), ours(node, set), reference(node, set) {}
  MeterSet meters;
  WallMeter wall;
  OurRule ours;
  ReferenceRule reference;
};

void simulate(std::uint64_t seed, double seconds, std::array<Result, kMeterSets.size()>& results) {
  std::mt19937_64 random(seed);
  const Hardware hardware = random_hardware(random);
  const double occupied = std::uniform_real_distribution(0.3, 1.0)(random);
  // Half of the nodes have been at work for a while when the exporter starts.
  const double begin = std::bernoulli_distribution(0.5)(random) ? kWarmUp : 0;
  Node node(hardware, random_jobs(hardware, begin + seconds, occupied, random));
  while (node.time() < begin) {
    node.advance(kStep);
  }
  const double wall_before = node.wall_joules();
  std::vector<double> truth_before;
  for (const Job& job : node.jobs()) {
    truth_before.push_back(job.truth_joules);
  }
  std::vector<Run> runs;
  for (const MeterSet& set : kMeterSets) {
    runs.emplace_back(node, set);
  }
  while (node.time() < begin + seconds) {
    node.advance(kStep);
    for (Run& run : runs) {
      run.wall.advance(node);
      run.ours.advance(node, run.wall);
      run.reference.advance(node, run.wall);
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[i];
    Result& result = results.at(i);
    run.ours.collect();
    // Where meters see only a part of the node, jobs are due their shares of that part.
    const double seen = run.ours.joules() / (node.wall_joules() - wall_before);
    for (const Job& job : node.jobs()) {
      const double due = (job.truth_joules - truth_before[job.number]) * seen;
      if (due < kLeast) {
        continue;
      }
      const auto what = static_cast<std::size_t>(job.what);
      const double ours = charge_of(run.ours.charges(), job.number);
      const double reference = charge_of(run.reference.charges(), job.number);
      result.ours.at(what).add(ours, due);
      result.reference.at(what).add(reference, due);
      if (is_long(job.what)) {
        result.ours_long.add(ours, due);
        result.reference_long.add(reference, due);
      }
    }
    double idle = node.idle_wall();
    if (run.meters.wall_period <= 0) {
      idle = static_cast<double>(hardware.sockets) *
             (hardware.package_idle + (run.meters.dram ? hardware.dram_idle : 0));
    }
    result.idle_error.push_back(100 * (run.ours.idle_watts() / idle - 1));
  }
}

void print(const std::array<Result, kMeterSets.size()>& results) {
  fmt::print("| ours / reference |");
  for (const MeterSet& set : kMeterSets) {
    fmt::print(" {} |", set.name);
  }
  fmt::print("\n|---|---|---|---|---|\n");
  for (std::size_t what = 0; what < kClassCount; ++what) {
    fmt::print("| {} |", to_string(static_cast<JobClass>(what)));
    for (const Result& result : results) {
      const Errors& ours = result.ours.at(what);
      const Errors& reference = result.reference.at(what);
      fmt::print(" {:+.0f} ({:.0f}) / {:+.0f} ({:.0f}) |", ours.bias(), ours.mean_error(),
                 reference.bias(), reference.mean_error());
    }
    fmt::print("\n");
  }
  fmt::print("| **long jobs, MAPE** |");
  for (const Result& result : results) {
    fmt::print(" **{:.1f}** / {:.1f} |", result.ours_long.mape(), result.reference_long.mape());
  }
  fmt::print("\n| idle power: mean error (largest) |");
  for (const Result& result : results) {
    double sum = 0;
    double most = 0;
    for (const double error : result.idle_error) {
      sum += std::abs(error);
      most = std::abs(error) > std::abs(most) ? error : most;
    }
    fmt::print(" {:.1f} ({:+.1f}) |", sum / static_cast<double>(result.idle_error.size()), most);
  }
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, double otherwise) {
    return argc > at ? std::strtod(argv[at], nullptr) : otherwise;
  };
  const auto nodes = static_cast<std::uint64_t>(number(1, 20));
  const double seconds = number(2, 2) * 3600;
  const auto seed = static_cast<std::uint64_t>(number(3, 1));
  if (nodes == 0 || seconds <= 0) {
    fmt::print(stderr, "usage: energy [NODES [HOURS [SEED]]]\n");
    return 2;
  }
  std::array<Result, kMeterSets.size()> results;
  for (std::uint64_t node = 0; node < nodes; ++node) {
    simulate(seed + node, seconds, results);
  }
  fmt::print(
      "{} nodes, {:.1f} hours each, seed {}. Bias and, in brackets, mean error, in percent.\n\n",
      nodes, seconds / 3600, seed);
  print(results);
  return 0;
}
