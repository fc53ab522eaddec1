// How well noisy neighbours and storms on file systems are found, on simulated nodes.
//
//   fleet_neighbours [NODES [SHUFFLED [SEED]]]
//
// Prints, for each coupling, the share of NODES nodes on which the suspect was named, and the rows
// that name another pair. Of SHUFFLED nodes without coupling, the rows in 1,000 hours.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <span>

#include <fmt/format.h>

#include "bench/fleet/shared_nodes.h"

namespace {

using namespace ceems::bench::fleet;  // NOLINT(google-build-using-namespace)

std::size_t number(std::span<char*> arguments, std::size_t place, std::size_t standard) {
  return place < arguments.size() ? std::strtoull(arguments[place], nullptr, 10) : standard;
}

double share(std::size_t part, std::size_t all) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::size_t>(1, all));
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  const std::size_t nodes = number(arguments, 1, 1000);
  const std::size_t shuffled = number(arguments, 2, 20'000);
  std::mt19937_64 random(number(arguments, 3, 1));
  fmt::print("| Coupling | Nodes | Recall | Wrong rows |\n|---|---:|---:|---:|\n");
  for (const int percent : {5, 10, 15, 20, 30, 50}) {
    std::size_t found = 0;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      const SharedNode node = simulate_node(percent / 100.0, random);
      for (const auto& row : ceems::fleet::find_neighbours(node.units)) {
        const bool right = row.victim == node.victim && row.suspect == node.suspect;
        (right ? found : wrong) += 1;
      }
    }
    fmt::print("| {} % | {} | {:.3f} | {} |\n", percent, nodes, share(found, nodes), wrong);
  }
  std::size_t rows = 0;
  for (std::size_t i = 0; i < shuffled; ++i) {
    rows += ceems::fleet::find_neighbours(simulate_node(0, random).units).size();
  }
  // Each node is two hours.
  fmt::print(
      "\n| Shuffled node-hours | Rows | In 1,000 hours |\n|---:|---:|---:|\n| {} | {} | {:.2f} |\n",
      2 * shuffled, rows, 1000 * share(rows, 2 * shuffled));
  std::size_t first = 0;
  std::size_t any = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Storm storm = simulate_storm(true, random);
    const auto storms = ceems::fleet::find_io_storms(storm.systems, storm.waits);
    first += !storms.empty() && storms.front().uuid == storm.at_fault ? 1 : 0;
    const Storm calm = simulate_storm(false, random);
    any += ceems::fleet::find_io_storms(calm.systems, calm.waits).empty() ? 0 : 1;
  }
  fmt::print(
      "\n| Metadata storms | Culprit named first | Calm hours | With a storm |\n"
      "|---:|---:|---:|---:|\n| {} | {:.3f} | {} | {} |\n",
      nodes, share(first, nodes), 2 * nodes, any);
  return 0;
}
