// What the updater `tsdb` makes of the exporter's own counters, and of emission factors.
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/updater/fake_tsdb.h"
#include "ingest/updater/tsdb.h"
#include "ingest/updater/tsdb_test_support.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using model::MetricMap;
using tsdb::FakeTransport;

/// Adds one unit with 2 CPUs that used 450 of 1800 CPU-seconds and 3.6 MJ.
void add_counters(FakeTsdb& tsdb) {
  const std::map<std::string, std::string> labels{
      {"manager", "cgroup"}, {"hostname", "n1"}, {"uuid", "1"}};
  auto node = labels;
  node["domain"] = "node";
  const auto line = [](double rate) {
    std::vector<tsdb::Sample> samples;
    for (std::int64_t t = 0; t <= 900'000; t += 15'000) {
      samples.push_back({kNow + t, rate * static_cast<double>(t) / 900'000});
    }
    return samples;
  };
  tsdb.add("ceems_compute_unit_cpus", labels, {{kNow + 15'000, 2}});
  tsdb.add("ceems_compute_unit_cpu_user_seconds_total", labels, line(400));
  tsdb.add("ceems_compute_unit_cpu_system_seconds_total", labels, line(50));
  tsdb.add(
      "ceems_compute_unit_memory_used_bytes", labels,
      {{kNow + 15'000, 1e9}, {kNow + 300'000, 1e9}, {kNow + 600'000, 1e9}, {kNow + 900'000, 1e9}});
  tsdb.add("ceems_compute_unit_memory_total_bytes", labels, {{kNow + 15'000, 4e9}});
  tsdb.add("ceems_compute_unit_energy_joules_total", node, line(3.6e6));
}

TEST(TsdbUpdater, ComputesUsageEnergyAndEmissionsFromCountersWithoutRecordingRules) {
  FakeTsdb tsdb;
  add_counters(tsdb);
  TsdbUpdater updater(options_with("emission_factor: 100\n"), tsdb.client());
  EXPECT_EQ(updater.settle(), std::chrono::seconds(25));
  std::vector<model::Unit> units{counted_unit("1")};
  const auto done = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 25}}));
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuMemUsage), (MetricMap{{"global", 25}}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEnergyUsageKwh), (MetricMap{{"total", 1}}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEmissionsGms), (MetricMap{{"global_total", 100}}));
  EXPECT_EQ(units[0].total_time_seconds.at("used_cputime"), 450);
  EXPECT_EQ(units[0].metric(Metric::kTotalGpuEnergyUsageKwh), MetricMap{});
}

TEST(TsdbUpdater, TakesTheWorldAverageOfTheIeaWithoutAnyFactor) {
  FakeTsdb tsdb;
  add_counters(tsdb);
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEmissionsGms), (MetricMap{{"global_total", 445}}));
}

TEST(TsdbUpdater, TakesEmissionFactorsOfTheTsdbAndKeepsWhatRulesSay) {
  FakeTsdb tsdb;
  add_counters(tsdb);
  for (const auto& [provider, country, factor] : {std::tuple{"rte", "FR", 30.0},
                                                  {"owid", "FR", 50.0},
                                                  {"owid", "DE", 380.0},
                                                  {"global", "ZZ", 480.0}}) {
    std::vector<tsdb::Sample> samples;
    for (std::int64_t t = -300'000; t <= 900'000; t += 60'000) {
      samples.push_back({kNow + t, factor});
    }
    tsdb.add("ceems_emissions_gCo2_kWh", {{"provider", provider}, {"country_code", country}},
             samples);
  }
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (query.find("uuid:ceems_cpu_usage:ratio_irate") != std::string::npos) {
      return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "33"}})));
    }
    if (query.find("uuid:ceems_host_power_watts:pue") != std::string::npos) {
      return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "7"}, {"2", "9"}})));
    }
    if (query.find("provider=\"rte\"") != std::string::npos) {
      return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "77"}})));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("country_code: DE\n"), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1"), counted_unit("2")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  // Energy comes from our counters, everything else from the rules.
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 33}}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEnergyUsageKwh), (MetricMap{{"total", 1}}));
  const MetricMap& grams = units[0].metric(Metric::kTotalCpuEmissionsGms);
  EXPECT_EQ(grams.size(), 3U);
  EXPECT_EQ(grams.at("rte_total"), 77);
  EXPECT_DOUBLE_EQ(grams.at("owid_total"), 380);
  EXPECT_DOUBLE_EQ(grams.at("global_total"), 480);
  // Without counters the energy comes from the rules.
  EXPECT_EQ(units[1].metric(Metric::kTotalCpuEnergyUsageKwh), (MetricMap{{"total", 9}}));
  EXPECT_EQ(units[1].metric(Metric::kTotalCpuEmissionsGms),
            (MetricMap{{"owid_total", 9 * 380}, {"global_total", 9 * 480}}));
}

TEST(TsdbUpdater, EmissionsFollowTheFactorOfTheMoment) {
  FakeTsdb tsdb;
  add_counters(tsdb);
  std::vector<tsdb::Sample> samples;
  for (std::int64_t t = -300'000; t <= 900'000; t += 60'000) {
    samples.push_back({kNow + t, t < 300'000 ? 100.0 : 40.0});
  }
  tsdb.add("ceems_emissions_gCo2_kWh", {{"provider", "rte"}, {"country_code", "FR"}}, samples);
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  // 1 kWh in 60 samples, 19 of them before the factor changed (the one at 300 s has the new
  // factor).
  EXPECT_NEAR(units[0].metric(Metric::kTotalCpuEmissionsGms).at("rte_total"),
              (19 * 100.0 + 41 * 40.0) / 60, 1e-9);
}

TEST(TsdbUpdater, ARefusedQueryLeavesItsPlaceToTheCounters) {
  FakeTsdb tsdb;
  add_counters(tsdb);
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (request.first("query").find("ratio_irate") != std::string::npos) {
      return Result<net::ClientResponse>(FakeTransport::status(422, "no such function"));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->parts, ::testing::IsEmpty());
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 25}}));
}

TEST(TsdbUpdater, AGapOfTheCountersIsFilledLikeTheWindow) {
  const auto run = [](bool broken_first) {
    FakeTsdb tsdb;
    bool broken = broken_first;
    const std::map<std::string, std::string> labels{
        {"manager", "cgroup"}, {"hostname", "n1"}, {"uuid", "1"}};
    auto node = labels;
    node["domain"] = "node";
    tsdb.add("ceems_compute_unit_cpus", labels, {{kNow + 15'000, 2}});
    tsdb.add("ceems_compute_unit_cpu_user_seconds_total", labels, {{kNow + 15'000, 30}});
    tsdb.add("ceems_compute_unit_energy_joules_total", node, {{kNow + 15'000, 36}});
    tsdb.override_answer =
        [&broken](const auto& request) -> std::optional<Result<net::ClientResponse>> {
      if (broken && request.first("query").find("cpu_user_seconds") != std::string::npos) {
        return Result<net::ClientResponse>(FakeTransport::status(503, "busy"));
      }
      return std::nullopt;
    };
    TsdbUpdater updater(options_with("unit_counters: true\nqueries: {avg_gpu_usage: {x: up}}"),
                        tsdb.client());
    std::vector<model::Unit> units{counted_unit("1")};
    auto missing = updater.update({.window = kQuarter}, units, {});
    EXPECT_TRUE(missing);
    if (broken_first) {
      EXPECT_FALSE(units[0].total_time_seconds.contains("used_cputime"));
      EXPECT_EQ(units[0].metric(Metric::kTotalCpuEnergyUsageKwh), MetricMap{});
      EXPECT_FALSE(missing->parts.empty());
      broken = false;
      units[0].metrics = {};
      missing = updater.update({.window = kQuarter, .parts = missing->parts}, units, {});
      EXPECT_TRUE(missing && missing->parts.empty());
    }
    return units[0];
  };
  const model::Unit whole = run(false);
  const model::Unit filled = run(true);
  EXPECT_EQ(whole.total_time_seconds.at("used_cputime"), 30);
  EXPECT_EQ(filled.total_time_seconds, whole.total_time_seconds);
  EXPECT_EQ(filled.metrics, whole.metrics);
  EXPECT_EQ(whole.metric(Metric::kTotalCpuEnergyUsageKwh), (MetricMap{{"total", 1e-5}}));
}

}  // namespace
}  // namespace ceems::ingest
