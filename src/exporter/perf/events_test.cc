#include "exporter/perf/events.h"

#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "exporter/perf/kernel.h"

namespace ceems::exporter::perf {
namespace {

std::vector<std::string> names(const std::vector<std::size_t>& events) {
  std::vector<std::string> found;
  for (const std::size_t event : events) {
    found.emplace_back(all_events()[event].profiler);
  }
  return found;
}

const Event& event(std::string_view profiler) {
  for (const Event& one : all_events()) {
    if (one.profiler == profiler) {
      return one;
    }
  }
  throw std::invalid_argument(std::string(profiler));
}

TEST(PerfEvents, AreThoseOfTheKernelsAbi) {
  EXPECT_EQ(all_events().size(), 24U);
  EXPECT_EQ(event("RefCpuCycles").type, 0U);
  EXPECT_EQ(event("RefCpuCycles").config, 9U);
  EXPECT_EQ(event("MajorFault").type, 1U);
  EXPECT_EQ(event("MajorFault").config, 6U);
  EXPECT_EQ(event("LLWriteMiss").type, 3U);
  EXPECT_EQ(event("LLWriteMiss").config, 0x10102U);
  EXPECT_EQ(event("InstrTLBReadHit").config, 4U);
  EXPECT_EQ(event("BPUReadMiss").config, 0x10005U);
  std::set<std::string_view> series;
  for (const Event& one : all_events()) {
    series.insert(one.series);
  }
  EXPECT_EQ(series.size(), 24U);
}

TEST(PerfEvents, AreAllOfAGroupUnlessNamed) {
  EXPECT_TRUE(choose_events({}, {}, {}).empty());
  EXPECT_EQ(choose_events({.on = true}, {}, {}).size(), 7U);
  EXPECT_EQ(choose_events({}, {.on = true}, {}).size(), 5U);
  EXPECT_EQ(choose_events({}, {}, {.on = true}).size(), 12U);
  EXPECT_EQ(choose_events({.on = true}, {.on = true}, {.on = true}).size(), 24U);
}

TEST(PerfEvents, AreTheNamedOnesWithoutUnknownNames) {
  EXPECT_EQ(names(choose_events({.on = true, .profilers = {"CacheRef", "x", "CpuCycles"}}, {}, {})),
            (std::vector<std::string>{"CpuCycles", "CacheRef"}));
  // A name of another group is unknown. A group that is off stays off.
  EXPECT_EQ(choose_events({.on = true, .profilers = {"PageFault"}}, {}, {}).size(), 7U);
  EXPECT_TRUE(choose_events({.on = false, .profilers = {"CpuCycles"}}, {}, {}).empty());
}

TEST(PerfGrowth, IsScaledToTheWholeTime) {
  EXPECT_EQ(growth({}, {40, 10, 4}), 100U);
  EXPECT_EQ(growth({40, 10, 4}, {60, 20, 9}), 40U);
  EXPECT_EQ(growth({}, {1, 3, 2}), 2U);  // 1.5 rounded
}

TEST(PerfGrowth, IsAsCountedWithoutSharing) {
  EXPECT_EQ(growth({10, 5, 5}, {17, 9, 9}), 7U);
  EXPECT_EQ(growth({10, 5, 2}, {17, 9, 2}), 7U);  // did not run, so it is not scaled
  EXPECT_EQ(growth({10, 5, 5}, {10, 5, 5}), 0U);
}

TEST(PerfGrowth, TreatsADecreaseAsReset) {
  EXPECT_EQ(growth({1000, 50, 50}, {30, 5, 5}), 30U);
  EXPECT_EQ(growth({1000, 50, 50}, {30, 60, 60}), 30U);
  EXPECT_EQ(growth({10, 50, 50}, {30, 4, 2}), 40U);
}

TEST(PerfGrowth, StaysInRange) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(growth({}, {kMax, kMax, 1}), kMax);
}

}  // namespace
}  // namespace ceems::exporter::perf
