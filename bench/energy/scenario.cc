#include "energy/scenario.h"

namespace ceems::bench::energy {
namespace {

constexpr double kWarmUp = 1800;

constexpr MeterSet kAll{.name = "packages, DRAM, wall 1 s", .wall_period = 1};
constexpr MeterSet kBmc{.name = "packages, DRAM, BMC 60 s", .wall_period = 60, .wall_delay = 5};
constexpr MeterSet kBmcOnly{
    .name = "BMC only, 10 s", .packages = false, .dram = false, .wall_period = 10, .wall_delay = 2};
constexpr MeterSet kPackages{.name = "packages only", .dram = false};

constexpr MeterSet bmc(std::string_view name, double period, double delay, double window = 0) {
  return {.name = name, .wall_period = period, .wall_window = window, .wall_delay = delay};
}

constexpr MeterSet bmc_only(std::string_view name, double period, double delay, double window = 0) {
  return {.name = name,
          .packages = false,
          .dram = false,
          .wall_period = period,
          .wall_window = window,
          .wall_delay = delay};
}

constexpr MeterSet stuck(std::string_view name) {
  return {.name = name, .wall_period = 10, .stuck_from = 2400, .stuck_until = 3600};
}

std::vector<Scenario> make_scenarios() {
  const std::vector<MeterSet> standard = {kAll, kBmc, kBmcOnly, kPackages};
  const std::vector<MeterSet> both = {kAll, kBmc};
  return {
      {.name = "random nodes", .meters = standard},
      {.name = "everything is read at once", .meters = standard, .view = {.sampling = kExact}},
      {.name = "overloaded node, samples late and uneven",
       .meters = standard,
       .view = {.sampling = kLoaded}},
      {.name = "births and deaths are reported", .meters = standard, .view = {.events = true}},
      {.name = "BMC that averages: period + delay",
       .meters = {bmc("10 + 0 s", 10, 0), bmc("10 + 20 s", 10, 20), bmc("30 + 5 s", 30, 5),
                  bmc("30 + 20 s", 30, 20), bmc("60 + 0 s", 60, 0), bmc("60 + 20 s", 60, 20)}},
      {.name = "BMC that shows one moment, slides or is stuck",
       .meters = {bmc("moment, 10 + 0 s", 10, 0, 1), bmc("moment, 30 + 5 s", 30, 5, 1),
                  bmc("moment, 60 + 20 s", 60, 20, 1), bmc("slides over 60 s, + 5 s", 1, 5, 60),
                  stuck("10 s, stuck for 20 min")}},
      {.name = "BMC and nothing else",
       .meters = {bmc_only("30 + 5 s", 30, 5), bmc_only("60 + 20 s", 60, 20),
                  bmc_only("moment, 30 + 5 s", 30, 5, 1),
                  bmc_only("slides over 60 s, + 5 s", 1, 5, 60)}},
      {.name = "cold start on a full node that is never idle",
       .meters = standard,
       .occupied_least = 0.9,
       .pause = 2,
       .warm_up = kWarmUp},
      {.name = "one job of 12 cores, alone for hours",
       .meters = standard,
       .lone_job = 12,
       .warm_up = 0},
      {.name = "restart of the exporter, nothing stored",
       .meters = standard,
       .view = {.restart_after = 3600}},
      {.name = "restart of the exporter with what it had learned",
       .meters = standard,
       .view = {.restart_after = 3600, .stored = true}},
      {.name = "suspend: the counters of the packages jump by 20 kJ",
       .meters = {kAll, kBmc, kPackages},
       .view = {.jump_after = 3600, .jump_joules = 20'000}},
      {.name = "units without a reservation of their own",
       .meters = both,
       .view = {.reservations = false}},
      {.name = "1 socket", .meters = both, .sockets = 1},
      {.name = "4 sockets", .meters = both, .sockets = 4},
      {.name = "no second hardware thread", .meters = both, .threads = 1},
      {.name = "packages without DRAM",
       .meters =
           {{.name = "packages, wall 1 s", .dram = false, .wall_period = 1},
            {.name = "packages, BMC 60 s", .dram = false, .wall_period = 60, .wall_delay = 5}}},
      {.name = "many short jobs",
       .meters = both,
       .weights = {1, 1, 1, 0, 0, 1, 10, 20, 20},
       .pause = 1},
      {.name = "small jobs that come and go",
       .meters = standard,
       .weights = {4, 4, 4, 2, 1, 2, 0, 0, 0},
       .occupied_least = 0.95,
       .pause = 8,
       .small = true,
       .warm_up = 0},
      {.name = "few large jobs",
       .meters = both,
       .weights = {4, 4, 4, 4, 1, 0, 0, 0, 0},
       .pause = 60},
  };
}

/// One job for all the time.
std::vector<Job> lone_job(const Hardware& hardware, double seconds, std::size_t cores) {
  Job job;
  job.what = JobClass::kScalar;
  job.begin = 300;
  job.end = seconds;
  job.cores = std::min(cores, hardware.cores);
  job.core_watts = 2;
  const double share =
      static_cast<double>(job.cores) / static_cast<double>(hardware.sockets * hardware.cores);
  job.memory_limit = share * hardware.memory_bytes;
  job.memory_bytes = job.memory_limit / 2;
  return {job};
}

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Scenario> list = make_scenarios();
  return list;
}

Prepared prepare(const Scenario& scenario, std::uint64_t seed, double seconds) {
  std::mt19937_64 random(seed);
  Hardware hardware = random_hardware(random);
  hardware.sockets = scenario.sockets.value_or(hardware.sockets);
  hardware.threads = scenario.threads.value_or(hardware.threads);
  hardware.memory_bytes = static_cast<double>(hardware.sockets * hardware.cores) * 4e9;
  const double occupied =
      std::uniform_real_distribution(scenario.occupied_least, scenario.occupied_most)(random);
  // Half of the nodes have been at work for a while when the exporter starts.
  const double begin =
      scenario.warm_up.value_or(std::bernoulli_distribution(0.5)(random) ? kWarmUp : 0);
  auto jobs = scenario.lone_job ? lone_job(hardware, begin + seconds, *scenario.lone_job)
                                : random_jobs(hardware, begin + seconds, occupied, random,
                                              scenario.weights, scenario.pause, scenario.small);
  return {.node = Node(hardware, std::move(jobs)), .begin = begin};
}

}  // namespace ceems::bench::energy
