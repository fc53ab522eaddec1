#include "energy/gpu_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "energy/node.h"
#include "energy/report.h"
#include "energy/rules.h"
#include "energy/wall_meter.h"

namespace ceems::bench::energy {
namespace {

constexpr double kStep = 0.05;
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr std::size_t kGpus = 4;
constexpr std::size_t kCoresPerGpu = 4;
constexpr double kWarmUp = 1800;
constexpr double kLostAfter = 3000;

struct GpuScenario {
  std::string_view name;
  double warm_up = kWarmUp;  ///< seconds of work before the exporter is started
  View view = {};
  std::size_t lost = 0;  ///< GPUs that are gone at the end
};

constexpr std::array<MeterSet, 3> kMeters = {
    MeterSet{.name = "packages, DRAM, wall 1 s", .wall_period = 1},
    MeterSet{.name = "packages, DRAM, BMC 60 s", .wall_period = 60, .wall_delay = 5},
    MeterSet{.name = "BMC only, 10 s",
             .packages = false,
             .dram = false,
             .wall_period = 10,
             .wall_delay = 2}};

View gap(double from, double until, std::size_t count = kGpus) {
  return {.gpu_gaps = {{.from = from, .until = until, .first = 0, .count = count}}};
}

std::vector<GpuScenario> gpu_scenarios() {
  View restart = gap(3600, 3660);
  restart.restart_after = 3600;
  restart.stored = true;
  return {
      {.name = "GPU nodes: known from the start"},
      {.name = "GPU nodes: library answers after 60 s, node idle",
       .warm_up = 0,
       .view = gap(0, 60)},
      {.name = "GPU nodes: library answers after 60 s, jobs run", .view = gap(0, 60)},
      {.name = "GPU nodes: library answers after 5 min, jobs run", .view = gap(0, 300)},
      {.name = "GPU nodes: driver is started again, 90 s", .view = gap(3000, 3090)},
      {.name = "GPU nodes: library hangs for 20 min", .view = gap(3000, 4200)},
      {.name = "GPU nodes: one GPU is away for 20 min", .view = gap(3000, 4200, 1)},
      {.name = "GPU nodes: one GPU is lost with its job",
       .view = gap(kLostAfter, kForever, 1),
       .lost = 1},
      {.name = "GPU nodes: restart with what was learned, library late", .view = restart},
      {.name = "GPU nodes: memory has a meter after 10 min", .view = {.dram_from = 600}},
  };
}

double uniform(std::mt19937_64& random, double from, double to) {
  return std::uniform_real_distribution(from, to)(random);
}

/// Jobs with GPUs, on the last cores of the sockets.
std::vector<Job> gpu_jobs(const Hardware& hardware,
                          double first,
                          double seconds,
                          double lost_at,
                          std::mt19937_64& random) {
  std::vector<Job> jobs;
  std::array<double, kGpus> free{};
  free.fill(first);
  const std::size_t half = kGpus / hardware.sockets;
  double time = first + uniform(random, 0, 60);
  while (time < seconds) {
    const std::size_t count = std::array<std::size_t, 3>{1, 1, half}.at(
        std::uniform_int_distribution<std::size_t>(0, 2)(random));
    const std::size_t gpu =
        count * std::uniform_int_distribution<std::size_t>(0, kGpus / count - 1)(random);
    const std::span<double> held(free.begin() + static_cast<std::ptrdiff_t>(gpu), count);
    if (std::ranges::all_of(held, [time](double until) { return until <= time; })) {
      Job job;
      job.what = JobClass::kScalar;
      job.begin = time;
      job.end = std::min(seconds, time + uniform(random, 600, 2400));
      job.socket = gpu / half;
      job.first_core = hardware.cores - (half - gpu % half) * kCoresPerGpu;
      job.cores = count * kCoresPerGpu;
      job.core_watts = uniform(random, 1.4, 2.2);
      job.phase_seconds = uniform(random, 0, 1) < 0.5 ? uniform(random, 60, 300) : 0;
      job.first_gpu = gpu;
      job.gpus = count;
      job.gpu_watts = uniform(random, 150, 600);
      job.memory_limit = static_cast<double>(job.cores) * 4e9;
      job.memory_bytes = job.memory_limit / 2;
      std::ranges::fill(held, job.end + uniform(random, 5, 300));
      job.end = job.first_gpu == 0 ? std::min(job.end, lost_at) : job.end;
      if (job.begin < job.end) {
        jobs.push_back(job);
      }
    }
    time += uniform(random, 5, 60);
  }
  return jobs;
}

Node make_node(std::uint64_t seed, double begin, double seconds, double lost_at) {
  constexpr double kFirstGpuJob = 300;
  std::mt19937_64 random(seed);
  Hardware hardware = random_hardware(random);
  hardware.sockets = 2;
  hardware.cores = std::max<std::size_t>(hardware.cores, 32);
  hardware.package_idle = uniform(random, 0.8, 1.4) * (15 + static_cast<double>(hardware.cores));
  hardware.gpus = kGpus;
  hardware.gpu_idle = uniform(random, 45, 90);
  hardware.board = uniform(random, 70, 140);
  hardware.memory_bytes = static_cast<double>(hardware.sockets * hardware.cores) * 4e9;
  Hardware without = hardware;
  without.cores -= kGpus / hardware.sockets * kCoresPerGpu;
  std::vector<Job> jobs = random_jobs(without, begin + seconds, uniform(random, 0.3, 0.8), random,
                                      {4, 4, 4, 3, 3, 4, 1, 1, 1});
  for (Job& job : jobs) {
    // Memory goes with the cores of the node.
    job.memory_limit = static_cast<double>(job.cores) * 4e9;
    job.begin += begin > 0 ? 0 : kFirstGpuJob / 2;
    job.end += begin > 0 ? 0 : kFirstGpuJob / 2;
  }
  const auto more =
      gpu_jobs(hardware, begin > 0 ? 0 : kFirstGpuJob, begin + seconds, lost_at, random);
  jobs.insert(jobs.end(), more.begin(), more.end());
  std::ranges::stable_sort(jobs, {}, &Job::begin);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].number = i;
  }
  return {hardware, std::move(jobs)};
}

/// What came of one set of meters.
struct Outcome {
  Errors gpu_jobs;
  Errors cpu_jobs;
  std::vector<double> idle_other;  // errors of idle power in watts, by node
};

double charge_of(const Charges& charges, std::size_t job) {
  const auto found = charges.find(job);
  return found == charges.end() ? 0 : found->second;
}

void simulate(const GpuScenario& scenario,
              std::uint64_t seed,
              double seconds,
              std::span<Outcome> outcomes) {
  const double lost_at = scenario.lost > 0 ? scenario.warm_up + kLostAfter : kForever;
  Node node = make_node(seed, scenario.warm_up, seconds, lost_at);
  while (node.time() < scenario.warm_up) {
    node.advance(kStep);
  }
  std::vector<double> truth_before;
  for (const Job& job : node.jobs()) {
    truth_before.push_back(job.truth_joules);
  }
  std::vector<WallMeter> walls;
  std::vector<OurRule> rules;
  rules.reserve(kMeters.size());
  for (const MeterSet& set : kMeters) {
    walls.emplace_back(node, set);
    rules.emplace_back(node, set, scenario.view);
  }
  while (node.time() < scenario.warm_up + seconds) {
    node.advance(kStep);
    for (std::size_t i = 0; i < rules.size(); ++i) {
      walls[i].advance(node);
      rules[i].advance(node, walls[i]);
    }
  }
  const Hardware& hardware = node.hardware();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    rules[i].collect();
    for (const Job& job : node.jobs()) {
      const double due = job.truth_joules - truth_before[job.number];
      if (due > 1 && is_long(job.what)) {
        (job.gpus > 0 ? outcomes[i].gpu_jobs : outcomes[i].cpu_jobs)
            .add(charge_of(rules[i].charges(), job.number), due);
      }
    }
    const auto sockets = static_cast<double>(hardware.sockets);
    const double known = sockets * ((kMeters.at(i).packages ? hardware.package_idle : 0) +
                                    (kMeters.at(i).dram ? hardware.dram_idle : 0)) +
                         static_cast<double>(hardware.gpus - scenario.lost) * hardware.gpu_idle;
    const double other = node.idle_wall() - known;
    outcomes[i].idle_other.push_back(
        rules[i].account().idle_watts(exporter::energy::Domain::kOther).value_or(0) - other);
  }
}

double mean_size(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += std::abs(value);
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

void simulate_gpu_nodes(std::uint64_t nodes,
                        double seconds,
                        std::uint64_t seed,
                        std::string_view wanted) {
  bool first = true;
  for (const GpuScenario& scenario : gpu_scenarios()) {
    if (!scenario.name.contains(wanted)) {
      continue;
    }
    if (std::exchange(first, false)) {
      fmt::print(
          "\n**Nodes with GPUs**: GPU jobs; CPU jobs beside them; idle power of the rest: mean "
          "error in watts\n\n| scenario |");
      for (const MeterSet& set : kMeters) {
        fmt::print(" {} |", set.name);
      }
      fmt::print("\n|---|---|---|---|\n");
    }
    std::array<Outcome, kMeters.size()> outcomes;
    for (std::uint64_t node = 0; node < nodes; ++node) {
      simulate(scenario, seed + node, seconds, outcomes);
    }
    fmt::print("| {} |", scenario.name.substr(scenario.name.find(':') + 2));
    for (const Outcome& outcome : outcomes) {
      fmt::print(" {:+.1f} ({:.1f}); {:+.1f} ({:.1f}); {:.0f} W |", outcome.gpu_jobs.bias(),
                 outcome.gpu_jobs.mean_error(), outcome.cpu_jobs.bias(),
                 outcome.cpu_jobs.mean_error(), mean_size(outcome.idle_other));
    }
    fmt::print("\n");
  }
}

}  // namespace ceems::bench::energy
