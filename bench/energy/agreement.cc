#include "energy/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "energy/node.h"
#include "energy/rules.h"
#include "energy/scenario.h"
#include "energy/wall_meter.h"

namespace ceems::bench::energy {
namespace {

constexpr double kStep = 0.05;
constexpr double kLearn = 600;    // seconds after which they have to agree
constexpr double kCompare = 600;  // for which they are compared
constexpr std::size_t kAccounts = 3;

struct Case {
  std::string_view name;
  MeterSet meters;
  std::array<double, kAccounts> starts{};  ///< seconds after the first
  bool steady = false;                     ///< 200 units that never change
};

constexpr MeterSet kAll{.name = "", .wall_period = 1};
constexpr MeterSet kPackages{.name = "", .dram = false};
constexpr MeterSet kBmcOnly{
    .name = "", .packages = false, .dram = false, .wall_period = 10, .wall_delay = 2};

const std::vector<Case>& cases() {
  static const std::vector<Case> kList = {
      {.name = "mixed jobs, packages, DRAM, wall 1 s", .meters = kAll, .starts = {0, 0.35, 0.65}},
      {.name = "mixed jobs, packages only", .meters = kPackages, .starts = {0, 0.35, 0.65}},
      {.name = "mixed jobs, BMC only, 10 s", .meters = kBmcOnly, .starts = {0, 0.35, 0.65}},
      {.name = "mixed jobs, started minutes apart, packages, DRAM, wall 1 s",
       .meters = kAll,
       .starts = {0, 100.35, 300.65}},
      {.name = "200 units that never change, packages only",
       .meters = kPackages,
       .starts = {0, 0.35, 0.65},
       .steady = true},
      {.name = "200 units that never change, started minutes apart, packages only",
       .meters = kPackages,
       .starts = {0, 100.35, 300.65},
       .steady = true},
  };
  return kList;
}

/// 200 single threads, of which some rest by turns.
Node steady_node(std::uint64_t seed, double seconds) {
  constexpr std::size_t kUnits = 200;
  std::mt19937_64 random(seed);
  Hardware hardware = random_hardware(random);
  hardware.sockets = 2;
  hardware.cores = 128;
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < kUnits; ++i) {
    Job job;
    job.number = i;
    job.what = i % 4 == 0 ? JobClass::kPhased : i % 4 == 1 ? JobClass::kIdle : JobClass::kScalar;
    job.phase_seconds = 5 + static_cast<double>(i % 7);
    job.begin = 0;
    job.end = seconds;
    job.socket = i % 2;
    job.first_core = i / 2;
    job.core_watts = std::uniform_real_distribution(1.4, 3.0)(random);
    job.memory_limit = 4e9;
    job.memory_bytes = 1e9;
    jobs.push_back(job);
  }
  return {hardware, std::move(jobs)};
}

/// What an account has charged until now.
using Before = std::array<Charges, kAccounts>;

void run(const Case& what, std::uint64_t seed, double& worst, double& sum, double& idle) {
  const double seconds = what.starts.back() + kLearn + kCompare;
  Scenario scenario{.name = "", .meters = {what.meters}, .warm_up = what.steady ? 0 : 1800};
  Prepared prepared = what.steady ? Prepared{.node = steady_node(seed, seconds + 60), .begin = 30}
                                  : prepare(scenario, seed, seconds);
  Node& node = prepared.node;
  while (node.time() < prepared.begin) {
    node.advance(kStep);
  }
  WallMeter wall(node, what.meters);
  std::vector<OurRule> rules;
  rules.reserve(kAccounts);
  Before before;
  bool compared = false;
  while (node.time() < prepared.begin + seconds) {
    node.advance(kStep);
    wall.advance(node);
    if (rules.size() < kAccounts && node.time() >= prepared.begin + what.starts.at(rules.size())) {
      View view;
      view.seed = rules.size() + 1;
      rules.emplace_back(node, what.meters, view);
    }
    for (OurRule& rule : rules) {
      rule.advance(node, wall);
    }
    if (!compared && node.time() >= prepared.begin + what.starts.back() + kLearn) {
      compared = true;
      for (std::size_t i = 0; i < kAccounts; ++i) {
        rules[i].collect();
        before.at(i) = rules[i].charges();
      }
    }
  }
  double of_all = 0;
  double apart = 0;
  for (OurRule& rule : rules) {
    rule.collect();
  }
  for (const Job& job : node.jobs()) {
    std::array<double, kAccounts> joules{};
    for (std::size_t i = 0; i < kAccounts; ++i) {
      const auto now = rules[i].charges().find(job.number);
      const auto then = before.at(i).find(job.number);
      joules.at(i) = (now == rules[i].charges().end() ? 0 : now->second) -
                     (then == before.at(i).end() ? 0 : then->second);
    }
    const auto [low, high] = std::ranges::minmax(joules);
    of_all += high;
    apart += high - low;
    if (is_long(job.what) && high > 1000) {
      worst = std::max(worst, 100 * (high / low - 1));
    }
  }
  sum += of_all > 0 ? 100 * apart / of_all : 0;
  std::array<double, kAccounts> watts{};
  for (std::size_t i = 0; i < kAccounts; ++i) {
    watts.at(i) = rules[i].idle_watts();
  }
  const auto [low, high] = std::ranges::minmax(watts);
  idle = std::max(idle, 100 * (high / low - 1));
}

}  // namespace

void simulate_agreement(std::uint64_t nodes, std::uint64_t seed, std::string_view wanted) {
  if (!std::string_view("agreement of three accounts").contains(wanted)) {
    return;
  }
  fmt::print(
      "\n**Three accounts of the same node**, from the tenth minute on: how far apart, in "
      "percent\n\n"
      "| case | all jobs, on average | the worst of the long jobs | idle power, at most |\n"
      "|---|---|---|---|\n");
  for (const Case& what : cases()) {
    double worst = 0;
    double sum = 0;
    double idle = 0;
    for (std::uint64_t node = 0; node < nodes; ++node) {
      run(what, seed + node, worst, sum, idle);
    }
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", what.name, sum / static_cast<double>(nodes),
               worst, idle);
  }
}

}  // namespace ceems::bench::energy
