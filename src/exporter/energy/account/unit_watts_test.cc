#include "exporter/energy/account/unit_watts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using Use = UnitWatts::Use;

constexpr double kCores = 64;

/// A socket of 64 cores whose units are given as cores and watts per core.
class Socket {
 public:
  explicit Socket(double idle_watts,
                  const UnitWatts::Assumptions& assumptions = UnitWatts::packages(0.5))
      : watts(assumptions), idle_(idle_watts) {}

  void run(int seconds, const std::vector<std::pair<Use, double>>& units, double turbo = 0) {
    std::vector<Use> uses;
    double cores = kSystem;
    double active = kSystem * 1.5;
    for (const auto& [use, per_core] : units) {
      uses.push_back(use);
      cores += use.cores;
      active += use.cores * per_core;
    }
    active *= 1 + turbo * (1 - cores / kCores);
    for (int i = 0; i < seconds; ++i) {
      watts.observe({.joules = idle_ + active, .seconds = 1, .cores_max = kCores, .cores = cores},
                    uses);
    }
  }
  [[nodiscard]] PowerEstimate idle() const { return watts.idle().value_or(PowerEstimate{}); }

  UnitWatts watts;

 private:
  static constexpr double kSystem = 0.2;
  double idle_;
};

/// 25 small units that work by turns beside other work, as three accounts with other phases of the
/// second see them, whose readings are late at other moments.
class ThreeAccounts {
 public:
  explicit ThreeAccounts(const UnitWatts::Assumptions& assumptions)
      : accounts_(3, Account(assumptions)) {
    accounts_[1].next = 7.3;
    accounts_[2].next = 21.65;
  }

  /// How far apart they are in what they charge a unit from the tenth minute on, at most.
  double apart() {
    constexpr double kStep = 0.01;
    while (time_ < 1500) {
      time_ += kStep;
      const double busy = std::fmod(time_, 11) < 5.5 ? 1 : 0.05;
      const double system = std::fmod(time_, 14) < 7 ? 1 : 0.05;
      double units = 0;
      for (std::size_t i = 0; i < kUnits; ++i) {
        const double cores = busy * 0.9 * static_cast<double>(i + 1) / kSum;
        cores_.at(i) += cores * kStep;
        units += cores;
      }
      all_ += (units + system) * kStep;
      joules_ += (8 + 12 * (units + system)) * kStep;
      for (Account& account : accounts_) {
        if (time_ >= account.next) {
          read(account);
        }
      }
    }
    double worst = 0;
    for (std::size_t i = 0; i < kUnits; ++i) {
      const auto [low, high] = std::ranges::minmax(
          {accounts_[0].charged.at(i), accounts_[1].charged.at(i), accounts_[2].charged.at(i)});
      EXPECT_GT(low, 0) << i;
      worst = std::max(worst, high / low - 1);
    }
    return worst;
  }

 private:
  static constexpr std::size_t kUnits = 25;
  static constexpr double kSum = kUnits * (kUnits + 1) / 2.0;
  struct Account {
    explicit Account(const UnitWatts::Assumptions& assumptions) : watts(assumptions) {}
    UnitWatts watts;
    double next = 0;
    double time = 0;
    double joules = 0;
    double all = 0;
    std::array<double, kUnits> cores{};
    std::array<double, kUnits> charged{};
  };

  void read(Account& account) {
    std::exponential_distribution<double> late(250);  // 4 ms
    const double joules = joules_ - 30 * late(random_);
    const double seconds = time_ - account.time;
    std::vector<Use> uses;
    for (std::size_t i = 0; i < kUnits; ++i) {
      uses.push_back({.key = i + 1, .cores = (cores_.at(i) - account.cores.at(i)) / seconds});
    }
    if (account.time > 0) {
      account.watts.observe({.joules = joules - account.joules,
                             .seconds = seconds,
                             .cores_max = 4,
                             .cores = (all_ - account.all) / seconds},
                            uses);
      for (std::size_t i = 0; time_ >= 600 && i < kUnits; ++i) {
        account.charged.at(i) += account.watts.watts()[i] * seconds;
      }
    }
    account.time = time_;
    account.next += 1;
    account.joules = joules;
    account.all = all_;
    account.cores = cores_;
  }

  double time_ = 0;
  double joules_ = 0;
  double all_ = 0;
  std::array<double, kUnits> cores_{};
  std::mt19937_64 random_{1};
  std::vector<Account> accounts_;
};

TEST(UnitWatts, ThreeAccountsOfSmallUnitsAgree) {
  UnitWatts::Assumptions assumed = UnitWatts::memory(0.5);
  EXPECT_LE(ThreeAccounts(assumed).apart(), 0.03);
  EXPECT_LE(ThreeAccounts(UnitWatts::packages(0.5)).apart(), 0.03);
  assumed.doubts = false;
  EXPECT_GT(ThreeAccounts(assumed).apart(), 0.03);  // so it is this rule
}

TEST(UnitWatts, CountsByCoresBeforeTheFirstWindow) {
  Socket socket(80);
  socket.run(1, {{{.key = 1, .cores = 3}, 2}, {{.key = 2, .cores = 1}, 2}});
  EXPECT_EQ(socket.watts.idle(), std::nullopt);
  EXPECT_DOUBLE_EQ(socket.watts.watts()[0], 3);
  EXPECT_DOUBLE_EQ(socket.watts.watts()[1], 1);
  EXPECT_DOUBLE_EQ(socket.watts.total_watts(), 4.2);
  socket.run(1, {});
  EXPECT_TRUE(socket.watts.idle().has_value());
  EXPECT_TRUE(socket.watts.watts().empty());
}

TEST(UnitWatts, GivesANewUnitTheAverage) {
  Socket socket(80);
  socket.run(60, {});
  for (int round = 0; round < 5; ++round) {
    socket.run(60, {{{.key = 1, .cores = 8}, 3}});
    socket.run(60, {{{.key = 1, .cores = 0}, 3}});
  }
  socket.run(1, {{{.key = 1, .cores = 8}, 3}, {{.key = 2, .cores = 8}, 3}});
  EXPECT_NEAR(socket.watts.watts()[1] / socket.watts.watts()[0], 1, 0.25);
}

TEST(UnitWatts, LearnsFromUnitsThatStartAndStop) {
  Socket socket(100);
  for (int minute = 0; minute < 20; ++minute) {
    socket.run(60, {{{.key = 1, .cores = minute % 4 != 1 ? 8.0 : 0.0}, 3},
                    {{.key = 2, .cores = minute % 4 != 3 ? 16.0 : 0.0}, 1.5}});
  }
  socket.run(1, {{{.key = 1, .cores = 8}, 3}, {{.key = 2, .cores = 16}, 1.5}});
  EXPECT_NEAR(socket.watts.watts()[0] / socket.watts.watts()[1], 1, 0.05);
}

TEST(UnitWatts, KeepsWhatItLearnedWhenOtherUnitsComeAndGo) {
  Socket socket(100);
  socket.run(60, {});
  for (int round = 0; round < 12; ++round) {
    socket.run(40, {{{.key = 5, .cores = round % 2 == 0 ? 8.0 : 0.0}, 4},
                    {{.key = 6, .cores = round % 3 == 0 ? 0.0 : 8.0}, 1.5}});
  }
  socket.run(
      1, {{{.key = 7, .cores = 4}, 2}, {{.key = 5, .cores = 8}, 4}, {{.key = 6, .cores = 8}, 1.5}});
  EXPECT_NEAR(socket.watts.watts()[1] / socket.watts.watts()[2], 4 / 1.5, 0.4);
  socket.run(20, {{{.key = 6, .cores = 8}, 1.5}});
  socket.run(1, {{{.key = 5, .cores = 8}, 4}, {{.key = 9, .cores = 8}, 4}});
  // 5 was forgotten, so it counts as one that was never seen.
  EXPECT_DOUBLE_EQ(socket.watts.watts()[0], socket.watts.watts()[1]);
}

/// The value learned for a unit of one core that draws half as much as the others, on a socket
/// whose power is off by up to `noise` watts in each interval.
PowerEstimate small_unit(double noise) {
  UnitWatts watts(UnitWatts::packages(0.5));
  const std::vector<Use> units{{.key = 1, .cores = 24}, {.key = 2, .cores = 24}};
  std::vector<Use> more = units;
  more.push_back({.key = 3, .cores = 1});
  std::mt19937 random(1);
  const auto run = [&](double active, double cores, const std::vector<Use>& uses) {
    const double joules = 100 + active * (1 + 0.15 * (1 - cores / kCores));
    for (int i = 0; i < 600; ++i) {
      const double off = std::uniform_real_distribution(-noise, noise)(random);
      watts.observe({.joules = joules + off, .seconds = 1, .cores_max = kCores, .cores = cores},
                    uses);
    }
  };
  run(0, 0, {});
  run(48 * 3, 48, units);
  run(48 * 3 + 1.5, 49, more);
  return watts.of_unit(3).value_or(PowerEstimate{});
}

TEST(UnitWatts, LearnsOfSmallUnitsWhereLittleElseChanges) {
  EXPECT_NEAR(small_unit(0).watts, 1.5, 0.6);
  EXPECT_LT(small_unit(0).deviation, small_unit(20).deviation);
  // Where power is unsteady, a unit counts as one like the others.
  EXPECT_NEAR(small_unit(20).watts, 3, 0.7);
}

/// What is learned in 20 minutes from 40 units that never change, whose CPU time is counted in
/// ticks.
UnitWatts constant_load(std::uint64_t seed) {
  UnitWatts watts(UnitWatts::packages(0.5));
  std::mt19937_64 random(seed);
  std::vector<Use> units(40);
  for (int second = 0; second < 1200; ++second) {
    // All CPUs are counted at the same ticks, so all counts are off together.
    const double off = 1 + std::uniform_real_distribution(-0.01, 0.01)(random);
    for (std::size_t i = 0; i < units.size(); ++i) {
      units[i] = {.key = i + 1, .cores = off};
    }
    watts.observe({.joules = 30 + 40 * 2.5, .seconds = 1, .cores_max = kCores, .cores = 40.1 * off},
                  units);
  }
  return watts;
}

TEST(UnitWatts, IsNotSureOfWhatAConstantLoadCannotShow) {
  const UnitWatts first = constant_load(1);
  const UnitWatts other = constant_load(2);
  const PowerEstimate idle = first.idle().value_or(PowerEstimate{});
  // Nothing tells the 30 W from what was assumed first, 130 W / 1.6, and it knows that.
  EXPECT_NEAR(idle.watts, 80, 5);
  EXPECT_GT(idle.deviation, 20);
  EXPECT_NEAR(other.idle().value_or(PowerEstimate{}).watts / idle.watts, 1, 0.03);
}

/// What three filters of one node charge to 24 small units that never differ, of which each filter
/// reads the energy at other moments, up to 5 ms late: the largest difference of one unit's joules,
/// as a fraction.
double apart_in_three_filters() {
  constexpr std::size_t kUnits = 24;
  constexpr std::size_t kFilters = 3;
  constexpr double kIdle = 40;
  constexpr double kPerCore = 60;
  std::mt19937_64 random(1);
  std::vector<UnitWatts> filters(kFilters, UnitWatts(UnitWatts::packages(0.5)));
  std::array<double, kFilters> late{};
  std::array<std::array<double, kUnits>, kFilters> joules{};
  for (int second = 0; second < 900; ++second) {
    std::vector<Use> uses(kUnits);
    for (std::size_t i = 0; i < kUnits; ++i) {
      uses[i] = {.key = i + 1, .cores = std::uniform_real_distribution(0.0, 0.03)(random)};
    }
    const double cores = std::uniform_real_distribution(1.6, 2.0)(random);
    const double watts = kIdle + kPerCore * cores;
    for (std::size_t f = 0; f < kFilters; ++f) {
      const double before =
          std::exchange(late.at(f), std::uniform_real_distribution(0.0, 0.005)(random));
      UnitWatts& filter = filters[f];
      filter.observe({.joules = watts * (1 + late.at(f) - before),
                      .seconds = 1,
                      .cores_max = 2,
                      .cores = cores},
                     uses);
      const double idle = filter.idle().value_or(PowerEstimate{.watts = kIdle}).watts;
      for (std::size_t i = 0; i < kUnits; ++i) {
        joules.at(f).at(i) += (watts - idle) * filter.watts()[i] / filter.total_watts();
      }
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < kUnits; ++i) {
    const auto [low, high] = std::minmax({joules[0].at(i), joules[1].at(i), joules[2].at(i)});
    worst = std::max(worst, high / low - 1);
  }
  return worst;
}

TEST(UnitWatts, ThatReadAtOtherMomentsAgreeOnSmallUnits) {
  EXPECT_LT(apart_in_three_filters(), 0.05);
}

TEST(UnitWatts, SeesAChangeAfterALongTimeWithoutOne) {
  Socket socket(30);
  const std::vector<std::pair<Use, double>> units{{{.key = 1, .cores = 20}, 2.5},
                                                  {{.key = 2, .cores = 20}, 2.5}};
  socket.run(1199, units);  // in the middle of a steady time
  const double before = socket.watts.watts()[0];
  socket.run(4, {{{.key = 1, .cores = 20}, 2.5}});
  EXPECT_GT(socket.watts.watts()[0], 1.3 * before);  // it goes on from 1.2 W a core
}

TEST(UnitWatts, IsBoundedWhateverIsSeen) {
  UnitWatts watts(UnitWatts::packages(0.5));
  const std::array units{Use{.key = 1, .cores = 2}, Use{.key = 2, .cores = 2}};
  const std::array joules{1e6,
                          8.0,
                          1e-9,
                          0.0,
                          -5.0,
                          std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()};
  for (std::size_t i = 0; i < 2000; ++i) {
    watts.observe(
        {.joules = joules.at(i % joules.size()), .seconds = 10, .cores_max = 8, .cores = 4}, units);
    ASSERT_LE(watts.watts()[0], watts.watts()[1] * UnitWatts::kMaxWatts / UnitWatts::kMinWatts);
    ASSERT_GT(watts.watts()[0], 0);
    ASSERT_TRUE(std::isfinite(watts.total_watts()));
    ASSERT_GE(watts.total_watts(), watts.watts()[0] + watts.watts()[1]);
    const auto idle = watts.idle();
    ASSERT_TRUE(idle && idle->plausible()) << i;
  }
}

TEST(UnitWatts, PutsUnitsBeyondTheLimitTogetherWithTheSystem) {
  UnitWatts watts(UnitWatts::packages(0.5));
  std::vector<Use> units(UnitWatts::kMaxUnits + 10);
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i] = {.key = i + 1, .cores = 0.5};
  }
  for (int i = 0; i < 30; ++i) {
    watts.observe({.joules = 300, .seconds = 1, .cores_max = 160, .cores = 150}, units);
  }
  ASSERT_EQ(watts.watts().size(), units.size());
  const double sum = std::accumulate(watts.watts().begin(), watts.watts().end(), 0.0);
  EXPECT_NEAR(sum / watts.total_watts(), 133.0 / 150, 0.02);
  EXPECT_DOUBLE_EQ(watts.watts().back(), watts.watts()[UnitWatts::kMaxUnits]);
}

TEST(UnitWattsIdle, IsThatOfAnIdleSocket) {
  Socket socket(80);
  socket.run(120, {});
  EXPECT_NEAR(socket.idle().watts, 80, 2);
  EXPECT_TRUE(socket.idle().learned());
}

TEST(UnitWattsIdle, OfASocketThatIsNeverIdleIsFoundBehindUnitsThatDiffer) {
  // The unit that draws most runs when most cores are busy, so a line through use and power is far
  // too steep.
  constexpr double kTurbo = 0.15;
  Socket socket(100);
  for (int round = 0; round < 10; ++round) {
    socket.run(60, {{{.key = 1, .cores = 16}, 1.5}, {{.key = 2, .cores = 0}, 4}}, kTurbo);
    socket.run(60, {{{.key = 1, .cores = 16}, 1.5}, {{.key = 2, .cores = 32}, 4}}, kTurbo);
    socket.run(60, {{{.key = 1, .cores = 4}, 1.5}, {{.key = 2, .cores = 32}, 4}}, kTurbo);
  }
  // What the first core wakes cannot be seen here and is assumed.
  EXPECT_NEAR(socket.idle().watts, 100 - UnitWatts::kWakeWatts, 5);
  EXPECT_TRUE(socket.idle().learned());
}

TEST(UnitWattsIdle, LearnsHowClocksFall) {
  for (const double turbo : {0.0, 0.1, 0.35}) {
    Socket socket(100);
    for (int round = 0; round < 20; ++round) {
      for (const double cores : {8.0, 24.0, 40.0, 56.0}) {
        socket.run(30, {{{.key = 1, .cores = cores}, 2}}, turbo);
      }
    }
    EXPECT_NEAR(socket.idle().watts, 100 - UnitWatts::kWakeWatts, 4) << turbo;
  }
}

TEST(UnitWattsIdle, IsAssumedWhileTheUseIsConstant) {
  for (const double ratio : {0.5, 0.25}) {
    Socket socket(100, UnitWatts::packages(ratio));
    socket.run(3600, {{{.key = 1, .cores = 63.8}, 3}});  // all cores
    const double full = 100 + 63.8 * 3 + 0.2 * 1.5;
    EXPECT_NEAR(socket.idle().watts, ratio * full, 0.05 * ratio * full);
    EXPECT_FALSE(socket.idle().learned());
  }
}

TEST(UnitWattsIdle, IsNotRaisedByASteadyLoad) {
  Socket socket(160);
  socket.run(300, {});
  const double before = socket.idle().watts;
  socket.run(24 * 3600, {{{.key = 1, .cores = 6}, 3}});
  EXPECT_NEAR(socket.idle().watts, before, 2);
}

TEST(UnitWattsIdle, FollowsALevelWithinHoursAndNotOneBrokenWindow) {
  UnitWatts watts(UnitWatts::packages(0.5));
  const auto run = [&](double joules, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      watts.observe({.joules = joules, .seconds = 1, .cores_max = kCores, .cores = 0.2}, {});
    }
    return watts.idle().value_or(PowerEstimate{}).watts;
  };
  EXPECT_NEAR(run(100, 600), 100, 2);
  EXPECT_NEAR(run(5000, 10), 100, 5);
  EXPECT_NEAR(run(100, 600), 100, 2);
  EXPECT_NEAR(run(60, 2 * 3600), 60, 2);
  // The system does not draw less than nothing to make up for it.
  EXPECT_GE(watts.state().system.value_or(PowerEstimate{}).watts, 0);
  EXPECT_NEAR(run(90, 2 * 3600), 90, 2);
}

/// Idle power that is learned of a socket whose cores are never all idle and wake `wake` watts.
double idle_of_busy(double idle, double wake, double sockets) {
  UnitWatts watts(UnitWatts::packages(0.5, sockets));
  for (int minute = 0; minute < 120; ++minute) {
    const std::array units{Use{.key = 1, .cores = minute % 2 == 0 ? 8.0 : 24.0},
                           Use{.key = 2, .cores = minute % 3 == 0 ? 8.0 : 24.0}};
    const double cores = units[0].cores + units[1].cores;
    const double joules = idle + wake + cores * 2 * (1 + 0.15 * (1 - cores / kCores));
    for (int second = 0; second < 60; ++second) {
      watts.observe({.joules = joules, .seconds = 1, .cores_max = kCores, .cores = cores}, units);
    }
  }
  return watts.idle().value_or(PowerEstimate{}).watts;
}

TEST(UnitWattsIdle, IsTakenToBeLessThanWhatOneBusyCoreNeedsByTheSameWattsOnEverySocket) {
  EXPECT_NEAR(idle_of_busy(100, 6, 1), 106 - UnitWatts::kWakeWatts, 1);
  EXPECT_NEAR(idle_of_busy(40, 6, 1), 46 - UnitWatts::kWakeWatts, 1);
  EXPECT_NEAR(idle_of_busy(100, 13, 2), 113 - 2 * UnitWatts::kWakeWatts, 1.5);
}

TEST(UnitWattsIdle, OfASmallPackageIsNotAllWoken) {
  EXPECT_GT(idle_of_busy(8, 1, 1), 5);
}

TEST(UnitWattsIdle, ContinuesWithWhatWasLearned) {
  Socket socket(100);
  socket.watts.restore({.idle = PowerEstimate{.watts = 100, .deviation = 3}});
  socket.run(3600, {{{.key = 1, .cores = 40}, 3}});
  EXPECT_NEAR(socket.idle().watts, 100, 3);
  EXPECT_TRUE(socket.idle().learned());
  socket.watts.restore({.idle = PowerEstimate{.watts = 10, .deviation = 1}});  // too late
  socket.run(10, {{{.key = 1, .cores = 40}, 3}});
  EXPECT_NEAR(socket.idle().watts, 100, 3);
  Socket other(100);
  other.watts.restore(
      {.idle = PowerEstimate{.watts = std::numeric_limits<double>::quiet_NaN(), .deviation = 3}});
  other.run(60, {});
  EXPECT_NEAR(other.idle().watts, 100, 2);
}

// Energy and CPU time that are late together look like a line through zero.
TEST(UnitWattsIdle, IsNotMistakenWhereCountersAreLate) {
  constexpr double kIdle = 100;
  constexpr double kPerCore = 3;
  UnitWatts watts(UnitWatts::packages(0.5));
  double late = 0;
  for (int i = 0; i < 3600; ++i) {
    const double slip = (i % 7 == 3 ? 0.8 : i % 5 == 1 ? 0.3 : 0) - late;
    late += slip;
    const double part = 1 + slip;  // counted in an interval of a second
    watts.observe({.joules = part * (kIdle + kPerCore * 64),
                   .seconds = 1,
                   .cores_max = 64,
                   .cores = part * 64,
                   .timing = {.slip = slip}},
                  std::array{Use{.key = 1, .cores = part * 64}});
  }
  const double assumed = 0.5 * (kIdle + kPerCore * 64);
  EXPECT_NEAR(watts.idle().value_or(PowerEstimate{}).watts, assumed, 0.03 * assumed);
  EXPECT_FALSE(watts.idle().value_or(PowerEstimate{}).learned());
}

TEST(UnitWatts, ContinuesWithWhatUnitsDrew) {
  Socket socket(100);
  socket.run(60, {});
  const Use hot{.key = 1, .cores = 8};
  const Use cool{.key = 2, .cores = 8};
  for (int round = 0; round < 20; ++round) {
    socket.run(30, {{{.key = 1, .cores = round % 2 == 0 ? 8.0 : 0.0}, 4},
                    {{.key = 2, .cores = round % 3 == 0 ? 0.0 : 8.0}, 1.5}});
  }
  socket.run(10, {{hot, 4}, {cool, 1.5}});
  const double ratio = socket.watts.watts()[0] / socket.watts.watts()[1];
  EXPECT_GT(ratio, 2);
  const auto of_hot = socket.watts.of_unit(1);
  const auto of_cool = socket.watts.of_unit(2);
  ASSERT_TRUE(of_hot && of_cool);
  EXPECT_FALSE(socket.watts.of_unit(3));
  Socket next(100);
  next.watts.restore(socket.watts.state());
  // Keys differ after a restart.
  next.run(3, {{{.key = 7, .cores = 8, .before = &*of_hot}, 4},
               {{.key = 8, .cores = 8, .before = &*of_cool}, 1.5}});
  EXPECT_NEAR(next.watts.watts()[0] / next.watts.watts()[1], ratio, 0.1 * ratio);
  Socket forgetful(100);
  forgetful.run(3, {{{.key = 7, .cores = 8}, 4}, {{.key = 8, .cores = 8}, 1.5}});
  EXPECT_NEAR(forgetful.watts.watts()[0] / forgetful.watts.watts()[1], 1, 0.1);
}

/// A constant load shows nothing new, so that the variance grows; what was learned holds.
TEST(UnitWatts, KeepsUnitsApartThatWereToldApart) {
  Socket socket(100);
  const Use hot{.key = 1, .cores = 24};
  const Use cool{.key = 2, .cores = 24};
  socket.run(60, {});
  socket.run(600, {{hot, 4}});
  socket.run(600, {{hot, 4}, {cool, 1.5}});
  const double ratio = socket.watts.watts()[0] / socket.watts.watts()[1];
  EXPECT_GT(ratio, 1.8);
  socket.run(12 * 3600, {{hot, 4}, {cool, 1.5}});
  EXPECT_NEAR(socket.watts.watts()[0] / socket.watts.watts()[1], ratio, 0.1 * ratio);
}

TEST(UnitWatts, KeepsUnitsApartOverManyRestarts) {
  auto socket = std::make_unique<Socket>(100);
  socket->run(60, {});
  socket->run(600, {{{.key = 1, .cores = 24}, 4}});
  socket->run(600, {{{.key = 1, .cores = 24}, 4}, {{.key = 2, .cores = 24}, 1.5}});
  const double ratio = socket->watts.watts()[0] / socket->watts.watts()[1];
  for (int restart = 0; restart < 20; ++restart) {
    const auto of_hot = socket->watts.of_unit(1);
    const auto of_cool = socket->watts.of_unit(2);
    ASSERT_TRUE(of_hot && of_cool) << restart;
    auto next = std::make_unique<Socket>(100);
    next->watts.restore(socket->watts.state());
    next->run(600, {{{.key = 1, .cores = 24, .before = &*of_hot}, 4},
                    {{.key = 2, .cores = 24, .before = &*of_cool}, 1.5}});
    socket = std::move(next);
  }
  EXPECT_NEAR(socket->watts.watts()[0] / socket->watts.watts()[1], ratio, 0.15 * ratio);
}

TEST(UnitWattsIdle, CanBeFixed) {
  Socket socket(100);
  socket.watts.fix_idle(70);
  socket.run(60, {});
  socket.run(600, {{{.key = 1, .cores = 40}, 3}});
  EXPECT_DOUBLE_EQ(socket.idle().watts, 70);
}

/// A node of two sockets of 32 cores that draws 200 W when idle, 10 W more for each socket that is
/// awake, and 2 W a core, up to 30 % more while its socket rests. A meter shows the average of a
/// minute, later.
double learned_from_minutes(bool by_socket) {
  UnitWatts watts(UnitWatts::packages(0.5, 2));
  constexpr double kSocket = 32;
  std::mt19937 random(5);
  const auto cores = [&random] { return std::uniform_real_distribution(0.0, 16.0)(random); };
  for (int minute = 0; minute < 240; ++minute) {
    // Two units on one socket, and one on the other, which often sleeps.
    const std::array all{cores(), cores(), minute % 3 == 0 ? cores() : 0.0};
    const std::array busy{all[0] + all[1], all[2]};
    double power = 200;
    double beside_resting = 0;
    double awake = 0;
    for (const double use : busy) {
      const double resting = use * (1 - use / kSocket);
      power += 10 * std::min(1.0, use) + 2 * (use + 0.3 * resting);
      beside_resting += resting;
      awake += std::min(1.0, use) / 2;
    }
    std::vector<Use> uses;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double resting = all[i] * (1 - busy[i / 2] / kSocket);
      uses.push_back({.key = i + 1, .cores = all[i], .beside_resting = by_socket ? resting : -1});
    }
    watts.learn({.joules = power * 60,
                 .seconds = 60,
                 .cores_max = 2 * kSocket,
                 .cores = busy[0] + busy[1],
                 .awake = by_socket ? awake : -1,
                 .beside_resting = by_socket ? beside_resting : -1},
                uses, 60);
  }
  return watts.idle().value_or(PowerEstimate{}).watts;
}

TEST(UnitWatts, LearnsFromMinutesOfSeveralSockets) {
  const double error = std::abs(learned_from_minutes(true) - 200);
  EXPECT_LE(error, 4);
  // As if all sockets were as busy, and one awake if the other is.
  EXPECT_GT(std::abs(learned_from_minutes(false) - 200), 2 * error);
}

TEST(UnitWatts, DividesAmongUnitsOfNow) {
  UnitWatts watts(UnitWatts::packages(0.5));
  const auto minute = [&watts](double hot, double cool) {
    watts.learn({.joules = 60 * (100 + 3 * hot + 1.5 * cool),
                 .seconds = 60,
                 .cores_max = kCores,
                 .cores = hot + cool},
                std::vector<Use>{{.key = 1, .cores = hot}, {.key = 2, .cores = cool}}, 60);
  };
  for (int round = 0; round < 60; ++round) {
    minute(round % 2 == 0 ? 16 : 0, round % 3 == 0 ? 16 : 0);
  }
  // A third one is new and has the average.
  const std::vector<Use> now{
      {.key = 1, .cores = 8}, {.key = 2, .cores = 8}, {.key = 3, .cores = 4}};
  watts.divide(21, now);
  ASSERT_EQ(watts.watts().size(), 3);
  EXPECT_NEAR(watts.watts()[0] / watts.watts()[1], 2, 0.2);
  EXPECT_GT(watts.watts()[2] / 4, watts.watts()[1] / 8);
  EXPECT_GT(watts.total_watts(),
            std::accumulate(watts.watts().begin(), watts.watts().end(), 0.0));  // the system
}

}  // namespace
}  // namespace ceems::exporter::energy
