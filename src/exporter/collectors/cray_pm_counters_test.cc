#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/energy/meter/lies_test_support.h"
#include "exporter/energy/meter/lying_node_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using std::chrono::seconds;

class CrayTest : public ::testing::Test {
 protected:
  CrayTest() : host_(dir_.path()) { dir_.write("sys/kernel/x", ""); }

  void write(const std::string& file, std::string_view text) {
    dir_.write("sys/cray/pm_counters/" + file, text);
  }
  std::unique_ptr<Collector> make() {
    return *create_collector(cray_pm_counters_collector(), host_.context);
  }

  testing::TempDir dir_;
  TestContext host_;
};

TEST_F(CrayTest, ExportsValuesAboveZero) {
  write("energy", "1360621494 J 1734094386309238 us\n");
  write("power", "544 W 1734094386309238 us\n");
  write("power_cap", "0 W\n");
  write("accel0_energy", "208970342 J 1734094386309238 us\n");
  write("accel0_power_cap", "560 W 1734094386309238 us\n");
  write("cpu0_temp", "48 C 1734094386460680 us\n");
  write("cpu0_power", "off\n");
  write("raw_scan_hz", "10\n");
  const auto cray = make();
  Result<> result;
  EXPECT_EQ(
      samples_of(*cray, &result),
      "ceems_cray_pm_counters_energy_joules{domain=\"accel0\",hostname=\"n1\"} 2.08970342e+08\n"
      "ceems_cray_pm_counters_energy_joules{domain=\"node\",hostname=\"n1\"} 1.360621494e+09\n"
      "ceems_cray_pm_counters_power_limit_watts{domain=\"accel0\",hostname=\"n1\"} 560\n"
      "ceems_cray_pm_counters_power_watts{domain=\"node\",hostname=\"n1\"} 544\n"
      "ceems_cray_pm_counters_temp_celsius{domain=\"cpu0\",hostname=\"n1\"} 48\n");
  EXPECT_TRUE(result);
}

TEST_F(CrayTest, ReturnsNoDataElsewhere) {
  const auto cray = make();
  Result<> result;
  EXPECT_EQ(samples_of(*cray, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  EXPECT_TRUE(cray->sources().meters.empty());
}

TEST_F(CrayTest, RefusesASysfsRootThatIsNotADirectory) {
  host_.context.paths.sys = dir_.path() / "absent";
  EXPECT_FALSE(create_collector(cray_pm_counters_collector(), host_.context));
}

TEST_F(CrayTest, MetersTheNodeAndShowsItsAge) {
  write("energy", "1000 J 5000000 us\n");
  const auto meters = make()->sources().meters;
  ASSERT_EQ(meters.size(), 1U);
  energy::EnergyMeter& meter = *meters.front();
  EXPECT_EQ(meter.source().name, "cray");
  EXPECT_EQ(meter.source().domain, energy::Domain::kNode);
  EXPECT_LT(meter.source().rank, energy::kIpmiRank);
  const auto read = [&] {
    return meter.read({.now = host_.clock.steady_now(), .utilisation = {}, .may_block = true});
  };
  EXPECT_EQ(read()->joules, 0);
  const auto start = host_.clock.steady_now();
  host_.clock.advance(seconds(1));
  write("energy", "1500 J 6000000 us\n");
  EXPECT_DOUBLE_EQ(read()->joules, 500);
  EXPECT_EQ(read()->fresh, start + seconds(1));
  host_.clock.advance(seconds(5));  // the controller is not available
  const auto held = read();
  EXPECT_EQ(held->joules, 0);
  EXPECT_EQ(held->fresh, start + seconds(1));
  write("energy", "2 J 7000000 us\n");  // the counter restarts
  EXPECT_EQ(read()->joules, 0);
  EXPECT_EQ(read()->fresh, start + seconds(6));
  for (int i = 0; i < 59; ++i) {  // not available for a minute, in which the node drew 1 kW
    host_.clock.advance(seconds(1));
    EXPECT_EQ(read()->joules, 0);
  }
  host_.clock.advance(seconds(1));
  write("energy", "60002 J 67000000 us\n");
  EXPECT_DOUBLE_EQ(read()->joules, 60'000);
  EXPECT_EQ(meter.rejected().value_or(energy::Rejected{}).steps, 0U);
  host_.clock.advance(seconds(1));
  write("energy", "260002 J 68000000 us\n");
  EXPECT_DOUBLE_EQ(read()->joules, 1'000);
  EXPECT_DOUBLE_EQ(meter.rejected().value_or(energy::Rejected{}).joules, 199'000);
  write("energy", "n/a\n");
  EXPECT_EQ(read().error().code, ErrorCode::kParse);
  write("energy", "0 J 7000000 us\n");
  EXPECT_EQ(read().error().code, ErrorCode::kUnavailable);
  write("energy", "18446744073709551615 J 7000000 us\n");
  EXPECT_EQ(read().error().code, ErrorCode::kUnavailable);
}

/// Every way to lie, as in energy/meter/lying_meters_test.cc. The controller's counter is in
/// joules, and its time stamp stands still with it.
class LyingCray : public CrayTest, public ::testing::WithParamInterface<bool> {
 protected:
  /// `packages`: the node has other meters, too.
  void expect_truth(bool packages) {
    energy::Demand demand;
    if (!packages) {
      demand.most = most_alone;
    }
    energy::expect_truth(
        energy::counter_lies(), demand,
        [&](const std::shared_ptr<const energy::Truth>& truth, const energy::CounterLie& lie,
            bool present) {
          energy::Instruments all;
          if (packages) {
            all.meters = energy::package_counters(truth);
          }
          if (present) {
            const auto show = [this, lie, last = std::string(),
                               stamp = std::uint64_t{0}](const energy::Truth& now) mutable {
              const std::string text = shown(now, lie);
              stamp = text == last ? stamp : stamp + 1 + static_cast<std::uint64_t>(now.second);
              last = text;
              write("energy", text + fmt::format(" {} us\n", stamp));
            };
            write("energy", "1000 J 1 us\n");
            all.meters.push_back(make()->sources().meters.at(0));
            all.show = show;
          }
          return all;
        });
  }

 private:
  /// Where nothing else measures the node, nothing shows that this is the counter of another part,
  /// and what a counter that restarts each ten seconds did not show is estimated by the CPUs' use.
  static double most_alone(const std::string& name) {
    return name == "shows another counter"    ? 1
           : name == "wraps at 32 bits"       ? 0.15
           : name.starts_with("every other ") ? 0.07
                                              : 0.05;
  }
  static std::string shown(const energy::Truth& now, const energy::CounterLie& lie) {
    const std::uint64_t truth = energy::microjoules(now.node_joules);
    const auto raw = lie ? lie(now.second, truth, energy::microjoules(now.package_joules[0]))
                         : std::optional(truth);
    if (!raw) {
      return "n/a J";
    }
    constexpr auto kMaxValue = std::numeric_limits<std::uint64_t>::max();
    const bool all_ones = *raw == kMaxValue || *raw == kMaxValue >> 1U || *raw == kMaxValue >> 32U;
    return fmt::format("{} J", all_ones ? *raw : *raw / 1'000'000);
  }
};

TEST_P(LyingCray, MovesNoEnergyOfAJob) {
  expect_truth(GetParam());
}
INSTANTIATE_TEST_SUITE_P(Nodes, LyingCray, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithPackages" : "Alone";
});

}  // namespace
}  // namespace ceems::exporter
