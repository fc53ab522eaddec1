#include "exporter/collectors/amd_hsmp.h"

#include <linux/capability.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "exporter/hsmp/fake_hsmp.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AmdHsmp : public ::testing::Test {
 protected:
  AmdHsmp() {
    options_.open = [this]() -> Result<std::unique_ptr<hsmp::Port>> {
      if (missing_) {
        return fail(ErrorCode::kNotFound, "no device /dev/hsmp (load the module amd_hsmp)");
      }
      return units_.port();
    };
    options_.patience = testing::kPatience;
    options_.fresh_enough = std::chrono::milliseconds(0);
    units_.set(0, 0x04, {182'500});
    units_.set(0, 0x06, {280'000});
    units_.set(0, 0x07, {400'000});
    units_.set(0, 0x0f, {1800, 2400});
    units_.set(0, 0x10, {3700});
    units_.set(0, 0x11, {0});
    units_.set(0, 0x14, {460U << 20U | 123U << 8U | 27U});
    units_.set(1, 0x04, {90'000});
  }
  std::unique_ptr<Collector> start() {
    auto collector = make_amd_hsmp_collector(host_.context, options_);
    start_and_wait(*collector);
    return collector;
  }

  testing::TempDir root_;
  TestContext host_{root_.path()};
  hsmp::FakeHsmp units_;
  AmdHsmpOptions options_;
  bool missing_ = false;
};

TEST_F(AmdHsmp, ExportsWhatEachSocketReports) {
  const auto collector = start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result),
            "ceems_amd_hsmp_c0_residency_percent{hostname=\"n1\",socket=\"0\"} 0\n"
            "ceems_amd_hsmp_cclk_limit_mhz{hostname=\"n1\",socket=\"0\"} 3700\n"
            "ceems_amd_hsmp_ddr_max_bw_gbps{hostname=\"n1\",socket=\"0\"} 460\n"
            "ceems_amd_hsmp_ddr_utilized_bw_gbps{hostname=\"n1\",socket=\"0\"} 123\n"
            "ceems_amd_hsmp_fclk_mhz{hostname=\"n1\",socket=\"0\"} 1800\n"
            "ceems_amd_hsmp_mclk_mhz{hostname=\"n1\",socket=\"0\"} 2400\n"
            "ceems_amd_hsmp_power_cap_max_watts{hostname=\"n1\",socket=\"0\"} 400\n"
            "ceems_amd_hsmp_power_cap_watts{hostname=\"n1\",socket=\"0\"} 280\n"
            "ceems_amd_hsmp_power_watts{hostname=\"n1\",socket=\"0\"} 182.5\n"
            "ceems_amd_hsmp_power_watts{hostname=\"n1\",socket=\"1\"} 90\n");
  EXPECT_TRUE(result);
  EXPECT_THAT(collector->capabilities(), ElementsAre(CAP_DAC_READ_SEARCH));
  ASSERT_EQ(collector->source_ages().size(), 1U);
  EXPECT_EQ(collector->source_ages()[0].source, "hsmp");
}

TEST_F(AmdHsmp, StartsWithoutTheDeviceAndUsesItWhenItAppears) {
  missing_ = true;
  const auto collector = start();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  EXPECT_THAT(result.error().message, HasSubstr("load the module amd_hsmp"));
  missing_ = false;
  EXPECT_THAT(samples_of(*collector, &result), HasSubstr("power_watts"));
  EXPECT_TRUE(result);
}

TEST_F(AmdHsmp, ServesTheLastValuesForFiveMinutes) {
  const auto collector = start();
  const std::string page = samples_of(*collector);
  units_.set_failing(true);
  host_.clock.advance(std::chrono::minutes(5));
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), page);
  EXPECT_TRUE(result);
  host_.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(samples_of(*collector, &result), "");
  EXPECT_FALSE(result);
}

TEST_F(AmdHsmp, IsOffByDefault) {
  const CollectorSpec spec = amd_hsmp_collector();
  EXPECT_FALSE(spec.enabled_by_default);
  EXPECT_FALSE(spec.enabled_when);
}

}  // namespace
}  // namespace ceems::exporter
