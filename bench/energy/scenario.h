// What the accounting is tried on.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "energy/node.h"
#include "energy/rules.h"
#include "energy/wall_meter.h"

namespace ceems::bench::energy {

/// How the nodes of a scenario differ from the random ones.
struct Scenario {
  std::string_view name;
  std::vector<MeterSet> meters;
  // Hardware.
  std::optional<std::size_t> sockets = {};
  std::optional<std::size_t> threads = {};
  // Jobs.
  Weights weights = kMixedJobs;
  double occupied_least = 0.3;  ///< part of the cores that jobs reserve
  double occupied_most = 1;
  double pause = 6;                          ///< average seconds between two arrivals
  bool small = false;                        ///< jobs of a few minutes and an eighth of the node
  std::optional<std::size_t> lone_job = {};  ///< only one job, of so many cores, for all the time
  std::optional<double> warm_up = {};        ///< seconds of work before the exporter is started
  // What happens to the exporter, and how it sees jobs.
  View view = {};
};

/// All scenarios with CPUs, in the order of the report.
std::span<const Scenario> scenarios();

/// A node and how long it has been at work before the exporter starts.
struct Prepared {
  Node node;
  double begin = 0;
};
/// The same seed gives the same node in every scenario that does not ask for another.
Prepared prepare(const Scenario& scenario, std::uint64_t seed, double seconds);

}  // namespace ceems::bench::energy
