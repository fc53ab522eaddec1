#include "exporter/energy/account/claims.h"

#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

/// Four CPUs on two sockets. CPU 1 is a busy thread beside CPU 0.
constexpr std::array kCpus{
    CpuUse{.socket = 0, .busy = 1, .cores = 0.6}, CpuUse{.socket = 0, .busy = 1, .cores = 0.6},
    CpuUse{.socket = 1, .busy = 0.5, .cores = 0.5}, CpuUse{.socket = 1, .busy = 0, .cores = 0}};
constexpr std::array kSockets{SocketUse{.cpus = 2, .busy = 2, .cores = 1.2, .cores_max = 1.2},
                              SocketUse{.cpus = 2, .busy = 0.5, .cores = 0.5, .cores_max = 2}};

NodeUse node() {
  return {.busy_cpus = 2.5,
          .cpus_online = 4,
          .memory_total_bytes = 1000,
          .cpus = kCpus,
          .sockets = kSockets};
}

using Units = std::vector<std::unique_ptr<UnitEntry>>;

Units one_unit(double busy, double reserved, std::optional<std::vector<int>> cpus = {}) {
  Units units;
  UnitEntry& unit = *units.emplace_back(std::make_unique<UnitEntry>());
  unit.busy_cpus = busy;
  unit.cpus = reserved;
  unit.memory_limit_bytes = 250;
  unit.memory_used_bytes = 100;
  if (cpus) {
    unit.cpu_set = std::make_shared<const std::vector<int>>(std::move(*cpus));
  }
  return units;
}

TEST(Claims, AreOnTheSocketOfTheCpuset) {
  Claims claims;
  claims.make(one_unit(1, 1, std::vector{0}), node());
  ASSERT_EQ(claims.sockets(), 2U);
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].use, 0.6);
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].alloc, 0.5);
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].use, 0);
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].alloc, 0);
  EXPECT_DOUBLE_EQ(claims.cpus()[0].use, 0.6);
  EXPECT_DOUBLE_EQ(claims.cpus()[0].alloc, 0.25);
  EXPECT_DOUBLE_EQ(claims.memory()[0].alloc, 0.25);
  EXPECT_DOUBLE_EQ(claims.memory(0)[0].alloc, 0.5);
  EXPECT_DOUBLE_EQ(claims.memory(1)[0].alloc, 0);
  EXPECT_DOUBLE_EQ(claims.cores(), 1.7);
  EXPECT_DOUBLE_EQ(claims.utilisation(), 1.7 / 3.2);
  EXPECT_DOUBLE_EQ(claims.utilisation(0), 1);
  EXPECT_DOUBLE_EQ(claims.utilisation(1), 0.25);
  EXPECT_DOUBLE_EQ(claims.part(1), 0.5);
}

TEST(Claims, DivideCpuTimeByHowBusyTheCpusAre) {
  Claims claims;
  claims.make(one_unit(1.2, 2, std::vector{1, 2, 99}), node());
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].use, 1.2 * (1 / 1.5) * 0.6);
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].use, 1.2 * (0.5 / 1.5));
  // What is reserved does not depend on use.
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].alloc, 0.5);
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].alloc, 0.5);
}

TEST(Claims, AreOnAllSocketsWithoutACpuset) {
  Claims claims;
  claims.make(one_unit(0.5, 0), node());
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].use, 0.5 * 0.8 * 0.6);
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].use, 0.5 * 0.2);
  // Without a reservation, what is used counts.
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].alloc, 0.2);
  EXPECT_DOUBLE_EQ(claims.cpus()[0].alloc, 0.125);
  claims.make(one_unit(0.5, 0, std::vector{4, -1}), node());
  EXPECT_DOUBLE_EQ(claims.cpus(1)[0].use, 0.5 * 0.2);
}

TEST(Claims, AreOfOneSocketWhereCpusAreNotKnown) {
  Claims claims;
  NodeUse use = node();
  use.cpus = {};
  claims.make(one_unit(1, 2, std::vector{0, 1}), use);
  ASSERT_EQ(claims.sockets(), 1U);
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].use, 1);
  EXPECT_DOUBLE_EQ(claims.cpus(0)[0].alloc, 0.5);
  EXPECT_DOUBLE_EQ(claims.memory(0)[0].alloc, 0.25);
  EXPECT_DOUBLE_EQ(claims.cores(), 2.5);
  EXPECT_DOUBLE_EQ(claims.utilisation(), 0.625);
}

TEST(Claims, KeepTheSocketsOfAnIntervalInWhichCpusAreNotKnown) {
  Claims claims;
  claims.make(one_unit(1, 1, std::vector{0}), node());
  NodeUse use = node();
  use.cpus = {};
  use.busy_cpus.reset();
  claims.make(one_unit(1, 1, std::vector{0}), use);
  EXPECT_EQ(claims.sockets(), 2U);
  EXPECT_TRUE(std::isnan(claims.utilisation()));
  EXPECT_TRUE(std::isnan(claims.utilisation(0)));
  EXPECT_DOUBLE_EQ(claims.cores(), 0);
  EXPECT_DOUBLE_EQ(claims.cpus()[0].use, 1);
}

}  // namespace
}  // namespace ceems::exporter::energy
