#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/report/maker.h"
#include "api/report/measurements.h"
#include "store/node_effects.h"
#include "store/nodes.h"

namespace ceems::api {

/// The nodes of a run with their mean power, where the run had a node for itself, for at least ten
/// minutes of which nine tenths are covered, and where a meter measured it.
std::vector<NodeLoad> node_loads(const UnitMeasurements& unit, const UnitRun& run);

/// The rows of the nodes of a unit that has ended (store/node_effects.h); none if it ran for less
/// than ten minutes and did not fail. `classes` are the classes of the cluster's nodes by name;
/// nodes whose class is not known are compared with each other.
store::UnitOnNodes on_nodes(const StoredUnit& unit,
                            const std::vector<NodeLoad>& loads,
                            const std::map<std::string, std::string>& classes);

/// What is alike in nodes of a class: the models of their CPUs and GPUs, or else their numbers.
std::string class_of(const store::NodeFacts& node);

}  // namespace ceems::api
