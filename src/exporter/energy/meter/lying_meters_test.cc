// Meters that lie: every way in which a meter is known to answer nonsense, with every kind of
// meter. None may move the energy of a job by more than 5 % of what it gets from the same meters
// when they tell the truth. Cray's counters and GPUs are in the tests of their own folders.
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/energy/meter/held_power.h"
#include "exporter/energy/meter/lies_test_support.h"
#include "exporter/energy/meter/lying_node_test_support.h"
#include "exporter/energy/meter/socket_rails.h"

namespace ceems::exporter::energy {
namespace {

using TruthPtr = std::shared_ptr<const Truth>;

/// Packages alone do not show what fans and losses take.
constexpr double kSeenByParts = 0.75;
// Where a BMC is all there is, only the use of CPUs shows that it stands still. A use that is
// nearly that of the first still value shows nothing, and what the account learns then stays.
constexpr double kMaxAlone = 0.15;
constexpr double kMaxSpikes = 0.08;  // the first two are believed

TEST(LyingMeters, OnePackageOfTwo) {
  expect_truth(counter_lies(), {.part = true, .seen = kSeenByParts},
               [](const TruthPtr& truth, const CounterLie& lie, bool present) {
                 Meters meters = package_counters(truth, lie);
                 if (!present) {
                   meters.erase(meters.begin() + 2);
                 }
                 return Instruments{.meters = std::move(meters)};
               });
}

TEST(LyingMeters, OneDieOfFour) {
  /// Joules of the dies.
  struct Dies {
    std::array<std::array<double, 2>, 2> joules{};
  };
  expect_truth(counter_lies(),
               {.part = true, .seen = kSeenByParts, .absent = "shows another counter"},
               [](const TruthPtr& truth, const CounterLie& lie, bool present) {
                 const auto dies = std::make_shared<Dies>();
                 Instruments all;
                 for (std::size_t socket = 0; socket < 2; ++socket) {
                   const auto number = static_cast<int>(socket);
                   for (std::size_t die = 0; die < 2; ++die) {
                     const bool lies = socket == 1 && die == 1;
                     if (!lies || present) {
                       all.meters.push_back(std::make_shared<LyingCounter>(
                           SourceInfo{.name = fmt::format("die-{}-{}", number, die),
                                      .domain = Domain::kPackage,
                                      .socket = number},
                           truth, dies->joules.at(socket).at(die),
                           dies->joules.at(socket).at(1 - die), lies ? lie : CounterLie{}));
                     }
                   }
                   all.meters.push_back(package_counters(truth).at(2 * socket + 1));
                 }
                 all.show = [dies](const Truth& now) {
                   for (std::size_t socket = 0; socket < 2; ++socket) {
                     dies->joules.at(socket) = {0.48 * now.package_joules.at(socket),
                                                0.52 * now.package_joules.at(socket)};
                   }
                 };
                 return all;
               });
}

TEST(LyingMeters, OneMemoryOfTwo) {
  expect_truth(counter_lies(), {.part = true, .seen = kSeenByParts},
               [](const TruthPtr& truth, const CounterLie& lie, bool present) {
                 Meters meters = package_counters(truth);
                 meters.pop_back();
                 if (present) {
                   meters.push_back(std::make_shared<LyingCounter>(
                       SourceInfo{.name = "dram-1", .domain = Domain::kDram, .socket = 1}, truth,
                       truth->dram_joules[1], truth->dram_joules[0], lie));
                 }
                 return Instruments{.meters = std::move(meters)};
               });
}

TEST(LyingMeters, CounterOfTheNode) {
  expect_truth(counter_lies(), {}, [](const TruthPtr& truth, const CounterLie& lie, bool present) {
    Meters meters = package_counters(truth);
    if (present) {
      meters.push_back(std::make_shared<LyingCounter>(
          SourceInfo{.name = "psys", .domain = Domain::kNode, .rank = kPsysRank}, truth,
          truth->node_joules, truth->package_joules[0], lie));
    }
    return Instruments{.meters = std::move(meters)};
  });
}

/// A power meter of the node that has a value every `period` seconds, in whole watts.
void add_bmc(Instruments& all, const PowerLie& lie, int period) {
  const auto bmc = std::make_shared<PublishedPowerMeter>(
      SourceInfo{.name = "bmc", .domain = Domain::kNode, .rank = kIpmiRank});
  all.meters.push_back(bmc);
  all.show = [bmc, lie, period](const Truth& now) {
    const double truth = std::round(now.node_watts);
    const auto watts = lie ? lie(now.second, truth) : std::optional(truth);
    if (now.second % period == 0 && watts) {
      bmc->publish({.watts = *watts, .time = now.now});
    }
  };
}

TEST(LyingMeters, PowerOfTheNode) {
  expect_truth(power_lies(), {.slow = true},
               [](const TruthPtr& truth, const PowerLie& lie, bool present) {
                 Instruments all{.meters = package_counters(truth)};
                 if (present) {
                   add_bmc(all, lie, kTick);
                 }
                 return all;
               });
}

TEST(LyingMeters, PowerOfTheNodeByABmc) {
  expect_truth(power_lies(), {.slow = true},
               [](const TruthPtr& truth, const PowerLie& lie, bool present) {
                 Instruments all{.meters = package_counters(truth)};
                 if (present) {
                   add_bmc(all, lie, 3 * kTick);
                 }
                 return all;
               });
}

TEST(LyingMeters, PowerOfTheNodeWithoutOtherMeters) {
  const auto most = [](const std::string& name) {
    return name.starts_with("still") ? kMaxAlone : name.ends_with("minute") ? kMaxSpikes : 0.05;
  };
  expect_truth(power_lies(), {.slow = true, .most = most},
               [](const TruthPtr&, const PowerLie& lie, bool present) {
                 Instruments all;
                 if (present) {
                   add_bmc(all, lie, 3 * kTick);
                 }
                 return all;
               });
}

/// Two Graces and their rails, one of which lies.
Instruments grace_rails(RailKind liar, const PowerLie& lie, bool present) {
  struct Rail {
    RailName name;
    std::shared_ptr<PublishedPowerMeter> meter;
  };
  /// A meter that is kept elsewhere, too.
  class Shared final : public EnergyMeter {
   public:
    explicit Shared(std::shared_ptr<EnergyMeter> meter) : meter_(std::move(meter)) {}
    [[nodiscard]] const SourceInfo& source() const override { return meter_->source(); }
    Result<Reading> read(const MeterContext& context) override { return meter_->read(context); }

   private:
    std::shared_ptr<EnergyMeter> meter_;
  };
  const auto rails = std::make_shared<SocketRails>();
  std::vector<Rail> all;
  for (const int socket : {0, 1}) {
    for (const RailKind kind : {RailKind::kCpu, RailKind::kSysIo, RailKind::kGrace}) {
      const RailName name{.kind = kind, .socket = socket};
      if (present || name != RailName{.kind = liar, .socket = 1}) {
        all.push_back({.name = name, .meter = std::make_shared<PublishedPowerMeter>(SourceInfo{})});
        rails->add(name, std::make_unique<Shared>(all.back().meter));
      }
    }
  }
  const auto show = [all, liar, lie](const Truth& now) {
    for (const Rail& rail : all) {
      const auto socket = static_cast<std::size_t>(rail.name.socket);
      const double package = now.package_watts.at(socket);
      const double truth = rail.name.kind == RailKind::kCpu ? 0.8 * package
                           : rail.name.kind == RailKind::kSysIo
                               ? 0.2 * package
                               : package + now.dram_watts.at(socket);
      const bool lies = rail.name == RailName{.kind = liar, .socket = 1} && lie;
      if (const auto watts = lies ? lie(now.second, truth) : std::optional(truth)) {
        rail.meter->publish({.watts = *watts, .time = now.now});
      }
    }
  };
  return {.meters = SocketRails::meters(rails), .show = show};
}

/// A rail that has never told the truth counts until the load moves.
double most_of_rail(const std::string& name) {
  return name == "still always" ? 0.1 : 0.05;
}

TEST(LyingMeters, RailOfTheCoresOfAGrace) {
  expect_truth(power_lies(),
               {.part = true, .slow = true, .seen = kSeenByParts, .most = most_of_rail},
               [](const TruthPtr&, const PowerLie& lie, bool present) {
                 return grace_rails(RailKind::kCpu, lie, present);
               });
}

TEST(LyingMeters, RailOfAGrace) {
  expect_truth(power_lies(),
               {.part = true, .slow = true, .seen = kSeenByParts, .most = most_of_rail},
               [](const TruthPtr&, const PowerLie& lie, bool present) {
                 return grace_rails(RailKind::kGrace, lie, present);
               });
}

}  // namespace
}  // namespace ceems::exporter::energy
