#include "exporter/energy/meter/source_gate.h"

#include <limits>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

Clock::SteadyTime gate_time(int second) {
  return Clock::SteadyTime{seconds(second)};
}

TEST(JudgeWatts, BelievesNoSentinel) {
  for (const double watts : {65'535.0, 32'767.0, 6'553.5, 3'276.7, 65.535, 4'294'967.295,
                             4'294.967295, 2'147.483647, 2'147'483'647.0, 4'294'967'295.0}) {
    EXPECT_EQ(judge_watts(watts, 1e12), Doubt::kSentinel) << watts;
  }
  for (const double watts : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(judge_watts(watts), Doubt::kInvalid) << watts;
  }
  EXPECT_EQ(judge_watts(50'001), Doubt::kTooHigh);
  EXPECT_EQ(judge_watts(2'001, 2'000), Doubt::kTooHigh);
  for (const double watts : {0.5, 255.0, 420.0, 1'023.0, 6'553.0, 10'240.0}) {
    EXPECT_EQ(judge_watts(watts), std::nullopt) << watts;
  }
}

TEST(PowerLine, HasTheSlopeOfTheLoadsItSaw) {
  PowerLine line;
  for (int i = 0; i < 100; ++i) {
    line.add(0.5, 200, 1);
  }
  EXPECT_NEAR(line.at(0.5, 100, 0.05), 200, 1e-6);
  EXPECT_NEAR(line.at(1.0, 100, 0.05), 250, 1e-6);  // the slope is assumed
  for (int i = 0; i < 600; ++i) {
    line.add(i % 2, 100 + 300 * (i % 2), 1);
  }
  EXPECT_NEAR(line.at(1.0, 100, 0.05), 400, 10);
  EXPECT_NEAR(line.at(0.0, 100, 0.05), 100, 10);
  EXPECT_EQ(line.at(-9, 100, 0.05), 0);
  EXPECT_EQ(line.seconds(), PowerLine::kMemory);
}

TEST(SourceGate, KnowsWhatTheNodeCanDraw) {
  SourceGate gate("wall");
  gate.expect({.most_watts = 2'000, .least_watts = 20, .parts_watts = 300});
  EXPECT_TRUE(gate.believes({.watts = 400, .time = gate_time(0)}));
  EXPECT_FALSE(gate.believes({.watts = 2'001, .time = gate_time(1)}));
  EXPECT_FALSE(gate.believes({.watts = 149, .time = gate_time(2)}));
  EXPECT_EQ(gate.refused_since(), gate_time(1));
  EXPECT_FALSE(gate.believes({.watts = 600, .time = gate_time(3), .capacity_watts = 400}));
  EXPECT_TRUE(gate.believes({.watts = 499, .time = gate_time(4), .capacity_watts = 400}));
  EXPECT_EQ(gate.refused_since(), std::nullopt);
  EXPECT_EQ(gate.excluded(Doubt::kTooHigh), 2U);
  EXPECT_EQ(gate.excluded(Doubt::kTooLow), 1U);
  gate.expect({.least_watts = 20});
  EXPECT_FALSE(gate.believes({.watts = 19, .time = gate_time(5)}));
}

TEST(SourceGate, WantsAJumpConfirmed) {
  SourceGate gate("wall");
  gate.expect({.load_watts = 200});
  EXPECT_TRUE(gate.believes({.watts = 100, .time = gate_time(0)}));
  EXPECT_FALSE(gate.believes({.watts = 900, .time = gate_time(1)}));
  EXPECT_TRUE(gate.believes({.watts = 100, .time = gate_time(2)}));
  EXPECT_FALSE(gate.believes({.watts = 900, .time = gate_time(3)}));
  EXPECT_TRUE(gate.believes({.watts = 850, .time = gate_time(4)}));
  EXPECT_TRUE(gate.believes({.watts = 900, .time = gate_time(5)}));
  gate.expect({.load_watts = 200, .watts = std::pair(100.0, 600.0)});  // the load explains it
  EXPECT_TRUE(gate.believes({.watts = 60, .time = gate_time(6)}));
  EXPECT_TRUE(gate.believes({.watts = 1'000, .time = gate_time(7)}));
  EXPECT_EQ(gate.excluded(Doubt::kJump), 2U);
  EXPECT_EQ(gate.doubt(), std::nullopt);  // not worth a word
}

/// Feeds one value each ten seconds from `from` to `to`; returns when it was not believed first.
int first_doubt(SourceGate& gate, double watts, double load, int from, int to) {
  for (int second = from; second < to; second += 10) {
    gate.expect({.parts_watts = load, .load_watts = load});
    if (!gate.believes({.watts = watts, .time = gate_time(second)})) {
      return second;
    }
  }
  return -1;
}

TEST(SourceGate, DoesNotCallASteadyNodeFrozen) {
  SourceGate gate("wall");
  // A resolution of 4 W, at a load that changes by less than the meter need show.
  EXPECT_EQ(first_doubt(gate, 400, 300, 0, 7'200), -1);
  EXPECT_EQ(first_doubt(gate, 400, 315, 7'200, 14'400), -1);
  EXPECT_EQ(first_doubt(gate, 400, 290, 14'400, 20'000), -1);
}

TEST(SourceGate, CallsAPowerFrozenThatDoesNotFollowTheLoad) {
  SourceGate gate("wall");
  EXPECT_EQ(first_doubt(gate, 400, 300, 0, 600), -1);
  EXPECT_EQ(first_doubt(gate, 400, 380, 600, 2'000), 770);  // after 180 s of another load
  EXPECT_TRUE(gate.frozen());
  EXPECT_EQ(gate.doubt(), Doubt::kFrozen);
  EXPECT_EQ(first_doubt(gate, 401, 380, 2'000, 2'010), -1);
  EXPECT_FALSE(gate.frozen());
}

TEST(SourceGate, IsPatientWithAMeterThatIsSlow) {
  SourceGate gate("wall");
  double watts = 300;
  int second = 0;
  for (int round = 0; round < 10; ++round) {  // it follows after two minutes
    const double load = round % 2 == 0 ? 200 : 280;
    EXPECT_EQ(first_doubt(gate, watts, load, second, second + 120), -1);
    watts = load + 100;
    EXPECT_EQ(first_doubt(gate, watts, load, second + 120, second + 400), -1);
    second += 400;
  }
  EXPECT_EQ(first_doubt(gate, watts, 200, second, second + 470), -1);  // four times as long
}

TEST(SourceGate, LogsTheBeginAndTheEndOnce) {
  SourceGate gate("wall");
  ::testing::internal::CaptureStderr();
  for (int second = 0; second < 200; ++second) {
    const bool lies = second >= 10 && second < 60;
    gate.believes({.watts = lies && second % 2 == 0 ? 65'535.0 : 400.0, .time = gate_time(second)});
    gate.report(gate_time(second), lies ? "an estimate" : "");
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto first = log.find("a source is not believed");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("a source is not believed", first + 1), std::string::npos) << log;
  EXPECT_NE(log.find("all its bits are set"), std::string::npos) << log;
  const auto last = log.find("a source is believed again");
  ASSERT_NE(last, std::string::npos) << log;
  EXPECT_EQ(log.find("a source is believed again", last + 1), std::string::npos) << log;
  EXPECT_EQ(gate.excluded(Doubt::kSentinel), 25U);
}

}  // namespace
}  // namespace ceems::exporter::energy
