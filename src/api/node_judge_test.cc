#include "api/node_judge.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "store/nodes.h"

namespace ceems::api {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

using enum store::NodeOutcome;

store::NodeEffect effect_row(const std::string& node,
                             const std::string& user,
                             const std::string& family,
                             store::NodeOutcome outcome,
                             std::optional<double> effect = {}) {
  return {.ended_ms = kDayMs,
          .on = {.node = node, .effect = effect},
          .username = user,
          .family = family,
          .outcome = outcome};
}

std::vector<store::KnownNode> nodes_named(const std::vector<std::string>& names) {
  std::vector<store::KnownNode> nodes;
  for (const std::string& name : names) {
    nodes.push_back({.cluster_id = "hpc", .facts = {.node = name, .node_class = "h100"}});
  }
  return nodes;
}

TEST(NodeHistories, KnowWhatIsNotExplained) {
  const auto nodes = node_histories(
      {effect_row("a", "ada", "train-#", kFailed), effect_row("a", "ada", "other", kFailed),
       effect_row("a", "bob", "train-#", kFailed), effect_row("a", "eve", "x", kNodeFailed),
       effect_row("a", "eve", "y", kEnded, 0.25), effect_row("a", "dan", "z", kFailed),
       effect_row("a", "dan", "z", kEnded), effect_row("b", "ada", "train-#", kEnded, -0.5),
       effect_row("unknown", "ada", "train-#", kFailed)},
      nodes_named({"a", "b", "c"}));
  ASSERT_THAT(nodes, SizeIs(3));
  EXPECT_EQ(nodes[0].node, "a");
  EXPECT_EQ(nodes[0].node_class, "h100");
  std::string unexplained;
  for (const fleet::JobOnNode& job : nodes[0].jobs) {
    unexplained += job.unexplained ? 'x' : '-';
  }
  EXPECT_EQ(unexplained, "x--x---");  // dan's succeeded on this node only
  ASSERT_THAT(nodes[0].effects, SizeIs(1));
  EXPECT_DOUBLE_EQ(nodes[0].effects[0].effect, 0.25);
  EXPECT_EQ(nodes[0].effects[0].user, "eve");
  EXPECT_DOUBLE_EQ(nodes[1].effects[0].effect, -0.5);
  EXPECT_THAT(nodes[2].jobs, IsEmpty());
}

TEST(NodeHistories, HaveTheNewestJobs) {
  std::vector<store::NodeEffect> rows;
  for (int i = 0; i < 50; ++i) {
    rows.push_back(effect_row("a", "ada", "x", kEnded, 0.01));
    rows.back().ended_ms = -i;
  }
  const auto nodes = node_histories(rows, nodes_named({"a"}));
  ASSERT_THAT(nodes[0].jobs, SizeIs(40));
  EXPECT_EQ(nodes[0].jobs.back().ended_ms, -39);
  EXPECT_THAT(nodes[0].effects, SizeIs(50));
}

}  // namespace
}  // namespace ceems::api
