#include "exporter/energy/account/attribution.h"

#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// The example of docs/energy.md, "Worked example".
TEST(Split, MatchesTheWorkedExample) {
  // 160 J in one second, of which 60 J idle; 64 CPUs online, 20 of them busy.
  const std::vector<Claim> claims{{.alloc = 16.0 / 64, .use = 15},  // a: 16 CPUs, 15 busy
                                  {.alloc = 32.0 / 64, .use = 0}};  // b: 32 CPUs, idle
  std::array<double, 2> units{};
  const Remainder rest = split(160, 60, 20, claims, units);
  EXPECT_DOUBLE_EQ(units[0], 15 + 75);
  EXPECT_DOUBLE_EQ(units[1], 30);
  EXPECT_DOUBLE_EQ(rest.unallocated, 15);
  EXPECT_DOUBLE_EQ(rest.system, 25);

  // Then 40 J of kOther.
  std::array<double, 2> other{};
  const Remainder other_rest = split_in_proportion(40, units, rest, other);
  EXPECT_DOUBLE_EQ(other[0], 22.5);
  EXPECT_DOUBLE_EQ(other[1], 7.5);
  EXPECT_DOUBLE_EQ(other_rest.unallocated, 3.75);
  EXPECT_DOUBLE_EQ(other_rest.system, 6.25);
}

TEST(Split, ScalesAllocationsThatOverlapToTheWhole) {
  const std::vector<Claim> claims{{.alloc = 1.0, .use = 0}, {.alloc = 0.5, .use = 0}};
  std::array<double, 2> units{};
  const Remainder rest = split(90, 90, 0, claims, units);
  EXPECT_DOUBLE_EQ(units[0], 60);
  EXPECT_DOUBLE_EQ(units[1], 30);
  EXPECT_DOUBLE_EQ(rest.unallocated, 0);
  EXPECT_DOUBLE_EQ(rest.system, 0);
}

TEST(Split, GivesActiveEnergyToTheSystemWhenNothingWasUsed) {
  const std::vector<Claim> claims{{.alloc = 0.5, .use = 0}};
  std::array<double, 1> units{};
  const Remainder rest = split(100, 40, 0, claims, units);
  EXPECT_DOUBLE_EQ(units[0], 20);
  EXPECT_DOUBLE_EQ(rest.unallocated, 20);
  EXPECT_DOUBLE_EQ(rest.system, 60);
}

TEST(Split, TakesTheSumOfTheUnitsWhereItExceedsTheNodesUse) {
  const std::vector<Claim> claims{{.alloc = 0, .use = 3}, {.alloc = 0, .use = 1}};
  std::array<double, 2> units{};
  const Remainder rest = split(100, 0, 2, claims, units);
  EXPECT_DOUBLE_EQ(units[0], 75);
  EXPECT_DOUBLE_EQ(units[1], 25);
  EXPECT_DOUBLE_EQ(rest.system, 0);
}

TEST(Split, LimitsIdleEnergyToTheTotal) {
  const std::vector<Claim> claims{{.alloc = 0.25, .use = 1}};
  std::array<double, 1> units{};
  const Remainder rest = split(10, 500, 1, claims, units);
  EXPECT_DOUBLE_EQ(units[0], 2.5);
  EXPECT_DOUBLE_EQ(rest.unallocated, 7.5);
}

TEST(Split, TreatsInvalidClaimsAsNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const double huge = std::numeric_limits<double>::max();
  const std::vector<Claim> claims{{.alloc = nan, .use = -1},
                                  {.alloc = -2, .use = inf},
                                  {.alloc = huge, .use = huge},
                                  {.alloc = huge, .use = huge}};
  std::array<double, 4> units{};
  const Remainder rest = split(100, nan, -inf, claims, units);
  for (const double unit : units) {
    EXPECT_GE(unit, 0);
  }
  EXPECT_NEAR(sum(units) + rest.system + rest.unallocated, 100, 1e-9);
  EXPECT_DOUBLE_EQ(split(-5, 0, 0, claims, units).system, 0);
}

TEST(OtherBalance, CarriesADeficitOverInsteadOfExportingIt) {
  OtherBalance other;
  EXPECT_DOUBLE_EQ(other.advance(100, 80, 1e6), 20);
  EXPECT_DOUBLE_EQ(other.advance(100, 150, 1e6), 0);  // the meter does not show the load yet
  EXPECT_DOUBLE_EQ(other.debt(), 50);
  EXPECT_DOUBLE_EQ(other.advance(170, 150, 1e6), 0);
  EXPECT_DOUBLE_EQ(other.debt(), 30);
  EXPECT_DOUBLE_EQ(other.advance(170, 80, 1e6), 60);  // 90 - 30
  EXPECT_DOUBLE_EQ(other.debt(), 0);
}

TEST(OtherBalance, ForgetsDebtBeyondTheLimit) {
  OtherBalance other;
  EXPECT_DOUBLE_EQ(other.advance(0, 1000, 100), 0);
  EXPECT_DOUBLE_EQ(other.debt(), 100);
  EXPECT_DOUBLE_EQ(other.advance(150, 0, 100), 50);
}

}  // namespace
}  // namespace ceems::exporter::energy
