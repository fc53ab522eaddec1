// Judges simulated nodes: how many healthy ones are found, and after how many jobs sick ones are.
//
//   node_health [CLASSES]
//
// CLASSES, 50 by default, is the number of classes of 200 nodes in each row of the table, each with
// another seed: 10,000 node-months of healthy nodes. What is simulated is described in
// src/fleet/node_months_test_support.h; the seeds of the unit tests are others.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fleet/node_months_test_support.h"

namespace {

using ceems::fleet::SimulatedClass;

struct Row {
  const char* name;
  SimulatedClass of;
};

/// Of the sick nodes: those found within 40 jobs, and the median and the largest number of jobs.
std::string found_of(const std::vector<std::size_t>& jobs) {
  constexpr std::size_t kGoal = 40;
  if (jobs.empty()) {
    return "– | – | –";
  }
  std::vector<std::size_t> found;
  for (const std::size_t one : jobs) {
    if (one > 0) {
      found.push_back(one);
    }
  }
  std::ranges::sort(found);
  const auto soon = std::ranges::count_if(found, [](std::size_t one) { return one <= kGoal; });
  return fmt::format("{:.3f} | {:.3f} | {}",
                     static_cast<double>(soon) / static_cast<double>(jobs.size()),
                     static_cast<double>(found.size()) / static_cast<double>(jobs.size()),
                     found.empty() ? "–" : std::to_string(found[found.size() / 2]));
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t classes =
      argc > 1 ? static_cast<std::size_t>(std::strtoul(argv[1], nullptr, 10)) : 50;
  const std::vector<Row> rows{
      {"healthy", {}},
      {"healthy, differ by 2 %", {.spread = 0.02}},
      {"healthy, noise of 4 %", {.noise = 0.04}},
      {"healthy, 10 % of jobs fail", {.failing = 0.1}},
      {"+6 %", {.hot = 4}},
      {"+6 %, noise of 4 %", {.noise = 0.04, .hot = 4}},
      {"+6 %, differ by 2 %", {.spread = 0.02, .hot = 4}},
      {"+8 %", {.hot = 4, .hotter = 1.08}},
      {"−10 %", {.hot = 4, .hotter = 0.9}},
      {"a fifth of jobs breaks", {.breaking = 2}},
      {"a tenth of jobs breaks", {.breaking = 2, .breaks = 0.1}},
      {"+6 % and a fifth breaks", {.hot = 4, .breaking = 2}},
  };
  fmt::print(
      "| nodes | healthy node-months | false nodes | in 1,000 | by power | by failures | sick "
      "nodes "
      "| found within 40 jobs | in the month | median of jobs |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::uint64_t seed = 100;
  for (const Row& row : rows) {
    std::size_t healthy = 0, wrong = 0, drifts = 0, failures = 0;
    std::vector<std::size_t> jobs;
    for (std::size_t i = 0; i < classes; ++i) {
      SimulatedClass of = row.of;
      of.seed = ++seed;
      const auto result = ceems::fleet::simulate(of);
      healthy += result.healthy_nodes;
      wrong += result.false_nodes;
      drifts += result.false_drifts;
      failures += result.false_failures;
      jobs.insert(jobs.end(), result.hot.begin(), result.hot.end());
      jobs.insert(jobs.end(), result.breaking.begin(), result.breaking.end());
    }
    fmt::print("| {} | {} | {} | {:.2f} | {} | {} | {} | {} |\n", row.name, healthy, wrong,
               1000 * static_cast<double>(wrong) / static_cast<double>(healthy), drifts, failures,
               jobs.size(), found_of(jobs));
  }
  return 0;
}
