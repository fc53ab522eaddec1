#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tool/site/examine.h"
#include "tsdb/client.h"

namespace ceems::tool {

/// Nodes of a class that are compared with each other: with fewer, none is the odd one.
inline constexpr std::size_t kLeastNodesOfClass = 4;
/// Nodes that are named for one reason; the others are counted.
inline constexpr std::size_t kNodesNamed = 20;

/// What was found out about the nodes of a TSDB.
struct NodesReport {
  std::vector<Finding> findings;
  std::set<std::string, std::less<>> reporting;  ///< names without their domain
};

/// Names the nodes that lack what three quarters of the other nodes of their class report, and
/// those that were seen in the last seven days and report nothing now. The class is the models of
/// CPU and GPU within a job of the TSDB and a cluster; nodes whose models are not known are
/// compared by their collectors only. By two queries; one that fails is a finding.
NodesReport examine_nodes(tsdb::Client& tsdb, std::int64_t now_ms);

/// Names the nodes of an answer of units/admin, on which units ran, that are not among the
/// reporting ones. Of a cluster of which less than half are, nothing is said: its resource manager
/// calls nodes by other names, or another TSDB has its series.
std::vector<Finding> compare_with_units(std::string_view answer,
                                        const std::set<std::string, std::less<>>& reporting);

}  // namespace ceems::tool
