#include "fleet/stragglers.h"

#include <limits>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/fleet/devices.h"

namespace ceems::fleet {
namespace {

using bench::fleet::Fault;
using bench::fleet::simulate_job;
using bench::fleet::SimulatedJob;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kWindows = 20;

WindowValues always(double value, std::size_t windows = kWindows) {
  return WindowValues(windows, value);
}

/// A job on `nodes` nodes with two equal GPUs each.
std::vector<JobMember> job_of(std::size_t nodes) {
  std::vector<JobMember> members;
  for (std::size_t i = 0; i < 2 * nodes; ++i) {
    members.push_back({.node = fmt::format("g{}", 11 + i / 2),
                       .device = std::to_string(i % 2),
                       .device_class = "h100",
                       .clock = always(1.98e9),
                       .power = always(600),
                       .activity = always(0.8),
                       .idle_watts = 100});
  }
  return members;
}

std::vector<std::string> shown(const std::vector<Straggler>& rows) {
  std::vector<std::string> all;
  for (const Straggler& row : rows) {
    all.push_back(fmt::format("{} {} {} {} {:.2f} {}/{} {}", row.node, row.device,
                              name_of(row.kind), row.metric, row.deviation.value_or(0), row.counted,
                              row.windows, row.cause));
  }
  return all;
}

TEST(Stragglers, NamesASlowDeviceItsReasonAndWhatWaitingCosts) {
  auto members = job_of(4);
  EXPECT_THAT(find_stragglers(members), IsEmpty());
  members[3].clock = always(1.76e9);
  members[3].throttled["hardware_thermal"] = always(0.8);
  for (auto& member : members) {
    member.throttled.try_emplace("hardware_thermal", always(0));
    member.activity = always(&member == &members[3] ? 0.8 : 0.72);
  }
  const auto rows = find_stragglers(members);
  ASSERT_THAT(shown(rows), ElementsAre("g12 1 slow_device gpu_clock -0.11 10/10 hardware_thermal"));
  EXPECT_LT(rows[0].z.value(), -kOutlier);
  // Seven others draw 500 W above idle for a tenth of 15 minutes.
  EXPECT_NEAR(rows[0].waiting_joules_max.value(), 7 * 500 * 0.1 * 15 * 60, 1);
  EXPECT_EQ(rows[0].found_at, 14);
}

TEST(Stragglers, JudgesOnlyJobsWithEnoughPeersAndTime) {
  auto members = job_of(3);
  members[0].clock = always(1.5e9);
  EXPECT_THAT(find_stragglers(members), IsEmpty());  // six GPUs of three nodes
  members = job_of(4);
  members[0].clock = always(1.5e9);
  EXPECT_EQ(find_stragglers(members).size(), 1);
  members[0].clock = always(1.5e9, 14);
  EXPECT_EQ(find_stragglers(members).size(), 1);  // nine of the ten
  for (auto& member : members) {
    for (auto* series : {&member.clock, &member.power, &member.activity}) {
      series->resize(14);
    }
  }
  EXPECT_THAT(find_stragglers(members), IsEmpty());  // 14 minutes
  members = job_of(4);
  for (std::size_t i = 0; i < 3; ++i) {  // three of a class, two of them fast
    members[i].device_class = "a100";
    members[i].clock = always(i == 0 ? 1.1e9 : 1.4e9);
  }
  EXPECT_THAT(find_stragglers(members), IsEmpty());
  EXPECT_THAT(find_stragglers({}), IsEmpty());
}

TEST(Stragglers, NeedsSixOfTenWindowsAndNeverTakesMissingValuesForZero) {
  auto members = job_of(4);
  for (std::size_t window = 10; window < 15; ++window) {
    members[5].clock[window] = 1.7e9;
  }
  EXPECT_THAT(find_stragglers(members), IsEmpty());
  members[5].clock[15] = 1.7e9;
  EXPECT_THAT(shown(find_stragglers(members)),
              ElementsAre("g13 1 slow_device gpu_clock -0.14 6/10 "));
  members[5].clock.assign(kWindows, std::nullopt);
  members[5].power.clear();
  members[5].activity.assign(3, 0.8);
  EXPECT_THAT(find_stragglers(members), IsEmpty());
  members[5].clock.assign(kWindows, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(find_stragglers(members), IsEmpty());
}

TEST(Stragglers, CallsNoHealthyDifferenceOfSiliconSlow) {
  auto members = job_of(8);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double differs = 0.01 * (static_cast<double>(i % 5) - 2);  // 2 % either way
    members[i].clock = always(1.98e9 * (1 + differs));
    members[i].throttled["power_cap"] = always(1);
  }
  members[9].clock = always(1.98e9 * 0.92);  // at the power limit, as the others
  EXPECT_THAT(find_stragglers(members), IsEmpty());
  members[9].power = always(500);  // lower in both
  EXPECT_THAT(shown(find_stragglers(members)),
              ElementsAre("g15 1 slow_device gpu_clock -0.08 10/10 power_cap"));
}

TEST(Stragglers, TellsMoreWorkFromLessAndLeavesMastersAlone) {
  auto members = job_of(8);
  for (std::size_t i = 0; i < 2; ++i) {
    members[i].activity = always(0.98);
    members[4 + i].activity = always(0.3);  // from the start: a role
    for (std::size_t window = 12; window < kWindows; ++window) {
      members[6 + i].activity[window] = 0.5;
    }
  }
  EXPECT_THAT(shown(find_stragglers(members)), ElementsAre("g11  imbalance activity 0.22 10/10 ",
                                                           "g14  waits activity -0.38 8/10 "));
  members[6].errors["ecc"] = always(2);
  EXPECT_THAT(shown(find_stragglers(members)),
              ElementsAre("g11  imbalance activity 0.22 10/10 ",
                          "g14 0 fabric_or_disk activity -0.38 8/10 ecc",
                          "g14 1 waits activity -0.38 8/10 "));
}

TEST(Stragglers, FindsErrorsThatOnlyOneNodeHas) {
  std::vector<JobMember> members;
  for (std::size_t i = 0; i < 8; ++i) {
    members.push_back({.node = fmt::format("n{}", i)});
    members.back().errors["link"] = always(i == 3 ? 12 : 0);
  }
  EXPECT_THAT(shown(find_stragglers(members)),
              ElementsAre("n3  fabric_or_disk link 0.00 10/10 link"));
  members[5].errors["link"] = always(1);
  EXPECT_THAT(find_stragglers(members), IsEmpty());  // two of eight: no fault of one link
}

TEST(Stragglers, ComparesCpusOnlyWhereThereAreNoGpus) {
  std::vector<JobMember> nodes;
  for (std::size_t i = 0; i < 4; ++i) {
    nodes.push_back({.node = fmt::format("g{}", 11 + i), .activity = always(i == 0 ? 0.9 : 0.4)});
  }
  EXPECT_THAT(shown(find_stragglers(nodes)), ElementsAre("g11  imbalance activity 1.25 10/10 "));
  auto members = job_of(4);
  members.insert(members.end(), nodes.begin(), nodes.end());
  EXPECT_THAT(find_stragglers(members), IsEmpty());
}

/// The share of the faulty members that are named.
double recall(Fault fault, std::size_t jobs, std::mt19937_64& random, std::size_t& wrong) {
  constexpr std::size_t kMinutes = 38;
  std::size_t faulty = 0;
  std::size_t found = 0;
  for (std::size_t i = 0; i < jobs; ++i) {
    const SimulatedJob job = simulate_job(fault, kMinutes, random);
    faulty += job.at_fault.size();
    for (const Straggler& row : find_stragglers(job.members)) {
      std::size_t named = 0;
      for (const std::size_t place : job.at_fault) {
        const JobMember& member = job.members[place];
        named += row.kind == job.kind && row.node == member.node &&
                         (row.device.empty() || row.device == member.device)
                     ? 1
                     : 0;
      }
      found += named;
      wrong += named == 0 ? 1 : 0;
    }
  }
  return faulty == 0 ? 0 : static_cast<double>(found) / static_cast<double>(faulty);
}

// bench/fleet/stragglers.cc prints the same for thousands of jobs. These seeds are others.
TEST(Stragglers, FindsSimulatedFaults) {
  std::mt19937_64 random(20'261'130);
  std::size_t wrong = 0;
  EXPECT_GE(recall(Fault::kSlow5, 8, random, wrong), 0.5);
  EXPECT_GE(recall(Fault::kSlow10, 8, random, wrong), 0.95);
  EXPECT_EQ(recall(Fault::kSlow20, 8, random, wrong), 1);
  EXPECT_GE(recall(Fault::kHotRack, 3, random, wrong), 0.9);
  EXPECT_EQ(recall(Fault::kBadCable, 4, random, wrong), 1);
  EXPECT_EQ(wrong, 0);
}

TEST(Stragglers, FindsNothingInSimulatedHealthyJobs) {
  std::mt19937_64 random(20'261'201);
  std::size_t wrong = 0;
  recall(Fault::kNone, 12, random, wrong);
  recall(Fault::kMaster, 4, random, wrong);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ceems::fleet
