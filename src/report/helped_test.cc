#include "report/helped.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace ceems::report {
namespace {

using advice::Suggests;

constexpr std::int64_t kDay = 86'400'000;
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr std::int64_t kGpu = 1, kMemory = 2, kTight = 4;
constexpr std::array<HelpingRule, 3> kRules{
    {{.id = "gpu-unused", .mask = kGpu, .suggests = Suggests::kLessGpus},
     {.id = "mem-excess", .mask = kMemory, .suggests = Suggests::kLessMemory},
     {.id = "oom", .mask = kTight, .suggests = Suggests::kMoreMemory}}};

/// A run of two hours on two nodes that ended on a day.
HelpedRun run(std::int64_t day, std::int64_t advice, double gpus, double gib) {
  return {.cluster = "hpc-a",
          .user = "ada",
          .project = "fluids",
          .name = "train_#",
          .ended_ms = day * kDay,
          .request = {.cpus = 64, .gpus = gpus, .nodes = 2, .memory = gib * kGib},
          .hours = 2,
          .not_used_kwh = 0.5 * gpus,
          .advice = advice,
          .judged = true};
}

HelpedSum sum_of(const HelpedCounter& counter, std::string_view rule) {
  const auto sums = counter.sums();
  const auto found = sums.find({"hpc-a", "fluids", rule});
  return found == sums.end() ? HelpedSum() : found->second;
}

TEST(Helped, RunsThatAskForLessAfterwardsSaveHours) {
  HelpedCounter counter(kRules, 100 * kDay);
  counter.add(run(90, kGpu, 4, 64));
  counter.add(run(91, kGpu, 4, 64));
  counter.add(run(99, 0, 1, 64));  // before the period
  counter.add(run(100, 0, 1, 64));
  counter.add(run(101, 0, 2, 64));
  const HelpedSum sum = sum_of(counter, "gpu-unused");
  EXPECT_EQ(sum.kinds, 1);
  EXPECT_EQ(sum.runs, 2);
  EXPECT_DOUBLE_EQ(sum.gpu_hours, 3 * 2 + 2 * 2);
  EXPECT_DOUBLE_EQ(sum.core_hours, 0);
  // 1 kWh an hour was not used; 2 hours each, of which 0.5 and 1 kWh were still not used.
  EXPECT_DOUBLE_EQ(sum.kwh, (2 - 0.5) + (2 - 1));
  EXPECT_EQ(sum.kwh_runs, 2);
  EXPECT_EQ(counter.sums().size(), 1U);
}

TEST(Helped, TheFindingHasToBeGoneAndTheRequestSmaller) {
  HelpedCounter counter(kRules, 0);
  counter.add(run(90, kGpu, 4, 64));
  counter.add(run(91, 0, 4, 64));     // the same request: chance
  counter.add(run(92, 0, 8, 64));     // more of it
  counter.add(run(93, kGpu, 2, 64));  // less, but the finding stays
  HelpedRun other = run(94, 0, 1, 64);
  other.judged = false;
  counter.add(other);
  other = run(94, 0, 1, 64);
  other.name = "test";
  counter.add(other);
  other = run(94, 0, 1, 64);
  other.request.gpus = {};
  counter.add(other);
  EXPECT_TRUE(counter.sums().empty());
}

TEST(Helped, RunsBetweenTwoFindingsDidNotFollow) {
  HelpedCounter counter(kRules, 0);
  for (std::int64_t day = 90; day < 94; day += 2) {
    counter.add(run(day, kGpu, 4, 64));
    counter.add(run(day + 1, 0, 1, 64));
  }
  EXPECT_EQ(sum_of(counter, "gpu-unused").runs, 1);
  counter.add(run(94, kGpu, 4, 64));
  EXPECT_TRUE(counter.sums().empty());
}

TEST(Helped, ASuggestionCountsForAMonthAfterItWasLastFollowed) {
  HelpedCounter counter(kRules, 0);
  counter.add(run(90, kGpu, 4, 64));
  counter.add(run(120, 0, 1, 64));
  counter.add(run(150, 0, 1, 64));
  counter.add(run(181, 0, 1, 64));
  EXPECT_EQ(sum_of(counter, "gpu-unused").runs, 2);
}

TEST(Helped, ARunThatTakesLongerSavesLess) {
  HelpedCounter counter(kRules, 0);
  counter.add(run(90, kGpu, 4, 64));
  HelpedRun slow = run(91, 0, 2, 64);
  slow.hours = 5;
  counter.add(slow);
  EXPECT_DOUBLE_EQ(sum_of(counter, "gpu-unused").gpu_hours, 4 * 2 - 2 * 5);
  EXPECT_DOUBLE_EQ(sum_of(counter, "gpu-unused").kwh, 2 - 1);
  HelpedRun quick = run(92, 0, 2, 64);
  quick.hours = 1;
  counter.add(quick);
  EXPECT_DOUBLE_EQ(sum_of(counter, "gpu-unused").gpu_hours, -2 + (4 - 2) * 1);
}

TEST(Helped, SeveralRulesShareTheEnergyOfARun) {
  HelpedCounter counter(kRules, 0);
  counter.add(run(90, kGpu | kMemory, 4, 64));
  counter.add(run(91, 0, 2, 32));
  const HelpedSum gpus = sum_of(counter, "gpu-unused");
  const HelpedSum memory = sum_of(counter, "mem-excess");
  EXPECT_DOUBLE_EQ(gpus.gpu_hours, 4);
  EXPECT_DOUBLE_EQ(memory.gib_hours, 64);
  EXPECT_DOUBLE_EQ(gpus.kwh, 0.5);
  EXPECT_DOUBLE_EQ(memory.kwh, 0.5);
}

TEST(Helped, MemoryIsComparedByNodeAndMoreOfItSavesNothing) {
  HelpedCounter counter(kRules, 0);
  counter.add(run(90, kMemory | kTight, 0, 64));
  HelpedRun wide = run(91, 0, 0, 128);
  wide.request.nodes = 4;  // the same on each node
  counter.add(wide);
  EXPECT_TRUE(counter.sums().empty());
  counter.add(run(92, 0, 0, 80));
  EXPECT_EQ(sum_of(counter, "oom").runs, 1);
  EXPECT_DOUBLE_EQ(sum_of(counter, "oom").gib_hours, 0);
  EXPECT_EQ(sum_of(counter, "oom").kwh_runs, 0);
  EXPECT_EQ(sum_of(counter, "mem-excess").runs, 0);
}

TEST(Helped, UnknownEnergyIsNotZero) {
  HelpedCounter counter(kRules, 0);
  HelpedRun before = run(90, kGpu, 4, 64);
  before.not_used_kwh = {};
  counter.add(before);
  counter.add(run(91, 0, 2, 64));
  EXPECT_DOUBLE_EQ(sum_of(counter, "gpu-unused").gpu_hours, 4);
  EXPECT_EQ(sum_of(counter, "gpu-unused").kwh_runs, 0);
}

}  // namespace
}  // namespace ceems::report
