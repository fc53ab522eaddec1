#include "fleet/node_health.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"
#include "fleet/node_months_test_support.h"

namespace ceems::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// `n` jobs of `users` users, one a day up to `last_day`, with the effect ± `noise` in turn.
std::vector<EffectOfJob> jobs_with(
    double effect, int n, int users, int last_day = 100, double noise = 0) {
  std::vector<EffectOfJob> jobs;
  for (int i = 0; i < n; ++i) {
    jobs.push_back({.ended_ms = (last_day - n + 1 + i) * kDayMs,
                    .user = fmt::format("u{}", i % users),
                    .effect = effect + (i % 2 == 0 ? noise : -noise)});
  }
  return jobs;
}

/// Nodes n0, n1, … of one class, whose effects are ±1 % in turn.
std::vector<NodeHistory> healthy(int n) {
  std::vector<NodeHistory> nodes;
  for (int i = 0; i < n; ++i) {
    nodes.push_back({.node = fmt::format("n{}", i),
                     .node_class = "h100",
                     .effects = jobs_with(0, 30, 5, 100, 0.01),
                     .jobs = std::vector<JobOnNode>(100, {.ended_ms = kDayMs, .user = "ada"})});
  }
  return nodes;
}

JobOnNode failed(const std::string& user, int day, bool unexplained = true) {
  return {.ended_ms = day * kDayMs, .user = user, .unexplained = unexplained};
}

/// 34 jobs that succeeded before the given ones.
std::vector<JobOnNode> jobs_before(const std::vector<JobOnNode>& last) {
  std::vector<JobOnNode> jobs = last;
  for (int i = 0; i < 34; ++i) {
    jobs.push_back({.ended_ms = i, .user = "ada"});
  }
  return jobs;
}

TEST(PowerEffects, AreAgainstTheMedianOfTheClassInTheJob) {
  const auto effects = power_effects(std::vector<NodePower>{{"a", "x", 100},
                                                            {"b", "x", 100},
                                                            {"c", "x", 110},
                                                            {"d", "x", 90},
                                                            {"e", "y", 500},
                                                            {"f", "y", 700},
                                                            {"g", "x", kNan},
                                                            {"h", "x", 0}});
  ASSERT_THAT(effects, SizeIs(4));
  EXPECT_EQ(effects[0].node, "a");
  EXPECT_DOUBLE_EQ(effects[0].effect, 0);
  EXPECT_DOUBLE_EQ(effects[2].effect, std::log(1.1));
  EXPECT_DOUBLE_EQ(effects[3].effect, std::log(0.9));
  EXPECT_THAT(power_effects(std::vector<NodePower>{{"a", "x", 1}, {"b", "x", 2}, {"c", "x", 3}}),
              IsEmpty());
  EXPECT_THAT(power_effects({}), IsEmpty());
}

TEST(NodeDrift, IsFoundWithItsEvidence) {
  auto nodes = healthy(8);
  nodes[3].effects = jobs_with(0, 6, 5, 70, 0.01);  // healthy before day 76
  for (const EffectOfJob& job : jobs_with(0.06, 25, 4, 100)) {
    nodes[3].effects.insert(nodes[3].effects.begin(), job);  // the order does not matter
  }
  const FleetHealth health = judge_nodes(nodes);
  ASSERT_THAT(health.nodes, SizeIs(1));
  const SickNode& sick = health.nodes.front();
  EXPECT_EQ(sick.node, "n3");
  EXPECT_EQ(sick.node_class, "h100");
  EXPECT_EQ(sick.score, 40);
  ASSERT_TRUE(sick.drift);
  EXPECT_DOUBLE_EQ(sick.drift->effect, 0.06);
  EXPECT_EQ(sick.drift->n, 30U);
  EXPECT_EQ(sick.drift->users, 5U);
  // 25 and of the five before, which began with a job below, two of ±1 %.
  EXPECT_NEAR(sick.drift->p, 8.4e-6, 1e-6);
  EXPECT_EQ(sick.drift->first_ms, 76 * kDayMs);
  EXPECT_FALSE(sick.failures);
  EXPECT_EQ(sick.suggested,
            "scontrol update nodename=n3 state=drain reason=\"ceems: draws 6.2 % more than its "
            "peers in 30 jobs of 5 users\"");
  EXPECT_THAT(health.steps, IsEmpty());
  EXPECT_THAT(health.small_classes, IsEmpty());
}

TEST(NodeDrift, NeedsSizeJobsUsersAndASign) {
  const auto found = [](std::vector<EffectOfJob> effects) {
    auto nodes = healthy(8);
    nodes[0].effects = std::move(effects);
    return judge_nodes(nodes).nodes.size();
  };
  EXPECT_EQ(found(jobs_with(0.051, 30, 3)), 1U);
  EXPECT_EQ(found(jobs_with(-0.051, 30, 3)), 1U);
  EXPECT_EQ(found(jobs_with(0.05, 30, 3)), 0U);
  EXPECT_EQ(found(jobs_with(0.06, 30, 2)), 0U);
  EXPECT_EQ(found(jobs_with(0.06, 11, 3)), 1U);  // p = 2 / 2^11
  EXPECT_EQ(found(jobs_with(0.06, 10, 3)), 0U);  // p = 2 / 2^10
  EXPECT_EQ(found(jobs_with(0.06, 9, 3)), 0U);
  EXPECT_EQ(found(jobs_with(0.06, 30, 3, 100, 0.07)), 0U);  // half of the jobs are below
  EXPECT_EQ(found(jobs_with(kNan, 30, 3)), 0U);
  EXPECT_EQ(found({}), 0U);
  // Only the last 30 jobs count.
  auto recovered = jobs_with(0.2, 40, 5, 70);
  for (const EffectOfJob& job : jobs_with(0, 30, 5, 100, 0.01)) {
    recovered.push_back(job);
  }
  EXPECT_EQ(found(recovered), 0U);
}

TEST(NodeDrift, IsAgainstWhatTheNodeDrewBefore) {
  const auto drift_of = [](double before, int n_before, double now) {
    auto nodes = healthy(8);
    for (int i = 0; i < 8; ++i) {  // ±3 % for ever
      nodes[static_cast<std::size_t>(i)].effects = jobs_with(i % 2 == 0 ? 0.03 : -0.03, 60, 5);
    }
    nodes[0].effects = jobs_with(before, n_before, 5, 70, 0.01);
    for (const EffectOfJob& job : jobs_with(now, 30, 5, 100)) {
      nodes[0].effects.push_back(job);
    }
    const auto health = judge_nodes(nodes);
    return health.nodes.empty() ? std::nullopt : health.nodes[0].drift;
  };
  const auto found = drift_of(-0.02, 30, 0.04);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->effect, 0.04);
  ASSERT_TRUE(found->before);
  EXPECT_DOUBLE_EQ(*found->before, -0.02);
  EXPECT_EQ(found->first_ms, 71 * kDayMs);
  EXPECT_TRUE(drift_of(-0.02, 20, 0.04));
  EXPECT_FALSE(drift_of(-0.02, 19, 0.04));  // what it drew before is not known
  EXPECT_FALSE(drift_of(-0.01, 30, 0.04));
  EXPECT_FALSE(drift_of(-0.08, 30, 0.02));  // repaired
  EXPECT_FALSE(drift_of(0.06, 30, 0.06));   // always so, in a class that differs
}

TEST(NodeDrift, IsBeyondWhatNodesOfTheClassDiffer) {
  std::vector<NodeHistory> nodes = healthy(9);
  for (int i = 0; i < 9; ++i) {  // −8 %, −6 %, …, 8 %: MAD 4 %
    nodes[static_cast<std::size_t>(i)].effects = jobs_with(0.02 * (i - 4), 30, 5, 100 + 10 * i);
  }
  EXPECT_THAT(judge_nodes(nodes).nodes, IsEmpty());
  nodes[8].effects = jobs_with(0.35, 30, 5);
  EXPECT_THAT(judge_nodes(nodes).nodes, SizeIs(1));
}

TEST(NodeDrift, OfManyNodesOnOneDayIsAStep) {
  auto nodes = healthy(20);
  for (const std::size_t i : {4U, 2U, 9U}) {
    nodes[i].effects = jobs_with(0.08, 20, 5, 100);
  }
  auto health = judge_nodes(nodes);
  EXPECT_THAT(health.nodes, IsEmpty());
  ASSERT_THAT(health.steps, SizeIs(1));
  EXPECT_EQ(health.steps[0].node_class, "h100");
  EXPECT_EQ(health.steps[0].first_ms, 81 * kDayMs);
  EXPECT_DOUBLE_EQ(health.steps[0].effect, 0.08);
  EXPECT_THAT(health.steps[0].nodes, ElementsAre("n2", "n4", "n9"));

  nodes[9].effects = jobs_with(-0.08, 20, 5, 100);  // two the one way, one the other
  health = judge_nodes(nodes);
  EXPECT_THAT(health.nodes, SizeIs(3));
  EXPECT_THAT(health.steps, IsEmpty());

  nodes[9].effects = jobs_with(0.08, 20, 5, 102);  // two days later
  EXPECT_THAT(judge_nodes(nodes).nodes, SizeIs(3));

  nodes = healthy(40);  // three are less than a tenth
  for (const std::size_t i : {4U, 2U, 9U}) {
    nodes[i].effects = jobs_with(0.08, 20, 5, 100);
  }
  EXPECT_THAT(judge_nodes(nodes).nodes, SizeIs(3));
}

TEST(NodeFailures, AreImprobableOfSeveralUsersAndNotOfTheJobs) {
  const std::vector<JobOnNode> six{failed("ada", 3), failed("bob", 2), failed("ada", 4),
                                   failed("bob", 7), failed("ada", 4), failed("eve", 5)};
  const auto judged = [](const std::vector<JobOnNode>& jobs) {
    auto nodes = healthy(5);
    nodes[1].jobs = jobs_before(jobs);
    nodes[2].jobs[0] = failed("ada", 2);
    return judge_nodes(nodes).nodes;
  };
  const auto health = judged(six);
  ASSERT_THAT(health, SizeIs(1));
  EXPECT_EQ(health[0].node, "n1");
  EXPECT_EQ(health[0].score, 50);
  ASSERT_TRUE(health[0].failures);
  const NodeFailures found = *health[0].failures;
  EXPECT_EQ(found.jobs, 40U);
  EXPECT_EQ(found.failed, 6U);
  EXPECT_EQ(found.users, 3U);
  EXPECT_DOUBLE_EQ(found.rate_of_class, 2.0 / 162);  // 1 of the 160 others
  EXPECT_NEAR(found.p, 9.4786e-6, 1e-9);
  EXPECT_EQ(found.first_ms, 2 * kDayMs);
  EXPECT_EQ(health[0].suggested,
            "scontrol update nodename=n1 state=drain reason=\"ceems: 6 of 40 jobs failed, of 3 "
            "users\"");

  EXPECT_THAT(judged({six.begin(), six.end() - 1}), IsEmpty());  // p = 1.2e-4
  auto some = six;
  for (JobOnNode& job : some) {
    job.user = "ada";
  }
  EXPECT_THAT(judged(some), IsEmpty());
  some.back().user = "bob";  // of ada's five, three count
  EXPECT_THAT(judged(some), IsEmpty());
  some = six;
  some.front().unexplained = false;
  EXPECT_THAT(judged(some), IsEmpty());
  some = six;  // long ago
  for (int i = 0; i < 40; ++i) {
    some.push_back(failed("ada", 8, false));
  }
  EXPECT_THAT(judged(some), IsEmpty());
}

TEST(NodeFailures, AreNotThoseOfTheWholeClass) {
  auto nodes = healthy(6);
  for (NodeHistory& node : nodes) {  // a file system that failed
    node.jobs = jobs_before({failed("ada", 1), failed("bob", 1), failed("eve", 1), failed("dan", 1),
                             failed("fay", 1), failed("gil", 1)});
  }
  EXPECT_THAT(judge_nodes(nodes).nodes, IsEmpty());
}

TEST(NodeHealth, SignsOfBrokenHardwareCountAlone) {
  const auto scores = [](HardSign sign, double count) {
    std::vector<NodeHistory> nodes{{.node = "g14", .node_class = "one"}};
    nodes[0].signs[static_cast<std::size_t>(sign)] = count;
    const auto health = judge_nodes(nodes);
    EXPECT_THAT(health.small_classes, ElementsAre("one"));
    return health.nodes.empty() ? 0 : health.nodes[0].score;
  };
  EXPECT_EQ(scores(HardSign::kLostGpu, 1), 60);
  EXPECT_EQ(scores(HardSign::kEcc, 1), 50);
  EXPECT_EQ(scores(HardSign::kXid, 1), 40);
  EXPECT_EQ(scores(HardSign::kXid, 0.4), 0);
  EXPECT_EQ(scores(HardSign::kLink, 1e6), 0);
  EXPECT_EQ(scores(HardSign::kThrottle, 86'400), 0);
  EXPECT_EQ(scores(HardSign::kEcc, kNan), 0);
  EXPECT_EQ(scores(HardSign::kEcc, -1), 0);
}

TEST(NodeHealth, OrdersByScoreAndSumsTheEvidence) {
  auto nodes = healthy(8);
  nodes[5].signs[static_cast<std::size_t>(HardSign::kThrottle)] = 3600;
  nodes[5].effects = jobs_with(-0.1, 30, 5);
  nodes[6].signs = {1, 2, 3, 0, 0};
  nodes[2].signs = {0, 0, 3, 0, 0};
  const auto health = judge_nodes(nodes);
  ASSERT_THAT(health.nodes, SizeIs(3));
  EXPECT_EQ(health.nodes[0].node, "n6");
  EXPECT_EQ(health.nodes[0].score, 100);
  EXPECT_EQ(health.nodes[0].suggested,
            "scontrol update nodename=n6 state=drain reason=\"ceems: 1 GPUs lost; 2 uncorrected "
            "memory errors; 3 Xid errors of the hardware\"");
  EXPECT_EQ(health.nodes[1].node, "n5");
  EXPECT_EQ(health.nodes[1].score, 50);
  EXPECT_THAT(health.nodes[1].signs, ElementsAre(std::pair(HardSign::kThrottle, 3600.0)));
  EXPECT_EQ(name_of(health.nodes[1].signs[0].first), "throttle");
  EXPECT_EQ(health.nodes[2].node, "n2");
  EXPECT_EQ(health.nodes[2].score, 40);
}

TEST(NodeHealth, NeedsFourNodesOfAClass) {
  auto nodes = healthy(4);
  nodes[0].effects = jobs_with(0.1, 30, 5);
  EXPECT_THAT(judge_nodes(nodes).nodes, SizeIs(1));
  nodes.pop_back();
  const auto health = judge_nodes(nodes);
  EXPECT_THAT(health.nodes, IsEmpty());
  EXPECT_THAT(health.small_classes, ElementsAre("h100"));
  EXPECT_THAT(judge_nodes({}).nodes, IsEmpty());
}

TEST(DrainLine, TakesOnlyPlainNamesAndTexts) {
  EXPECT_EQ(drain_line("g14", "a \"b\" $(c) `d` \\ é\n6.1 %"),
            "scontrol update nodename=g14 state=drain reason=\"a b (c) d  6.1 %\"");
  EXPECT_EQ(drain_line("g14.hpc-a_1.example", "x"),
            "scontrol update nodename=g14.hpc-a_1.example state=drain reason=\"x\"");
  for (const std::string name : {"", "-g", "ALL;reboot", "g[1-9]", "g1,g2", "g 1", "g$(id)", "g`",
                                 "g\n", ".g", "g\"", "gé"}) {
    EXPECT_EQ(drain_line(name, "x"), "") << name;
  }
  EXPECT_EQ(drain_line(std::string(254, 'g'), "x"), "");
}

// bench/fleet/node_health.cc has more of them, with other seeds.
TEST(NodeHealth, SimulatedNodesThatAreHealthyAreNotFound) {
  for (const std::uint64_t seed : {9001, 9002}) {
    const auto result = simulate({.seed = seed, .nodes = 80, .days = 40});
    EXPECT_EQ(result.healthy_nodes, 80U);
    EXPECT_EQ(result.false_nodes, 0U);
  }
}

TEST(NodeHealth, SimulatedNodesThatAreSickAreFound) {
  const auto result =
      simulate({.seed = 9011, .nodes = 80, .hot = 2, .hotter = 1.08, .breaking = 1, .breaks = 0.4});
  EXPECT_EQ(result.false_nodes, 0U);
  for (const std::size_t jobs : result.hot) {
    EXPECT_GT(jobs, 10U);
    EXPECT_LE(jobs, 40U);
  }
  for (const std::size_t jobs : result.breaking) {
    EXPECT_GT(jobs, 2U);
    EXPECT_LE(jobs, 40U);
  }
}

}  // namespace
}  // namespace ceems::fleet
