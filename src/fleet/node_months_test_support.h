#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/time/durations.h"
#include "fleet/node_health.h"

namespace ceems::fleet {

/// What a simulated class of nodes does for some weeks, and what is wrong with some of them.
struct SimulatedClass {
  std::uint64_t seed = 1;
  std::size_t nodes = 200;
  int days = 60;                ///< of which the first half only fills the history
  double jobs_of_node_day = 4;  ///< jobs that a node has a day, half of them of several nodes
  double single = 0.9;          ///< the share of jobs that are of one node
  double spread = 0.01;         ///< of the power of healthy nodes, for ever (deviation)
  double noise = 0.02;          ///< of a node's power from job to job (deviation)
  double imbalanced = 0.05;     ///< share of jobs in which a node has more or less work: ±20 %
  double failing = 0.03;        ///< share of jobs that fail wherever they run
  std::size_t hot = 0;          ///< nodes that draw `hotter` times more from the middle on
  double hotter = 1.06;
  std::size_t breaking = 0;  ///< nodes that make jobs fail from the middle on, after the hot ones
  double breaks = 0.2;       ///< the share of jobs that they make fail
};

struct SimulatedResult {
  std::size_t false_nodes = 0;  ///< healthy nodes that were found in the second half
  std::size_t false_drifts = 0, false_failures = 0;
  std::size_t healthy_nodes = 0;
  std::size_t steps = 0;
  /// Of each hot and each breaking node: jobs from the fault until it was found, 0 if it was not.
  /// Of hot ones, jobs of several nodes.
  std::vector<std::size_t> hot = {}, breaking = {};
};

/// Simulates the class and judges it at the end of each day. The same seed gives the same result.
inline SimulatedResult simulate(const SimulatedClass& of) {
  constexpr std::size_t kUsers = 40;
  std::mt19937_64 random(of.seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto below = [&](std::size_t n) {
    return std::min(n - 1, static_cast<std::size_t>(uniform(random) * static_cast<double>(n)));
  };

  std::vector<double> factor(of.nodes);
  std::vector<NodeHistory> all(of.nodes);
  for (std::size_t i = 0; i < of.nodes; ++i) {
    factor[i] = 1 + of.spread * normal(random);
    all[i] = {.node = fmt::format("n{:04}", i), .node_class = "class"};
  }
  // A few users have many jobs, and the programs of some fail more often.
  std::array<double, kUsers> fails{};
  for (double& share : fails) {
    share = of.failing * -std::log(1 - uniform(random));
  }

  SimulatedResult result;
  result.hot.assign(of.hot, 0);
  result.breaking.assign(of.breaking, 0);
  std::vector<std::size_t> since(of.nodes);
  std::set<std::size_t> found, found_drift, found_failures;
  for (int day = 0; day < of.days; ++day) {
    const bool second = day >= of.days / 2;
    constexpr std::array<std::size_t, 5> kSizes{4, 5, 8, 12, 16};
    double left = of.jobs_of_node_day * static_cast<double>(of.nodes);
    while (left > 0) {
      const std::size_t size =
          uniform(random) < of.single ? 1 : std::min(kSizes[below(kSizes.size())], of.nodes);
      left -= static_cast<double>(size);
      const auto user_number = static_cast<std::size_t>(uniform(random) * uniform(random) * kUsers);
      const std::string user = fmt::format("u{}", user_number);
      const std::int64_t ended_ms =
          day * kDayMs + static_cast<std::int64_t>(uniform(random) * static_cast<double>(kDayMs));
      std::set<std::size_t> on;
      while (on.size() < size) {
        on.insert(below(of.nodes));
      }
      const std::vector<std::size_t> places(on.begin(), on.end());
      const double base = 300 + 400 * uniform(random);
      const std::size_t busier = uniform(random) < of.imbalanced ? below(size) : size;
      const double more = uniform(random) < 0.5 ? 1.2 : 0.8;
      bool broken = false;
      std::vector<NodePower> power;
      for (std::size_t k = 0; k < size; ++k) {
        const std::size_t i = places[k];
        const bool hot = second && i < of.hot;
        const bool breaking = second && i >= of.hot && i < of.hot + of.breaking;
        broken = broken || (breaking && uniform(random) < of.breaks);
        power.push_back({.node = all[i].node,
                         .node_class = "class",
                         .watts = base * factor[i] * (hot ? of.hotter : 1) *
                                  (1 + of.noise * normal(random)) * (k == busier ? more : 1)});
        since[i] += second && (size > 1 || i >= of.hot) ? 1 : 0;
      }
      const bool failed = broken || uniform(random) < fails[user_number];
      // The families of most jobs have succeeded elsewhere before.
      const bool unexplained = failed && uniform(random) < 0.8;
      const auto effects = power_effects(power);
      for (std::size_t k = 0; k < size; ++k) {
        NodeHistory& node = all[places[k]];
        if (!effects.empty() && !failed) {
          node.effects.push_back({.ended_ms = ended_ms, .user = user, .effect = effects[k].effect});
        }
        if (node.jobs.size() == 2 * kFailureJobs) {  // older ones do not count
          node.jobs.erase(node.jobs.begin(), node.jobs.begin() + kFailureJobs);
        }
        node.jobs.push_back({.ended_ms = ended_ms, .user = user, .unexplained = unexplained});
      }
    }
    if (!second) {
      continue;
    }
    const FleetHealth health = judge_nodes(all);
    result.steps += health.steps.size();
    for (const SickNode& node : health.nodes) {
      const auto i = static_cast<std::size_t>(std::stoul(node.node.substr(1)));
      if (i < of.hot) {
        if (node.drift && result.hot[i] == 0) {
          result.hot[i] = since[i];
        }
      } else if (i < of.hot + of.breaking) {
        if (node.failures && result.breaking[i - of.hot] == 0) {
          result.breaking[i - of.hot] = since[i];
        }
      } else {
        found.insert(i);
        if (node.drift) {
          found_drift.insert(i);
        }
        if (node.failures) {
          found_failures.insert(i);
        }
      }
    }
  }
  result.healthy_nodes = of.nodes - of.hot - of.breaking;
  result.false_nodes = found.size();
  result.false_drifts = found_drift.size();
  result.false_failures = found_failures.size();
  return result;
}

}  // namespace ceems::fleet
