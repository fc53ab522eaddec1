#include "exporter/marks/unit_marks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::marks {
namespace {

constexpr std::size_t kPackage = 0;

/// A unit that draws constant watts and is sampled once a second.
class SampledUnit {
 public:
  explicit SampledUnit(double watts) : watts_(watts) {}

  std::optional<Drop> say(const std::string& text, Stream& stream) {
    const auto message = parse_message(text);
    EXPECT_TRUE(message) << text;
    return marks.take(*message, stream, now_);
  }
  std::optional<Drop> say(const std::string& text) { return say(text, marks.detached); }
  void pass(double seconds) {
    auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(seconds));
    while (left.count() > 0) {
      const auto step = std::min<std::chrono::nanoseconds>(left, next_ - now_);
      now_ += step;
      left -= step;
      if (now_ == next_) {
        sample();
      }
    }
  }
  void sample() {
    const double length = std::chrono::duration<double>(now_ - sampled_).count();
    marks.charge({watts_ * length, 0, 0, 0}, length, now_);
    joules += watts_ * length;
    sampled_ = now_;
    next_ = now_ + std::chrono::seconds(1);
  }
  [[nodiscard]] Clock::SteadyTime now() const { return now_; }
  const UnitMarks::Region& region(std::string_view name) {
    return *std::ranges::find(marks.regions(), name, &UnitMarks::Region::name);
  }
  double joules_of(std::string_view name) {
    EXPECT_TRUE(region(name).has_energy()) << name;
    return region(name).energy().joules.at(kPackage);
  }
  double balance() {
    double sum = marks.unmarked_joules();
    for (const auto& each : marks.regions()) {
      sum += each.all_self_joules();
    }
    return sum;
  }

 private:
  Clock::SteadyTime now_{std::chrono::seconds(1000)};
  double watts_;
  Clock::SteadyTime sampled_ = now_;
  Clock::SteadyTime next_ = now_ + std::chrono::seconds(1);

 public:
  UnitMarks marks{now_};
  double joules = 0;
};

TEST(UnitMarks, DividesConstantPowerByTime) {
  SampledUnit run(100);
  run.pass(0.3);
  for (const auto& [name, seconds] :
       {std::pair{"read", 2.5}, std::pair{"solve", 4.0}, std::pair{"write", 3.5}}) {
    run.say(std::string("begin ") + name);
    run.pass(seconds);
    run.say(std::string("end ") + name);
  }
  run.pass(1);
  run.sample();
  EXPECT_NEAR(run.joules_of("read"), 250, 2.5);
  EXPECT_NEAR(run.joules_of("solve"), 400, 4);
  EXPECT_NEAR(run.joules_of("write"), 350, 3.5);
  EXPECT_NEAR(run.region("solve").seconds, 4, 1e-9);
  EXPECT_EQ(run.region("solve").count, 1U);
  EXPECT_NEAR(run.marks.unmarked_joules(), 130, 1.3);
  EXPECT_NEAR(run.balance(), run.joules, 1e-6);
}

TEST(UnitMarks, ChargesAnOpenRegionBeforeItsEnd) {
  SampledUnit run(50);
  run.say("begin solve");
  run.pass(0.5);
  EXPECT_FALSE(run.region("solve").has_energy());
  run.pass(4.5);
  EXPECT_NEAR(run.joules_of("solve"), 250, 1e-6);
  EXPECT_EQ(run.region("solve").count, 0U);
}

TEST(UnitMarks, GivesTheEnergyOfNestedRegionsToTheInnermost) {
  SampledUnit run(100);
  run.say("begin step");
  run.pass(2);
  run.say("begin io");
  run.pass(3);
  run.say("end io");
  run.pass(1);
  run.say("end step");
  run.pass(1);
  EXPECT_NEAR(run.joules_of("step"), 600, 1e-6);
  EXPECT_NEAR(run.joules_of("io"), 300, 1e-6);
  EXPECT_NEAR(run.region("step").energy().self, 300, 1e-6);
  EXPECT_NEAR(run.region("io").energy().self, 300, 1e-6);
  EXPECT_NEAR(run.balance(), run.joules, 1e-6);
}

TEST(UnitMarks, ShowsShortPeriodsOnlyInASumOfTen) {
  SampledUnit run(100);
  for (int i = 0; i < 9; ++i) {
    run.say("begin step");
    run.pass(0.25);
    run.say("end step");
  }
  run.pass(1);
  EXPECT_FALSE(run.region("step").has_energy());
  EXPECT_EQ(run.region("step").count, 9U);
  EXPECT_NEAR(run.region("step").seconds, 2.25, 1e-9);
  run.say("begin step");
  run.pass(0.25);
  run.say("end step");
  run.pass(1);
  EXPECT_NEAR(run.joules_of("step"), 250, 2.5);
}

TEST(UnitMarks, ShowsALongPeriodWithoutTheShortOnesBeforeIt) {
  SampledUnit run(100);
  run.say("begin step");
  run.pass(0.5);
  run.say("end step");
  run.pass(1.5);
  run.say("begin step");
  run.pass(2);
  run.say("end step");
  run.pass(1);
  EXPECT_NEAR(run.joules_of("step"), 200, 1e-6);
  EXPECT_NEAR(run.balance(), run.joules, 1e-6);
}

TEST(UnitMarks, KeepsARegionOpenWhileOneStreamIsInIt) {
  SampledUnit run(100);
  Stream first{.attached = true};
  Stream second{.attached = true};
  run.say("begin solve", first);
  run.pass(1);
  run.say("begin solve", second);
  run.pass(2);
  run.say("end solve", first);
  run.pass(1);
  run.say("end solve", second);
  run.pass(2);
  EXPECT_NEAR(run.joules_of("solve"), 400, 1e-6);
  EXPECT_NEAR(run.region("solve").seconds, 4, 1e-9);
  EXPECT_EQ(run.region("solve").count, 2U);
  EXPECT_EQ(run.say("end solve", first), Drop::kUnmatched);
}

TEST(UnitMarks, EndsTheRegionsOfAConnectionWithIt) {
  SampledUnit run(100);
  Stream stream{.attached = true};
  run.say("begin solve", stream);
  run.say("begin io", stream);
  run.pass(2);
  run.marks.close(stream, run.now());
  run.pass(3);
  EXPECT_NEAR(run.joules_of("solve"), 200, 1e-6);
  EXPECT_NEAR(run.joules_of("io"), 200, 1e-6);
  EXPECT_NEAR(run.marks.unmarked_joules(), 300, 1e-6);
}

TEST(UnitMarks, TakesASecondBeginForAnEndThatWasLost) {
  SampledUnit run(100);
  run.say("begin step");
  run.pass(2);
  run.say("begin step");
  run.pass(2);
  EXPECT_FALSE(run.say("end step"));
  run.pass(1);
  EXPECT_EQ(run.region("step").count, 2U);
  EXPECT_NEAR(run.joules_of("step"), 400, 1e-6);
}

TEST(UnitMarks, IgnoresEndsWithoutBegin) {
  SampledUnit run(100);
  EXPECT_EQ(run.say("end solve"), Drop::kUnmatched);
  EXPECT_TRUE(run.marks.regions().empty());
  run.say("begin solve");
  EXPECT_EQ(run.say("end other"), Drop::kUnmatched);
  EXPECT_FALSE(run.say("end solve"));
  EXPECT_EQ(run.say("end solve"), Drop::kUnmatched);
}

TEST(UnitMarks, ForgetsOpenRegionsWhenTheUnitEnds) {
  SampledUnit run(100);
  Stream stream{.attached = true};
  run.say("begin solve");
  run.say("begin io", stream);
  run.pass(2);
  run.marks.end_all(run.now());
  run.pass(2);
  EXPECT_NEAR(run.joules_of("solve"), 200, 1e-6);
  EXPECT_EQ(run.region("io").count, 1U);
  EXPECT_EQ(run.say("end solve"), Drop::kUnmatched);
  EXPECT_EQ(run.say("end io", stream), Drop::kUnmatched);
  run.marks.close(stream, run.now());
  EXPECT_EQ(run.region("io").count, 1U);
  run.say("begin solve");  // it was requeued
  run.pass(3);
  EXPECT_NEAR(run.joules_of("solve"), 500, 1e-6);
}

TEST(UnitMarks, HaveALimitOfNamesAndDepth) {
  SampledUnit run(100);
  for (std::size_t i = 0; i < UnitMarks::kMaxOpen; ++i) {
    EXPECT_FALSE(run.say("begin r" + std::to_string(i)));
  }
  EXPECT_EQ(run.say("begin deep"), Drop::kDepth);
  EXPECT_EQ(run.say("end deep"), Drop::kUnmatched);
  for (std::size_t i = UnitMarks::kMaxOpen; i < UnitMarks::kMaxNames; ++i) {
    EXPECT_FALSE(run.say((i % 2 == 0 ? "result r" : "fom f") + std::to_string(i) + " 1"));
  }
  EXPECT_EQ(run.say("begin more"), Drop::kNames);
  EXPECT_EQ(run.say("result more 1"), Drop::kNames);
  EXPECT_EQ(run.say("fom more 1"), Drop::kNames);
  EXPECT_EQ(run.say("progress 1 more"), Drop::kNames);
  EXPECT_FALSE(run.say("result r8 2"));
  EXPECT_DOUBLE_EQ(run.marks.results().front().total, 3);
}

TEST(UnitMarks, HaveATwoAndThirtiethRegion) {
  SampledUnit run(100);
  for (std::size_t i = 0; i < UnitMarks::kMaxNames; ++i) {
    const std::string name = "r" + std::to_string(i);
    EXPECT_FALSE(run.say("begin " + name));
    run.pass(1);
    EXPECT_FALSE(run.say("end " + name));
  }
  run.pass(1);
  EXPECT_NEAR(run.joules_of("r31"), 100, 1e-6);
}

TEST(UnitMarks, AddUpResults) {
  SampledUnit run(100);
  run.say("result step 50");
  run.say("result step 0.5");
  run.say("result step 1 ns");
  run.say("fom speed 80 ns/day");
  run.say("fom speed 83.2 ns/day");
  ASSERT_EQ(run.marks.results().size(), 2U);
  EXPECT_DOUBLE_EQ(run.marks.results()[0].total, 50.5);
  EXPECT_EQ(run.marks.results()[1].measure, "ns");
  ASSERT_EQ(run.marks.foms().size(), 1U);
  EXPECT_DOUBLE_EQ(run.marks.foms()[0].value, 83.2);
}

TEST(UnitMarks, CountProgressFromItsFirstNumber) {
  SampledUnit run(100);
  const auto total = [&run] { return run.marks.results().front().total; };
  run.say("progress 1000 step");
  EXPECT_DOUBLE_EQ(total(), 0);
  run.say("progress 1050 step");
  run.say("progress 1040 step");  // of a rank that is late
  run.say("progress 1050 step");
  EXPECT_DOUBLE_EQ(total(), 50);
  run.say("progress 0 step");  // another run
  run.say("progress 7 step");
  EXPECT_DOUBLE_EQ(total(), 57);
}

/// Any marks at any times: what regions used while they were innermost and what was used outside of
/// them is the unit's energy, and nothing ever falls.
TEST(UnitMarksProperty, SelfEnergyAndUnmarkedEnergyAreTheEnergyOfTheUnit) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 dice(seed);
    const auto below = [&dice](unsigned limit) { return static_cast<unsigned>(dice() % limit); };
    SampledUnit run(1 + below(500));
    std::array<Stream, 3> streams{};
    streams[1].attached = streams[2].attached = true;
    std::vector<double> before;
    for (int step = 0; step < 200; ++step) {
      Stream& stream = streams.at(below(3));
      const std::string name = "r" + std::to_string(below(12));
      switch (below(8)) {
        case 0:
        case 1:
          run.say("begin " + name, stream);
          break;
        case 2:
        case 3:
          run.say("end " + name, stream);
          break;
        case 4:
          if (below(10) == 0) {
            run.marks.end_all(run.now());
          }
          break;
        case 5:
          if (below(5) == 0) {
            run.marks.close(stream, run.now());
          }
          break;
        default:
          run.pass(below(3000) / 1000.0);
      }
      std::vector<double> shown;
      for (const auto& region : run.marks.regions()) {
        shown.push_back(region.energy().joules.at(kPackage));
        shown.push_back(region.energy().self);
        EXPECT_LE(region.energy().self, region.energy().joules.at(kPackage) + 1e-6);
      }
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_GE(shown.at(i), before[i]) << seed;
      }
      before = shown;
    }
    run.sample();
    EXPECT_NEAR(run.balance(), run.joules, 1e-6 * std::max(1.0, run.joules)) << seed;
  }
}

}  // namespace
}  // namespace ceems::exporter::marks
