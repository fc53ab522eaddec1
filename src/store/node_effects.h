#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ceems::store {

// The table ceems_node_effects (docs/api/database.md): how units ended on nodes, and what the nodes
// drew more or less than the others of the unit. It is written with the reports of units.

enum class NodeOutcome : std::uint8_t { kEnded, kFailed, kNodeFailed };

/// A node of a unit.
struct NodeOfUnit {
  std::string node = {};
  std::optional<double> effect = {};  ///< ln(power ÷ median power of the unit's nodes of the class)
};

/// The nodes of a unit and how it ended, for its report.
struct UnitOnNodes {
  std::string username = {}, family = {};  ///< the name without its numbers
  NodeOutcome outcome = NodeOutcome::kEnded;
  std::vector<NodeOfUnit> nodes = {};  ///< none: nothing is stored
};

/// A row of the table.
struct NodeEffect {
  std::int64_t ended_ms = 0;
  NodeOfUnit on = {};
  std::string username = {}, family = {};
  NodeOutcome outcome = NodeOutcome::kEnded;
};

/// `effect` in the table is in 1e-6; this is one that is not known, and is none of a power.
inline constexpr double kEffectScale = 1e6;
inline constexpr std::int64_t kNoEffect = -1'000'000'000;

/// Rows are purged after this time, or with their units.
inline constexpr std::int64_t kNodeEffectsKeptMs = std::int64_t{90} * 24 * 3600 * 1000;
/// How many rows of a cluster a reader gets at most, the newest.
inline constexpr std::size_t kMaxNodeEffects = 500'000;

}  // namespace ceems::store
