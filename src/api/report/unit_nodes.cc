#include "api/report/unit_nodes.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/durations.h"
#include "fleet/node_health.h"
#include "store/unit_name.h"

namespace ceems::api {
namespace {

constexpr double kCoveredShare = 0.9;
constexpr std::size_t kMaxNodesOfUnit = 200;

/// A unit that ended in one of these ways may say something about its nodes: others were ended by
/// somebody, or by a limit that they had.
store::NodeOutcome outcome_of(const std::string& state) {
  using enum store::NodeOutcome;
  const std::string word = to_lower(state.substr(0, state.find(' ')));
  if (word == "node_fail" || word == "boot_fail") {
    return kNodeFailed;
  }
  return word == "failed" || word == "error" || word == "exit" ? kFailed : kEnded;
}

std::optional<double> watts_of(const NodeMeasurements& node, double seconds) {
  const auto joules = node.joules.find("node");
  const bool exclusive = node.cpus && node.node_cpus && *node.cpus >= *node.node_cpus;
  if (!exclusive || joules == node.joules.end() || node.covered_seconds < kCoveredShare * seconds) {
    return std::nullopt;
  }
  return joules->second / seconds;
}

}  // namespace

std::vector<NodeLoad> node_loads(const UnitMeasurements& unit, const UnitRun& run) {
  const std::int64_t life_ms = run.ended_ms - run.started_ms;
  const bool measured = unit.method != "modelled" && life_ms >= fleet::kShortestEffectMs;
  std::vector<NodeLoad> loads;
  for (const NodeMeasurements& node : unit.nodes) {
    if (!node.node.empty() && loads.size() < kMaxNodesOfUnit) {
      loads.push_back({.node = node.node,
                       .watts = measured ? watts_of(node, static_cast<double>(life_ms) / kSecondMs)
                                         : std::nullopt});
    }
  }
  return loads;
}

store::UnitOnNodes on_nodes(const StoredUnit& unit,
                            const std::vector<NodeLoad>& loads,
                            const std::map<std::string, std::string>& classes) {
  store::UnitOnNodes on{.username = unit.unit.username,
                        .family = store::normal_name(unit.unit.name),
                        .outcome = outcome_of(unit.unit.state)};
  const std::int64_t life_ms = unit.unit.ended_at_ts - unit.unit.started_at_ts;
  if (on.outcome == store::NodeOutcome::kEnded && life_ms < fleet::kShortestEffectMs) {
    return on;
  }
  std::vector<fleet::NodePower> powers;
  for (const NodeLoad& load : loads) {
    on.nodes.push_back({.node = load.node});
    if (load.watts) {
      const auto known = classes.find(load.node);
      powers.push_back({.node = load.node,
                        .node_class = known == classes.end() ? "" : known->second,
                        .watts = *load.watts});
    }
  }
  if (on.nodes.empty()) {  // it failed before anything was measured
    const std::string listed = unit.tag("nodelistexp");
    for (const std::string_view node : split(listed, '|')) {
      if (!node.empty() && on.nodes.size() < kMaxNodesOfUnit) {
        on.nodes.push_back({.node = std::string(node)});
      }
    }
  }
  for (const fleet::PowerEffect& one : fleet::power_effects(powers)) {
    std::ranges::find(on.nodes, one.node, &store::NodeOfUnit::node)->effect = one.effect;
  }
  return on;
}

std::string class_of(const store::NodeFacts& node) {
  return node.node_class.empty() ? fmt::format("{} CPUs, {} GPUs", node.cpus, node.gpus)
                                 : node.node_class;
}

}  // namespace ceems::api
