#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/reader.h"

namespace ceems::store {

// The tables ceems_nodes, ceems_node_days, ceems_node_progress and ceems_bills
// (docs/api/database.md, "Nodes and bills"). Energy is in 1e-9 kWh, so that it is added up exactly.

inline constexpr double kKwhOfEnergy = 1e-9;

/// The energy of one node in a part of a day. The active energy of its units is `energy` minus
/// idle, system and unallocated.
struct NodeEnergy {
  std::string node = {};
  std::int64_t energy = 0;  ///< by the meter of the node
  std::int64_t idle = 0;    ///< of what units had reserved and did not use
  std::int64_t system = 0;
  std::int64_t unallocated = 0;
  std::int64_t modelled = 0;    ///< the part of `energy` that no meter measured
  std::int64_t covered_ms = 0;  ///< time between readings of the counter
};

/// What a node is. Empty or 0: not known.
struct NodeFacts {
  std::string node = {};
  std::string node_class = {};  ///< models of CPU and GPU: nodes of a class draw alike
  std::string source = {};      ///< where its energy is read: "redfish", "rapl"
  std::int64_t cpus = 0, memory = 0, gpus = 0;  ///< memory in bytes
};

/// What the nodes of a cluster used in (start, end], which is a part of one day.
struct NodeUpdate {
  std::string cluster_id = {};
  std::int64_t start_ms = 0, end_ms = 0;
  std::int64_t day_ms = 0;  ///< the beginning of the day
  std::vector<NodeEnergy> energies = {};
  std::vector<NodeFacts> facts = {};  ///< of nodes that were seen
};

/// Sums over the nodes of a cluster and class on a day. `node` is empty.
struct NodeDay {
  std::string cluster_id = {}, node_class = {};
  std::int64_t day_ms = 0;
  std::int64_t nodes = 0;
  NodeEnergy sum = {};
};

/// A node of a cluster with the times of its first and last reading.
struct KnownNode {
  std::string cluster_id = {};
  NodeFacts facts = {};
  std::int64_t first_ms = 0, last_ms = 0;
};

/// What a utility billed. Amounts are decimal numbers as they were imported; empty: not billed.
struct Bill {
  std::string cluster_id = {};  ///< empty: of the whole site
  std::int64_t start_ms = 0, end_ms = 0;
  std::int64_t energy = 0;
  std::string cost = {}, currency = {}, kgco2 = {};

  bool operator==(const Bill&) const = default;
};

struct BillReport {
  std::size_t added = 0, unchanged = 0, replaced = 0;
};

}  // namespace ceems::store
