#include "energy/agreement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "energy/node.h"
#include "energy/rules.h"
#include "energy/scenario.h"
#include "energy/wall_meter.h"

namespace ceems::bench::energy {
namespace {

using exporter::energy::Domain;

constexpr double kStep = 0.05;
constexpr double kLearn = 600;    // seconds after which they have to agree
constexpr double kCompare = 600;  // for which they are compared
constexpr std::size_t kAccounts = 3;

struct Case {
  std::string_view name;
  MeterSet meters;
  std::array<double, kAccounts> starts{};  ///< seconds after the first
  bool steady = false;                     ///< 200 units that never change
  /// 50 units that use a core together, beside one that works by turns: what each is charged of
  /// this domain.
  std::optional<Domain> small = {};
};

constexpr MeterSet kAll{.name = "", .wall_period = 1};
constexpr MeterSet kPackages{.name = "", .dram = false};
constexpr MeterSet kCounters{.name = ""};
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
      {.name = "50 small units, packages",
       .meters = kCounters,
       .starts = {0, 7.3, 21.65},
       .small = Domain::kPackage},
      {.name = "50 small units, memory",
       .meters = kCounters,
       .starts = {0, 7.3, 21.65},
       .small = Domain::kDram},
      {.name = "50 small units, node",
       .meters = kCounters,
       .starts = {0, 7.3, 21.65},
       .small = Domain::kNode},
  };
  return kList;
}

/// As the machine of bench/two_exporters.py: half of the units rest, of the others the busiest has
/// twenty times the CPU time of the least busy. They have the lowest priority, so all of them have
/// CPU time by turns.
Node small_node(std::uint64_t seed, double seconds) {
  constexpr std::size_t kUnits = 50;
  constexpr std::size_t kBusy = kUnits / 2;
  constexpr double kCores = 0.9;
  std::mt19937_64 random(seed);
  const Hardware hardware{.sockets = 1,
                          .cores = 3,
                          .threads = 1,
                          .package_idle = 40,
                          .dram_idle = 8,
                          .memory_bytes = 16e9};
  std::vector<Job> jobs;
  for (std::size_t i = 0; i <= kUnits; ++i) {
    Job job;
    job.number = i;
    job.what = JobClass::kPhased;
    job.phase_seconds = i < kUnits ? 5.5 : 7;
    const double place = static_cast<double>(i) / (kBusy - 1);
    job.pace = i < kBusy ? kCores * (1 + 19 * place) / (10.5 * kBusy) : i < kUnits ? 0 : 1;
    job.end = seconds;
    job.first_core = i % hardware.cores;
    job.core_watts = std::uniform_real_distribution(50.0, 70.0)(random);
    job.dram_watts = std::uniform_real_distribution(5.0, 20.0)(random);
    job.memory_bytes = 1e8;
    job.memory_limit = 2e8;
    jobs.push_back(job);
  }
  return {hardware, std::move(jobs)};
}

/// What each unit was charged of a domain, or of the whole node.
Charges charges_of(const OurRule& rule, const Case& what) {
  if (!what.small) {
    return rule.charges();
  }
  Charges charges;
  for (const auto& unit : rule.account().units()) {
    charges[std::stoull(unit->uuid)] = unit->joules(*what.small);
  }
  return charges;
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
  Prepared prepared = what.steady  ? Prepared{.node = steady_node(seed, seconds + 60), .begin = 30}
                      : what.small ? Prepared{.node = small_node(seed, seconds + 60), .begin = 30}
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
      if (what.small) {
        view.sampling = kLoaded;
        view.reservations = false;
      }
      rules.emplace_back(node, what.meters, view);
    }
    for (OurRule& rule : rules) {
      rule.advance(node, wall);
    }
    if (!compared && node.time() >= prepared.begin + what.starts.back() + kLearn) {
      compared = true;
      for (std::size_t i = 0; i < kAccounts; ++i) {
        rules[i].collect();
        before.at(i) = charges_of(rules[i], what);
      }
    }
  }
  double of_all = 0;
  double apart = 0;
  Before after;
  for (std::size_t i = 0; i < kAccounts; ++i) {
    rules[i].collect();
    after.at(i) = charges_of(rules[i], what);
  }
  const double least = what.small ? 1 : 1000;
  for (const Job& job : node.jobs()) {
    std::array<double, kAccounts> joules{};
    for (std::size_t i = 0; i < kAccounts; ++i) {
      const auto now = after.at(i).find(job.number);
      const auto then = before.at(i).find(job.number);
      joules.at(i) = (now == after.at(i).end() ? 0 : now->second) -
                     (then == before.at(i).end() ? 0 : then->second);
    }
    const auto [low, high] = std::ranges::minmax(joules);
    of_all += high;
    apart += high - low;
    if (is_long(job.what) && high > least) {
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
