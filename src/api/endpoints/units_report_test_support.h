#pragma once

// The fixture of the tests of reports.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/report/measurements.h"
#include "api/server_test_support.h"

namespace ceems::api {

namespace json = boost::json;

inline constexpr double kGiB = 1024.0 * 1024 * 1024;
inline constexpr std::int64_t kRun = 2 * kHour;

/// A TSDB with what the tests put there.
class FakeMeasurements final : public MeasurementSource {
 public:
  Result<UnitMeasurements> measure(const std::string& cluster_id, const UnitRun& run) override {
    asked.push_back(fmt::format("{} {} {} {} {}", cluster_id, run.uuid, run.started_ms - kNow,
                                run.ended_ms - kNow, run.until_ms - kNow));
    return failure ? Result<UnitMeasurements>(fail(*failure)) : unit;
  }
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& /*cluster_id*/,
                                                    const std::vector<UnitRun>& runs) override {
    earlier_asked += runs.size();
    if (failure) {
      return fail(*failure);
    }
    return std::vector<RunMeasurements>(runs.size(), {.mem_peak = earlier_peak});
  }
  Result<std::vector<UnitMarks>> marks(const std::string& /*cluster_id*/,
                                       const std::vector<UnitRun>& runs) override {
    for (const UnitRun& run : runs) {
      marks_asked.push_back(fmt::format("{} {} {} {}", run.uuid, run.started_ms - kNow,
                                        run.ended_ms - kNow, run.until_ms - kNow));
    }
    return marks_failure ? Result<std::vector<UnitMarks>>(fail(*marks_failure))
                         : std::vector<UnitMarks>(runs.size(), marked);
  }
  UnitMeasurements unit;
  UnitMarks marked;
  std::optional<Error> marks_failure;
  std::vector<std::string> marks_asked;
  Number earlier_peak = 2.0 * kGiB;
  std::optional<Error> failure;
  std::vector<std::string> asked;
  std::size_t earlier_asked = 0;
};

/// A run of two hours on one node that used 2 of its 32 GiB.
inline model::Unit wide_job(const std::string& uuid, std::int64_t end_ms) {
  model::Unit unit = job(uuid, "ada", "fluids");
  unit.name = "relax-" + uuid;
  unit.started_at_ts = end_ms - kRun;
  unit.started_at = "start " + uuid;
  unit.ended_at_ts = end_ms;
  unit.ended_at = "end " + uuid;
  unit.allocation = fmt::format(
      R"({{"cpus":4,"gpus":0,"nodes":1,"mem":34359738368,"time_limit":86400,"req_cpus":4,)"
      R"("eligible":{}}})",
      unit.started_at_ts - 90'000);
  unit.tags = R"({"partition":"cpu","qos":"normal"})";
  unit.total_time_seconds = {{"walltime", 7200}, {"alloc_cputime", 28800}};
  unit.metric(model::Metric::kAvgCpuUsage) = {{"global", 95.5}};
  unit.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"total", 0.5}};
  unit.metric(model::Metric::kTotalCpuEmissionsGms) = {{"owid_total", 25}, {"rte_total", 20.04}};
  unit.has_metric[0] = unit.has_metric[2] = unit.has_metric[3] = true;
  return unit;
}

inline NodeMeasurements node(const std::string& name) {
  return {.node = name,
          .cpus = 4,
          .cpu_seconds = 27504,
          .cpu_used_max = 4,
          .mem_peak = 2 * kGiB,
          .idle_seconds = 0,
          .joules = {{"node", 1.8e6}, {"package", 1.08e6}, {"dram", 0.36e6}},
          .idle_joules = {{"node", 0.36e6}},
          .node_cpus = 64,
          .node_mem = 256 * kGiB,
          .covered_seconds = 7200};
}

class Reports : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    for (int i = 0; i < 6; ++i) {
      update.units.push_back(wide_job(std::to_string(100 + i), kNow - (6 - i) * store::kMinute));
    }
    write(update);
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow + kHour)));
    measurements_.unit = {.nodes = {node("n1")}, .method = "measured"};
    ApiOptions options;
    options.measurements = &measurements_;
    options.roles.support = {"sue"};
    options.site.help_url = "help@example.org";
    make(std::move(options));
  }
  json::object report_of(const std::string& target, const std::string& user) {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.status == 200
               ? json::parse(response.body).at("data").as_array().at(0).as_object()
               : json::object();
  }
  FakeMeasurements measurements_;
};

inline constexpr const char* kLast = "units/report?cluster_id=hpc-a&uuid=105";
}  // namespace ceems::api
