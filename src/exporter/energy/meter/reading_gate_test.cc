#include "exporter/energy/meter/reading_gate.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

/// A meter whose readings a test makes itself.
class NamedMeter final : public EnergyMeter {
 public:
  explicit NamedMeter(SourceInfo info) : info_(std::move(info)) {}
  [[nodiscard]] const SourceInfo& source() const override { return info_; }
  Result<Reading> read(const MeterContext&) override { return Reading{}; }

 private:
  SourceInfo info_;
};

class ReadingGateTest : public ::testing::Test {
 protected:
  ReadingGateTest() {
    for (const int socket : {0, 1}) {
      add({.name = "package-" + std::to_string(socket),
           .domain = Domain::kPackage,
           .socket = socket});
    }
    add({.name = "psys", .domain = Domain::kNode, .rank = kPsysRank});
    raw_.assign(3, 1'000'000'000);
  }
  void add(SourceInfo info) { meters_.push_back(std::make_shared<NamedMeter>(std::move(info))); }
  ReadingGate& gate() {
    if (!gate_) {
      gate_ = std::make_unique<ReadingGate>(meters_,
                                            NodeLimits{.idle_watts = 200, .full_watts = 1'000});
    }
    return *gate_;
  }

  /// One second in which the counters move by `joules`; nothing: no value.
  void step(const std::vector<std::optional<double>>& joules) {
    readings_.assign(joules.size(), std::nullopt);
    raw_.resize(joules.size(), 1'000'000'000);
    now_ += seconds(1);
    for (std::size_t i = 0; i < joules.size(); ++i) {
      if (joules[i]) {
        const bool elsewhere = i == 0 && elsewhere_;
        raw_[i] += static_cast<std::uint64_t>(*joules[i] * 1e6);
        readings_[i] = Reading{.joules = *joules[i],
                               .fresh = now_,
                               .idle_watts = {},
                               .watts = {},
                               .raw_uj = raw_[i],
                               .elsewhere = elsewhere};
      }
    }
    gate().judge(
        {.time = now_, .utilisation = utilisation_, .sockets = sockets_, .readings = readings_});
  }
  [[nodiscard]] double joules(std::size_t i) const {
    return readings_[i] ? readings_[i]->joules : -1;
  }
  [[nodiscard]] bool derived(std::size_t i) const {
    return readings_[i] && readings_[i]->method == Method::kDerived;
  }

  Meters meters_;
  std::unique_ptr<ReadingGate> gate_;
  Clock::SteadyTime now_{seconds(1'000)};
  std::optional<double> utilisation_ = 0.5;
  std::array<SocketUse, 2> sockets_{{{.cpus = 16, .busy = 4, .cores = 4, .cores_max = 16},
                                     {.cpus = 16, .busy = 12, .cores = 12, .cores_max = 16}}};
  bool elsewhere_ = false;  // Reading::elsewhere of the first package
  std::vector<std::uint64_t> raw_;
  std::vector<std::optional<Reading>> readings_;
};

TEST_F(ReadingGateTest, AnEstimateOfWhatCountsElsewhereCountsThereToo) {
  for (int i = 0; i < 120; ++i) {
    step({100, 250, 500});
  }
  elsewhere_ = true;
  step({100, 250, 500});
  EXPECT_TRUE(readings_[0]->elsewhere);
  for (int i = 0; i < 20; ++i) {
    step({0, 250, 500});
  }
  EXPECT_TRUE(derived(0));
  EXPECT_TRUE(readings_[0]->elsewhere);
  for (int i = 0; i < 60; ++i) {
    step({std::nullopt, 250, 500});
  }
  EXPECT_TRUE(derived(0)) << "it cannot be read any more";
  EXPECT_TRUE(readings_[0]->elsewhere);
  // Psys is above 0.8 of what counts (250 W), and below 0.8 of all packages.
  for (int i = 0; i < 200; ++i) {
    step({100, 250, 260});
  }
  EXPECT_FALSE(derived(2));
  EXPECT_EQ(joules(2), 260);
}

TEST_F(ReadingGateTest, LeavesGoodReadingsAlone) {
  for (int i = 0; i < 1'000; ++i) {
    step({100, 200.5, 400});
    ASSERT_EQ(joules(0), 100);
    ASSERT_EQ(joules(1), 200.5);
    ASSERT_EQ(joules(2), 400);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gate().source(i).doubt(), std::nullopt);
    EXPECT_EQ(readings_[i]->method, Method::kMeasured);
  }
}

TEST_F(ReadingGateTest, EstimatesAPackageThatNeverMovedByTheOther) {
  for (int i = 0; i < 60; ++i) {
    step({100, 0, 400});
  }
  EXPECT_EQ(gate().source(1).doubt(), Doubt::kFrozen);
  ASSERT_TRUE(derived(1));
  // 100 W at a quarter of the other socket; three quarters by the slope of the model.
  EXPECT_NEAR(joules(1), 100 + 0.5 * 0.65 * 800 / 2, 1e-6);
  EXPECT_FALSE(derived(0));
}

TEST_F(ReadingGateTest, EstimatesAPackageThatStopsByItsOwnPast) {
  for (int i = 0; i < 100; ++i) {
    step({100, 200, 400});
  }
  for (int i = 0; i < 4; ++i) {
    step({100, 0, 400});
    EXPECT_NEAR(joules(1), 200, 1e-6);  // it may be late
    EXPECT_FALSE(derived(1));
  }
  const auto last = readings_[1]->fresh;
  for (int i = 0; i < 60; ++i) {
    step({100, 0, 400});
    EXPECT_NEAR(joules(1), 200, 1e-6);
  }
  EXPECT_TRUE(derived(1));
  EXPECT_EQ(readings_[1]->fresh, last);  // its age grows
  EXPECT_EQ(gate().source(1).excluded(Doubt::kFrozen), 60U);
  for (int i = 0; i < 9; ++i) {  // it has to move for a while
    step({100, 210, 400});
    EXPECT_TRUE(derived(1));
  }
  step({100, 210, 400});
  EXPECT_FALSE(derived(1));
  EXPECT_EQ(joules(1), 210);
}

TEST_F(ReadingGateTest, TakesBackWhatACounterShowsLate) {
  double sum = 0;
  for (int i = 0; i < 400; ++i) {  // it is updated every other second
    step({100, i % 2 == 0 ? 0 : 400, 400});
    sum += i >= 200 ? joules(1) : 0;
  }
  EXPECT_NEAR(sum, 200 * 200, 800);
  EXPECT_EQ(gate().source(1).doubt(), std::nullopt);
}

TEST_F(ReadingGateTest, SaysThatAllStandStill) {
  for (int i = 0; i < 10; ++i) {
    step({0, 0, 0});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(gate().source(i).doubt(), Doubt::kFrozen);
    EXPECT_FALSE(readings_[i].has_value());  // the model counts
  }
}

TEST_F(ReadingGateTest, DoesNotCallASleepingNodeFrozen) {
  utilisation_ = 0;
  for (int i = 0; i < 100; ++i) {
    step({0, 0, 0});
  }
  EXPECT_EQ(gate().source(0).doubt(), std::nullopt);
  EXPECT_TRUE(readings_[0].has_value());
}

TEST_F(ReadingGateTest, DoesNotDependOnAPlatformThatNeverMoved) {
  step({0, 0, 0});
  EXPECT_TRUE(readings_[2].has_value());  // the first value is always 0
  step({100, 200, 0});
  EXPECT_FALSE(readings_[2].has_value());
  step({100, 200, 400});
  EXPECT_EQ(joules(2), 400);
}

TEST_F(ReadingGateTest, LeavesOutAPlatformBelowItsPackages) {
  for (int i = 0; i < 400; ++i) {
    step({100, 200, 100});
  }
  EXPECT_EQ(gate().source(2).doubt(), Doubt::kTooLow);
  EXPECT_FALSE(readings_[2].has_value());
}

TEST_F(ReadingGateTest, EstimatesThePlatformByItsParts) {
  for (int i = 0; i < 100; ++i) {
    step({100, 200, 400});
  }
  for (int i = 0; i < 20; ++i) {
    step({100, 200, 0});
  }
  EXPECT_NEAR(joules(2), 400, 1e-3);
  EXPECT_TRUE(derived(2));
  step({100, 250, 0});
  EXPECT_NEAR(joules(2), 400 + 50 * 1.1, 1);
}

TEST_F(ReadingGateTest, CountsDiesThatMirrorEachOtherOnce) {
  add({.name = "package-0-die-1", .domain = Domain::kPackage, .socket = 0});
  double sum = 0;
  for (int i = 0; i < 20; ++i) {
    const double watts = 100 + i % 3;
    step({watts, 200, 400, watts});
    sum = joules(0) + joules(3);
  }
  EXPECT_EQ(sum, 101);
  EXPECT_EQ(gate().source(3).doubt(), Doubt::kMirrored);
  for (int i = 0; i < 3; ++i) {
    step({100, 200, 400, 120});
  }
  EXPECT_EQ(joules(3), 120);  // it is another one
}

TEST_F(ReadingGateTest, TellsSocketsOfEqualPowerApart) {
  for (int i = 0; i < 600; ++i) {
    raw_[1] += i == 0 ? 5'000'000 : 0;
    step({100, 100, 400});
    ASSERT_EQ(joules(1), 100);
  }
}

TEST_F(ReadingGateTest, EstimatesASocketThatShowsTheOther) {
  for (int i = 0; i < 100; ++i) {
    step({100, 100, 400});  // and the same value
  }
  EXPECT_EQ(gate().source(1).doubt(), Doubt::kMirrored);
  ASSERT_TRUE(derived(1));
  EXPECT_NEAR(joules(1), 100 + 0.5 * 0.65 * 800 / 2, 1e-6);
}

TEST_F(ReadingGateTest, EstimatesAPackageThatCannotBeRead) {
  for (int i = 0; i < 40; ++i) {
    step({100, std::nullopt, 400});
  }
  EXPECT_EQ(gate().source(1).doubt(), Doubt::kUnreadable);
  EXPECT_TRUE(derived(1));
}

TEST(NodeLimits, KnowsAcceleratorsOnTheBus) {
  const testing::TempDir dir;
  dir.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  dir.write("sys/bus/pci/devices/0000:02:00.0/class", "0x120000\n");
  dir.write("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");  // that of the BMC
  dir.write("sys/bus/pci/devices/0000:04:00.0/class", "no class\n");
  const NodeLimits limits =
      node_limits({}, {dir.path() / "proc", dir.path() / "sys", dir.path() / "cgroup"});
  EXPECT_EQ(limits.accelerators, 2);
  EXPECT_EQ(limits.full_watts, 0);
  EXPECT_EQ(most_node_watts(limits), kMaxNodeWatts);
  EXPECT_EQ(most_node_watts({.full_watts = 500}), 2'000);
  EXPECT_EQ(most_node_watts({.full_watts = 500, .accelerators = 8}), 14'000);
  EXPECT_EQ(most_node_watts({.full_watts = 10}), 1'000);
}

}  // namespace
}  // namespace ceems::exporter::energy
