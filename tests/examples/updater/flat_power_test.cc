#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ingest/registration_test_support.h"
#include "ingest/updater/updater.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {

UpdaterSpec flat_power_updater();  // of an updater of the API server: its line in updater/all.h

namespace {

constexpr model::Metric kEnergy = model::Metric::kTotalCpuEnergyUsageKwh;

/// The updater as the configuration makes it.
Result<std::unique_ptr<Updater>> create(const std::string& extra_config) {
  const testing::FakeClock clock;
  UpdaterConfig config;
  config.extra = config::parse_yaml(extra_config, "c.yml").value();
  return create_updater(flat_power_updater(), config, clock);
}

TEST(FlatPower, ScalesReservedCpuTimeToEnergy) {
  std::vector<model::Unit> units(2);
  units[0].total_time_seconds = {{"alloc_cputime", 7200}, {"walltime", 1800}};  // 2 CPU-hours
  const auto updater = create("watts_per_cpu: 12.5").value();
  const auto missing = updater->update({.window = {.start_ms = 0, .end_ms = 1'800'000}}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_TRUE(missing->parts.empty());
  EXPECT_EQ(units[0].metric(kEnergy), (model::MetricMap{{"total", 0.025}}));
  EXPECT_TRUE(units[0].has_metric[static_cast<std::size_t>(kEnergy)]);
  EXPECT_FALSE(units[1].has_metric[static_cast<std::size_t>(kEnergy)]) << "its time is not known";
}

TEST(FlatPower, ReplacesTheEnergyOfUpdatersBeforeItAndNothingElse) {
  std::vector<model::Unit> units(1);
  units[0].total_time_seconds = {{"alloc_cputime", 3600}};
  units[0].metric(kEnergy) = {{"total", 5}, {"other", 1}};
  units[0].metric(model::Metric::kAvgCpuUsage) = {{"global", 40}};
  const auto updater = create("").value();
  ASSERT_TRUE(updater->update({}, units, {}));
  EXPECT_EQ(units[0].metric(kEnergy), (model::MetricMap{{"total", 0.01}}));
  EXPECT_EQ(units[0].metric(model::Metric::kAvgCpuUsage), (model::MetricMap{{"global", 40}}));
  EXPECT_TRUE(updater->gives(kEnergy));
  EXPECT_FALSE(updater->gives(model::Metric::kAvgCpuUsage));
}

TEST(FlatPower, RefusesPowersThatNoCpuHas) {
  for (const char* bad : {"-1", "10001"}) {
    EXPECT_EQ(create("watts_per_cpu: " + std::string(bad)).error().message,
              "c.yml:1: watts_per_cpu: expected watts from 0 to 10000")
        << bad;
  }
  EXPECT_EQ(create("wats_per_cpu: 1").error().message,
            "c.yml:1: wats_per_cpu: unknown key, did you mean 'watts_per_cpu'?");
}

// The API server's updaters are checked by src/ingest/updater/all_test.cc.
TEST(FlatPower, HasARowAndASectionInTheDocumentation) {
  expect_documented({.type = "UpdaterSpec",
                     .suffix = "updater",
                     .folder = "tests/examples/updater",
                     .page = "tests/examples/updater/updaters.md"},
                    flat_power_updater());
}

}  // namespace
}  // namespace ceems::ingest
