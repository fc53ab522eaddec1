#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
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

}  // namespace
}  // namespace ceems::exporter
