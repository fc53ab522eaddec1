#include "fleet/neighbours.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/fleet/shared_nodes.h"

namespace ceems::fleet {
namespace {

using bench::fleet::SharedNode;
using bench::fleet::simulate_node;
using ::testing::IsEmpty;

constexpr std::size_t kTwoHours = 120;

/// 102 reads for 10 of every 30 minutes. Until then 98 has a value of `quiet`, and then `loud`,
/// with a little noise.
std::vector<NodeUnit> pair_of(WindowValues NodeUnit::* signal, double quiet, double loud) {
  NodeUnit victim{.uuid = "98"};
  NodeUnit suspect{.uuid = "102"};
  for (std::size_t i = 0; i < kTwoHours; ++i) {
    const bool on = i % 30 >= 20;
    (victim.*signal)
        .emplace_back((on ? loud : quiet) * (1 + 0.01 * static_cast<double>(i * 7 % 5)));
    victim.cpus.emplace_back(8);
    suspect.cpus.emplace_back(4);
    suspect.bytes.emplace_back(on ? 2.1e9 : 1e6);
  }
  return {victim, suspect};
}

TEST(Neighbours, AreNamedByANaturalExperiment) {
  const auto rows = find_neighbours(pair_of(&NodeUnit::cpi, 0.82, 1.31));
  ASSERT_EQ(rows.size(), 1U);
  const Neighbour& row = rows.front();
  EXPECT_EQ(row.victim + " " + row.suspect, "98 102");
  EXPECT_EQ(row.signal, "cpi");
  EXPECT_EQ(row.activity, "bytes");
  EXPECT_NEAR(row.with, 1.336, 0.01);
  EXPECT_NEAR(row.without, 0.836, 0.01);
  EXPECT_GT(row.correlation, 0.9);
  EXPECT_EQ(row.bins_with, 40U);
  EXPECT_EQ(row.bins_without, 80U);
  EXPECT_EQ(row.times, 7U);
}

TEST(Neighbours, AreFoundByStallsWhereThereIsNoCpi) {
  const auto io = find_neighbours(pair_of(&NodeUnit::io_stalled, 0.01, 0.2));
  ASSERT_EQ(io.size(), 1U);
  EXPECT_EQ(io.front().signal, "io");
  const auto memory = find_neighbours(pair_of(&NodeUnit::memory_stalled, 0, 0.2));
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_EQ(memory.front().signal, "memory");
  // A stall of 1 % of the time is nothing.
  EXPECT_THAT(find_neighbours(pair_of(&NodeUnit::io_stalled, 0, 0.01)), IsEmpty());
}

TEST(Neighbours, AreNotNamedWithoutAnExperiment) {
  EXPECT_THAT(find_neighbours(pair_of(&NodeUnit::cpi, 0.82, 0.85)), IsEmpty()) << "4 %";
  EXPECT_THAT(find_neighbours(pair_of(&NodeUnit::cpi, 1.31, 0.82)), IsEmpty()) << "faster with it";
  auto steady = pair_of(&NodeUnit::cpi, 0.82, 1.31);
  steady[1].bytes.assign(kTwoHours, 2.1e9);
  EXPECT_THAT(find_neighbours(steady), IsEmpty()) << "it never pauses";
  auto once = pair_of(&NodeUnit::cpi, 0.82, 0.82);
  for (std::size_t i = 0; i < kTwoHours; ++i) {
    once[0].cpi[i] = i < 60 ? 0.8 : 1.3;
    once[1].bytes[i] = i < 60 ? 0 : 2e9;
  }
  EXPECT_THAT(find_neighbours(once), IsEmpty()) << "both changed once";
  auto idle = pair_of(&NodeUnit::cpi, 0.82, 1.31);
  idle[0].cpus.assign(kTwoHours, 0.2);
  EXPECT_THAT(find_neighbours(idle), IsEmpty()) << "the victim does nothing";
  auto quiet = pair_of(&NodeUnit::cpi, 0.82, 1.31);
  for (auto& bytes : quiet[1].bytes) {
    bytes = *bytes / 1e4;
  }
  EXPECT_THAT(find_neighbours(quiet), IsEmpty()) << "200 kB/s hurt nobody";
}

TEST(Neighbours, BearWhatIsMissing) {
  EXPECT_THAT(find_neighbours({}), IsEmpty());
  auto units = pair_of(&NodeUnit::cpi, 0.82, 1.31);
  EXPECT_THAT(find_neighbours(std::span(units).first(1)), IsEmpty());
  units[0].cpi[3] = std::numeric_limits<double>::quiet_NaN();
  units[0].cpi[50] = std::nullopt;
  units[1].bytes[70] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(find_neighbours(units).size(), 1U);
  units[1].bytes.resize(3);
  EXPECT_THAT(find_neighbours(units), IsEmpty());
  units[0].cpus.clear();
  EXPECT_THAT(find_neighbours(units), IsEmpty());
}

TEST(Neighbours, AreFoundInNineOfTenNodesAndAlmostNeverByChance) {
  std::mt19937_64 random(20261);
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (int i = 0; i < 40; ++i) {
    const SharedNode node = simulate_node(0.2, random);
    for (const Neighbour& row : find_neighbours(node.units)) {
      (row.victim == node.victim && row.suspect == node.suspect ? right : wrong) += 1;
    }
  }
  EXPECT_GE(right, 36U);
  EXPECT_LE(wrong, 1U);
  std::size_t rows = 0;
  for (int i = 0; i < 100; ++i) {
    rows += find_neighbours(simulate_node(0, random).units).size();
  }
  EXPECT_EQ(rows, 0U);  // of 200 hours; bench/fleet/neighbours.cc has more
}

}  // namespace
}  // namespace ceems::fleet
