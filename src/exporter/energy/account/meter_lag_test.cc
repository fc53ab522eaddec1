#include "exporter/energy/account/meter_lag.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

/// A node whose load changes at random, and a BMC that shows it late.
class LateMeter {
 public:
  struct Options {
    double delay = 0;
    double window = 1;
    double update = 1;  ///< how often the BMC has a new value
    double poll = 5;    ///< how often it is asked
    bool known = true;  ///< there are packages
    double noise = 0;   ///< of the BMC, in watts
  };
  explicit LateMeter(const Options& options) : options_(options) {}

  static double wall_watts(double known) { return 120 + 1.1 * known; }
  static double known_watts(double cpus) { return 80 + 3 * cpus; }

  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      step();
    }
  }
  /// A number of busy CPUs for a time. Later ones are random.
  void keep(double cpus, int seconds) {
    cpus_ = cpus;
    next_change_ = now() + seconds;
    run(seconds);
  }

  std::vector<AlignedReading> readings_;
  MeterLag lag_;
  Options options_;
  double meter_joules_ = 0;  ///< the integral of what it shows
  double node_joules_ = 0;   ///< of what is counted with comparable_joules()
  double wall_joules_ = 0;   ///< the truth

 private:
  [[nodiscard]] double now() const { return static_cast<double>(wall_.size()); }

  void step() {
    if (now() >= next_change_) {
      cpus_ = std::uniform_real_distribution(1.0, 100.0)(random_);
      next_change_ = now() + std::uniform_int_distribution(2, 200)(random_);
    }
    const double known = known_watts(cpus_);
    wall_.push_back(wall_watts(known));
    wall_joules_ += wall_.back();
    lag_.advance(1, options_.known ? known : 0, cpus_);
    meter_joules_ += held_;
    const double other = held_ - lag_.comparable_joules(options_.known ? known : 0, 1);
    node_joules_ += other + (options_.known ? known : 0);
    if (std::fmod(now(), options_.update) == 0) {
      shown_ = std::round(mean() + std::normal_distribution(0.0, 1.0)(random_) * options_.noise);
    }
    if (shown_ > 0 && std::fmod(now(), options_.poll) == 0) {
      held_ = shown_;
      lag_.take(shown_, 0);
      while (const auto reading = lag_.next()) {
        readings_.push_back(*reading);
      }
    }
  }
  /// Of the window that ended `delay` ago, or of what there is of it.
  [[nodiscard]] double mean() const {
    const auto end = static_cast<std::ptrdiff_t>(std::max(1.0, now() - options_.delay));
    const auto begin =
        std::max<std::ptrdiff_t>(0, end - static_cast<std::ptrdiff_t>(options_.window));
    double sum = 0;
    for (auto i = begin; i < end; ++i) {
      sum += wall_.at(static_cast<std::size_t>(i));
    }
    return sum / static_cast<double>(end - begin);
  }

  std::mt19937_64 random_{42};
  std::vector<double> wall_;
  double cpus_ = 1;
  double next_change_ = 0;
  double shown_ = 0;
  double held_ = 0;
};

class MeterLagFinds : public testing::TestWithParam<LateMeter::Options> {};

TEST_P(MeterLagFinds, DelayAndWindowAndAlignsValues) {
  LateMeter meter(GetParam());
  meter.run(3600);
  const auto lag = meter.lag_.lag();
  ASSERT_TRUE(lag);
  // A value that is asked for late is later on average.
  const double true_age = GetParam().delay + GetParam().window / 2;
  const double waiting = std::min(GetParam().poll, GetParam().update);
  // Of a meter that shows moments, nothing tells what the node did between two of them.
  const double unseen = std::max(0.0, GetParam().update - GetParam().window);
  EXPECT_GE(lag->delay + lag->window / 2, true_age - unseen - 3);
  EXPECT_LE(lag->delay + lag->window / 2, true_age + waiting + 3);
  EXPECT_NEAR(lag->window, GetParam().window, 5 + 0.25 * GetParam().window);

  meter.readings_.clear();
  meter.run(3600);
  ASSERT_GE(meter.readings_.size(), 20);
  double error = 0;
  for (const AlignedReading& reading : meter.readings_) {
    const double known = LateMeter::known_watts(reading.busy_cores);
    error += std::abs(reading.watts / LateMeter::wall_watts(known) - 1);
    if (GetParam().known) {
      EXPECT_NEAR(reading.known_watts, known, 1e-6);
    }
  }
  EXPECT_LE(error / static_cast<double>(meter.readings_.size()), 0.03);
}

INSTANTIATE_TEST_SUITE_P(
    Meters,
    MeterLagFinds,
    testing::Values(LateMeter::Options{.delay = 0, .window = 1, .update = 1, .poll = 1},
                    LateMeter::Options{.delay = 5, .window = 1, .update = 1, .poll = 5},
                    LateMeter::Options{.delay = 20, .window = 1, .update = 10, .poll = 10},
                    LateMeter::Options{.delay = 0, .window = 10, .update = 10, .poll = 5},
                    LateMeter::Options{.delay = 5, .window = 30, .update = 30, .poll = 5},
                    LateMeter::Options{.delay = 5, .window = 60, .update = 60, .poll = 5},
                    LateMeter::Options{.delay = 2, .window = 60, .update = 1, .poll = 5},
                    LateMeter::Options{.delay = 20, .window = 60, .update = 60, .poll = 15},
                    LateMeter::Options{.delay = 5, .window = 60, .update = 60, .noise = 3},
                    LateMeter::Options{.delay = 5, .window = 60, .update = 60, .known = false},
                    LateMeter::Options{.delay = 2, .window = 10, .update = 10, .known = false},
                    LateMeter::Options{
                        .delay = 5, .window = 60, .update = 1, .poll = 1, .known = false}));

TEST(MeterLagLag, SharesItsWindowWithAnother) {
  using Lag = MeterLag::Lag;
  EXPECT_EQ((Lag{.delay = 5, .window = 30}.shared({.delay = 5, .window = 30})), 1);
  EXPECT_EQ((Lag{.delay = 20, .window = 60}.shared({.delay = 25, .window = 45})), 45.0 / 60);
  EXPECT_EQ((Lag{.delay = 0, .window = 10}.shared({.delay = 5, .window = 10})), 0.5);
  EXPECT_EQ((Lag{.delay = 1, .window = 1}.shared({.delay = 5, .window = 1})), 0);
}

TEST(MeterLag, SaysWhichTimeAValueDescribes) {
  LateMeter meter({.delay = 5, .window = 30, .update = 30, .poll = 5});
  meter.run(3600);
  const auto lag = meter.lag_.lag();
  ASSERT_TRUE(lag);
  meter.readings_.clear();
  meter.run(600);
  ASSERT_FALSE(meter.readings_.empty());
  for (const AlignedReading& reading : meter.readings_) {
    EXPECT_EQ(reading.window, lag->window);
    EXPECT_EQ(reading.age, lag->delay);  // it is read at once
    EXPECT_NEAR(reading.period, 30, 5);
  }
}

TEST(MeterLag, KnowsNothingOnASteadyNodeButReturnsItsValues) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  meter.keep(10, 1200);
  EXPECT_FALSE(meter.lag_.lag());
  ASSERT_GE(meter.readings_.size(), 50);
  EXPECT_NEAR(meter.readings_.back().known_watts, 110, 1e-6);
  EXPECT_NEAR(meter.readings_.back().busy_cores, 10, 1e-9);
  EXPECT_EQ(meter.readings_.back().watts, 241);
  double seconds = 0;
  for (const AlignedReading& reading : meter.readings_) {
    seconds += reading.seconds;
  }
  EXPECT_NEAR(seconds, 1200, 160);
}

TEST(MeterLag, ReturnsWhatItSawBeforeItKnewTheLag) {
  LateMeter meter({.poll = 1});
  meter.keep(0, 30);  // idle after the boot
  EXPECT_TRUE(meter.readings_.empty());
  meter.run(1200);
  const auto idle = std::ranges::count_if(
      meter.readings_, [](const AlignedReading& reading) { return reading.busy_cores == 0; });
  EXPECT_GE(idle, 10);
  for (const AlignedReading& reading : meter.readings_) {
    if (reading.busy_cores == 0) {
      EXPECT_EQ(reading.watts, LateMeter::wall_watts(80));
      EXPECT_NEAR(reading.known_watts, 80, 1e-6);
    }
  }
}

/// A GPU has a reading once a second, so that a step of its power is known a second later than the
/// wall meter shows it.
TEST(MeterLag, WaitsUntilDevicesHaveToldWhatTheyDrew) {
  MeterLag lag;
  std::mt19937 random(1);
  double gpu = 100;
  double held = gpu;  // by its last reading
  std::size_t returned = 0;
  for (int second = 0; second < 120; ++second) {
    gpu = random() % 5 == 0 ? 700 - gpu : gpu;
    lag.advance(1, 300 + held, 8);
    lag.take(100 + 1.1 * (300 + gpu), 0);
    while (const auto reading = lag.next()) {
      EXPECT_NEAR(reading->watts, 100 + 1.1 * reading->known_watts, 1e-6) << second;
      ++returned;
    }
    lag.correct(gpu - held, 1);
    held = gpu;
  }
  EXPECT_EQ(lag.lag(), (MeterLag::Lag{.delay = 0, .window = 1}));
  EXPECT_GT(returned, 60U);
  EXPECT_NEAR(lag.watts_at(200).value_or(0), 320, 1);
}

TEST(MeterLag, ForgetsChangesThatOtherDomainsDidNotExplain) {
  MeterLag lag;
  std::mt19937 random(1);
  double gpu = 100;
  const auto run = [&](int seconds, bool gpu_known) {
    for (int second = 0; second < seconds; ++second) {
      gpu = random() % 5 == 0 ? 700 - gpu : gpu;
      lag.advance(1, 300 + (gpu_known ? gpu : 0), 8);
      lag.take(100 + 1.1 * (300 + gpu), 0);
      while (lag.next()) {
      }
    }
  };
  run(300, false);
  EXPECT_EQ(lag.lag(), std::nullopt);
  lag.restart_history();
  run(60, true);
  EXPECT_EQ(lag.lag(), (MeterLag::Lag{.delay = 0, .window = 1}));
}

TEST(MeterLag, OfAMeterThatIsStuckStaysUnknown) {
  MeterLag lag;
  for (int i = 0; i < 3600; ++i) {
    const double known = i / 300 % 2 == 0 ? 100 : 400;
    lag.advance(1, known, known / 4);
    lag.take(250, 0);
    while (const auto reading = lag.next()) {
      EXPECT_LE(reading->known_watts, 250);  // a node draws no less than its packages
    }
  }
  EXPECT_FALSE(lag.lag());
}

TEST(MeterLag, IsHardlyEverBelievedWithoutAnyRelation) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution watts(100.0, 500.0);
  MeterLag lag;
  int known = 0;
  for (int i = 0; i < 7200; ++i) {
    lag.advance(1, watts(random), 10);
    if (i % 5 == 0) {
      lag.take(watts(random), 0);
      known += lag.lag() ? 1 : 0;
    }
  }
  EXPECT_LE(known, 14);  // of 1440; a few values may agree by chance
}

TEST(MeterLag, IsLearnedAgainWhenTheMeterChanges) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  meter.run(3600);
  ASSERT_TRUE(meter.lag_.lag());
  EXPECT_EQ(meter.lag_.lag()->window, 60);
  meter.options_ = {.delay = 1, .window = 1, .update = 1, .poll = 5};
  meter.run(2 * 3600);
  ASSERT_TRUE(meter.lag_.lag());
  EXPECT_LE(meter.lag_.lag()->window, 5);
  EXPECT_LE(meter.lag_.lag()->delay, 3);
}

TEST(MeterLag, ExtrapolatesTheValueToAnotherKnownPower) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  EXPECT_FALSE(meter.lag_.watts_at(80));
  meter.run(1800);
  EXPECT_NEAR(meter.lag_.watts_at(80).value_or(0), LateMeter::wall_watts(80), 5);
  EXPECT_NEAR(meter.lag_.watts_at(380).value_or(0), LateMeter::wall_watts(380), 6);
}

TEST(MeterLag, AssumesTheLossesOfANodeWhoseLoadNeverChanged) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  meter.keep(50, 1200);  // 230 W, 373 W at the wall
  EXPECT_NEAR(meter.lag_.watts_at(230).value_or(0), 373, 1);
  EXPECT_NEAR(meter.lag_.watts_at(130).value_or(0), 373 - 1.1 * 100, 1);
}

TEST(MeterLag, KeepsTheNodesEnergyAtTheIntegralOfTheMeter) {
  LateMeter meter({.delay = 10, .window = 60, .update = 60, .poll = 15});
  meter.run(6 * 3600);
  ASSERT_TRUE(meter.lag_.lag());
  // At most what the packages can draw in the time by which the meter is late.
  EXPECT_NEAR(meter.node_joules_, meter.meter_joules_, 380 * 100);
  EXPECT_NEAR(meter.node_joules_ / meter.wall_joules_, 1, 0.01);
}

TEST(MeterLag, ComparesWithWhatItIsGivenWhileTheLagIsUnknown) {
  MeterLag lag;
  lag.advance(1, 100, 10);
  EXPECT_DOUBLE_EQ(lag.comparable_joules(100, 1), 100);
  EXPECT_DOUBLE_EQ(lag.comparable_joules(0, 1), 0);
}

TEST(MeterLag, PaysBackWhatItOwesAfterAReset) {
  LateMeter meter({.delay = 10, .window = 60, .update = 60});
  meter.run(3600);
  meter.keep(1, 300);
  ASSERT_TRUE(meter.lag_.lag());
  double given = 0;
  double returned = 0;
  for (int i = 0; i < 20; ++i) {  // the meter does not show this load yet
    given += 1000;
    returned += meter.lag_.comparable_joules(1000, 1);
  }
  EXPECT_LT(returned, 0.2 * given);
  meter.lag_.reset();
  EXPECT_FALSE(meter.lag_.lag());
  for (int i = 0; i < 8 * 3600; ++i) {
    given += 100;
    const double joules = meter.lag_.comparable_joules(100, 1);
    EXPECT_GE(joules, 0);
    returned += joules;
  }
  EXPECT_NEAR(returned, given, 380 * 100 * std::exp(-8) + 380 * 100);
}

TEST(MeterLag, IgnoresWhatCannotBe) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MeterLag lag;
  lag.take(300, 0);  // before any interval
  EXPECT_FALSE(lag.next());
  for (int i = 0; i < 400; ++i) {
    lag.advance(1, 100, 10);
    lag.advance(0, 1e9, 1e9);
    lag.advance(-1, 1e9, 1e9);
    lag.advance(kNan, 1e9, 1e9);
    lag.advance(1, kNan, -5);  // a second in which nothing is known
    for (const double watts : {kNan, kInfinity, -300.0, 0.0}) {
      lag.take(watts, 0);
    }
    lag.take(300, kNan);
    EXPECT_FALSE(lag.next());
  }
  for (int i = 0; i < 400; ++i) {
    lag.advance(1, 100, 10);
    lag.take(300, 1e9);  // older than all that is known
    EXPECT_FALSE(lag.next());
  }
  lag.take(300, 0);
  const auto reading = lag.next();
  ASSERT_TRUE(reading);
  EXPECT_DOUBLE_EQ(reading->known_watts, 100);
  EXPECT_DOUBLE_EQ(lag.comparable_joules(100, 0), 100);
  EXPECT_DOUBLE_EQ(lag.comparable_joules(100, kNan), 100);
}

TEST(MeterLagState, LetsAnotherGoOn) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  EXPECT_FALSE(meter.lag_.state());
  meter.run(3600);
  const auto state = meter.lag_.state();
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->plausible());
  EXPECT_EQ(state->lag, meter.lag_.lag());
  LateMeter next({.delay = 5, .window = 60, .update = 60});
  next.lag_.restore(*state);
  EXPECT_EQ(next.lag_.lag(), meter.lag_.lag());
  EXPECT_EQ(next.lag_.watts_at(100), meter.lag_.watts_at(100));
  EXPECT_EQ(next.lag_.state(), state);
  next.run(600);
  EXPECT_EQ(next.lag_.lag(), meter.lag_.lag());
  EXPECT_GE(next.readings_.size(), 5U);
  // What was learned is not replaced.
  MeterLag::State other = *state;
  other.lag = {.delay = 30, .window = 1};
  next.lag_.restore(other);
  EXPECT_EQ(next.lag_.lag(), meter.lag_.lag());
}

TEST(MeterLagState, IsLearnedAgainFromAMeterThatChanged) {
  LateMeter meter({.delay = 20, .window = 10, .update = 10});
  meter.run(3600);
  LateMeter next({.delay = 0, .window = 10, .update = 10});
  next.lag_.restore(meter.lag_.state().value_or(MeterLag::State{}));
  ASSERT_TRUE(next.lag_.lag());
  EXPECT_GE(next.lag_.lag()->delay, 15);
  next.run(2 * 3600);
  ASSERT_TRUE(next.lag_.lag());
  EXPECT_LE(next.lag_.lag()->delay, 5);
}

TEST(MeterLagState, IsRefusedIfImpossible) {
  LateMeter meter({.delay = 5, .window = 60, .update = 60});
  meter.run(3600);
  const MeterLag::State good = meter.lag_.state().value_or(MeterLag::State{});
  ASSERT_TRUE(good.plausible());
  const auto refused = [&good](const auto& change) {
    MeterLag::State bad = good;
    change(bad);
    MeterLag lag;
    lag.restore(bad);
    return !bad.plausible() && !lag.lag();
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused([](auto& state) { state.lag.delay = 4; }));
  EXPECT_TRUE(refused([](auto& state) { state.lag.window = -1; }));
  EXPECT_TRUE(refused([](auto& state) { state.by_power[0] = -1; }));
  EXPECT_TRUE(refused([](auto& state) { state.by_power[1] = 1e9; }));
  EXPECT_TRUE(refused([&](auto& state) { state.by_use[2] = kNan; }));
  EXPECT_TRUE(refused([](auto& state) { state.line[0] = 1e300; }));
  EXPECT_TRUE(refused([&](auto& state) { state.line[4] = kNan; }));
  // Changes that show nothing make no lag known.
  MeterLag::State empty = good;
  empty.by_power = {};
  empty.by_use = {};
  MeterLag lag;
  lag.restore(empty);
  EXPECT_FALSE(lag.lag());
}

}  // namespace
}  // namespace ceems::exporter::energy
