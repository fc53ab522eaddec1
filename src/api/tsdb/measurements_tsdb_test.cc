#include "api/tsdb/measurements_tsdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using tsdb::FakeTransport;

/// An instant vector out of `labels value` pairs.
std::string measured_vector(const std::vector<std::pair<std::string, std::string>>& samples) {
  std::string result;
  for (const auto& [labels, value] : samples) {
    result += fmt::format(R"({}{{"metric":{{{}}},"value":[1,"{}"]}})", result.empty() ? "" : ",",
                          labels, value);
  }
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
}

std::string series_name(const std::string& name,
                        const std::string& host,
                        const std::string& more = "") {
  return fmt::format(R"("__name__":"{}","hostname":"{}","uuid":"4711"{})", name, host, more);
}

constexpr const char* kUnit = "ceems_compute_unit_";

struct MeasurementsFixture {
  explicit MeasurementsFixture(FakeTransport::Answer answer, const std::string& label = "") {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    auto client = std::make_unique<tsdb::Client>("http://t", std::move(owned), clock);
    ClusterTsdbs tsdbs;
    ClusterTsdb& tsdb = tsdbs["c1"];
    tsdb.client = std::move(client);
    tsdb.cluster_label = label;
    source = std::make_unique<TsdbMeasurementSource>(std::move(tsdbs));
  }
  std::vector<std::string> queries() const {
    std::vector<std::string> all;
    for (const auto& request : transport->requests()) {
      if (request.path.ends_with("/query")) {
        all.push_back(request.first("query"));
      }
    }
    return all;
  }
  testing::FakeClock clock;
  FakeTransport* transport = nullptr;
  std::unique_ptr<TsdbMeasurementSource> source;
};

Result<net::ClientResponse> two_nodes(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  if (request.path.ends_with("/config")) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"yaml":"global:\n  scrape_interval: 15s\n"}})");
  }
  const std::string unit = kUnit;
  const std::string gpu = R"(,"index":"0","gpuuuid":"GPU-1","gpuiid":"")";
  const std::string other = R"(,"index":"10","gpuuuid":"GPU-2","gpuiid":"")";
  if (query.starts_with("last_over_time")) {
    return FakeTransport::ok(measured_vector({
        {series_name(unit + "cpus", "n1"), "8"},
        {series_name(unit + "cpu_user_seconds_total", "n1"), "100"},
        {series_name(unit + "cpu_system_seconds_total", "n1"), "20"},
        {series_name(unit + "memory_peak_bytes", "n1"), "1000"},
        // Scraped twice: the larger value is the later one.
        {series_name(unit + "memory_peak_bytes", "n1", R"(,"instance":"x")"), "1500"},
        {series_name(unit + "memory_total_bytes", "n1"), "9.2e18"},
        {series_name(unit + "energy_joules_total", "n1", R"(,"domain":"node")"), "7200"},
        {series_name(unit + "idle_energy_joules_total", "n1", R"(,"domain":"gpu")"), "36"},
        {series_name(unit + "unused_idle_energy_joules_total", "n1", R"(,"domain":"gpu")"), "9"},
        {series_name(unit + "gpu_busy_seconds_total", "n1", other), "0"},
        {series_name(unit + "gpu_busy_seconds_total", "n1", gpu), "300"},
        {series_name(unit + "gpu_memory_peak_bytes", "n1", gpu), "5"},
        {series_name(unit + "cpus", "n2"), "8"},
        {series_name(unit + "idle_seconds_total", "n2"), "NaN"},
        {series_name("ceems_ebpf_read_bytes_total", "n2", R"(,"mountpoint":"/a")"), "10"},
        {series_name("ceems_ebpf_write_bytes_total", "n2", R"(,"mountpoint":"/a")"), "5"},
        {series_name("unexpected", "n3"), "5"},
    }));
  }
  if (query.starts_with("count_over_time")) {
    return FakeTransport::ok(measured_vector({{R"("hostname":"n1")", "40"},
                                              {R"("hostname":"n2")", "20"},
                                              {R"("hostname":"n1","of":"busy_threads")", "11.5"},
                                              {R"("hostname":"n1","of":"cpu_affinity_size")", "1"},
                                              {R"("hostname":"n2","of":"gpu_numa_far")", "2"},
                                              {R"("hostname":"n2","of":"busy_threads")", "NaN"},
                                              {R"("hostname":"n3","of":"busy_threads")", "5"}}));
  }
  if (query.starts_with("max_over_time")) {
    const bool memory = query.find("memory_peak_bytes") != std::string::npos;
    return FakeTransport::ok(measured_vector({{R"("hostname":"n1")", memory ? "1700" : "7.5"},
                                              {R"("hostname":"n2")", "NaN"},
                                              {R"("hostname":"n3")", "9999"}}));
  }
  if (query.starts_with("resets")) {
    return FakeTransport::ok(
        measured_vector({{R"("hostname":"n1")" + gpu, "0"}, {R"("hostname":"n1")" + other, "1"}}));
  }
  return FakeTransport::ok(
      measured_vector({{R"("__name__":"ceems_cpu_count","hostname":"n1")", "64"},
                       {R"("__name__":"ceems_meminfo_MemTotal_bytes","hostname":"n1")", "256"},
                       {R"("__name__":"ceems_gpu_memory_total_bytes","gpuuuid":"GPU-1")", "80"},
                       {R"("__name__":"ceems_energy_source_info","method":"measured")", "1"},
                       {R"("__name__":"ceems_energy_source_info","method":"modelled")", "1"}}));
}

TEST(TsdbMeasurements, AreTheLastValuesOfEachNode) {
  MeasurementsFixture f(two_nodes);
  const auto unit = f.source->measure(
      "c1",
      {.uuid = "4711", .started_ms = 1'000'000, .ended_ms = 1'600'000, .until_ms = 1'690'000});
  ASSERT_TRUE(unit) << unit.error().message;
  EXPECT_EQ(unit->method, "modelled");  // the weakest
  ASSERT_EQ(unit->nodes.size(), 2U);
  const NodeMeasurements& first = unit->nodes[0];
  EXPECT_EQ(first.node, "n1");
  EXPECT_EQ(first.cpus, 8);
  EXPECT_EQ(first.cpu_seconds, 120);
  EXPECT_EQ(first.mem_peak, 1500);
  EXPECT_EQ(first.mem_total, std::nullopt);  // no limit
  EXPECT_EQ(first.joules.at("node"), 7200);
  EXPECT_EQ(first.idle_joules.at("gpu"), 36);
  EXPECT_EQ(first.not_used_joules.at("gpu"), 9);
  EXPECT_EQ(first.node_cpus, 64);
  EXPECT_EQ(first.node_mem, 256);
  EXPECT_DOUBLE_EQ(first.covered_seconds, 600);
  ASSERT_EQ(first.gpus.size(), 2U);
  EXPECT_EQ(first.gpus[0].uuid, "GPU-1");
  EXPECT_EQ(first.gpus[0].busy_seconds, 300);
  EXPECT_EQ(first.gpus[0].mem_total, 80);
  EXPECT_EQ(first.gpus[1].index, "10");
  EXPECT_EQ(first.gpus[1].busy_seconds, std::nullopt);  // its counter began anew
  const NodeMeasurements& second = unit->nodes[1];
  EXPECT_EQ(second.cpu_seconds, std::nullopt);
  EXPECT_EQ(second.idle_seconds, std::nullopt);
  EXPECT_EQ(second.io_bytes, 15);
  EXPECT_EQ(second.node_cpus, std::nullopt);
  const auto queries = f.queries();
  ASSERT_EQ(queries.size(), 4U);
  EXPECT_THAT(queries[0], HasSubstr("uuid=\"4711\"}[600s])"));
  EXPECT_THAT(queries[0], HasSubstr("|fom)\",uuid=\"4711\"}[690s]))"));
  EXPECT_FALSE(unit->marked);
  EXPECT_EQ(queries[1],
            "count_over_time(ceems_compute_unit_cpus{uuid=\"4711\"}[690s])"
            " or label_replace(quantile_over_time(0.5, ceems_compute_unit_busy_threads"
            "{uuid=\"4711\"}[690s]), \"of\", \"busy_threads\", \"\", \"\")"
            " or label_replace(quantile_over_time(0.5, ceems_compute_unit_gpu_numa_far"
            "{uuid=\"4711\"}[690s]), \"of\", \"gpu_numa_far\", \"\", \"\")"
            " or label_replace(max_over_time(ceems_compute_unit_cpu_affinity_size"
            "{uuid=\"4711\"}[690s]), \"of\", \"cpu_affinity_size\", \"\", \"\")");
  EXPECT_EQ(first.busy_threads, 11.5);
  EXPECT_EQ(first.thread_cpus, 1);
  EXPECT_EQ(first.far_gpus, std::nullopt);
  EXPECT_EQ(second.far_gpus, 2);
  EXPECT_EQ(second.busy_threads, std::nullopt);
}

TEST(TsdbMeasurements, OfLongRunsLookAtSomeTimesOnly) {
  MeasurementsFixture f(two_nodes);
  constexpr std::int64_t kDays = std::int64_t{30} * 86'400'000;
  const auto unit = f.source->measure("c1", {.uuid = "4711",
                                             .started_ms = 1'000'000,
                                             .ended_ms = 1'000'000 + kDays,
                                             .until_ms = 1'000'000 + kDays});
  ASSERT_TRUE(unit) << unit.error().message;
  const auto queries = f.queries();
  ASSERT_EQ(queries.size(), 6U);
  EXPECT_THAT(queries[0], HasSubstr("}[600s])"));
  EXPECT_THAT(queries[1],
              ::testing::StartsWith(
                  "count_over_time(ceems_compute_unit_cpus{uuid=\"4711\"}[2592000s:1728s]) or "));
  EXPECT_THAT(queries[1], HasSubstr("busy_threads{uuid=\"4711\"}[2592000s:1728s])"));
  EXPECT_EQ(queries[2],
            "max_over_time(ceems_compute_unit_memory_peak_bytes{uuid=\"4711\"}[2592000s:1728s])");
  EXPECT_EQ(queries[3],
            "max_over_time(ceems_compute_unit_cpu_used_max{uuid=\"4711\"}[2592000s:1728s])");
  EXPECT_THAT(queries[4], HasSubstr("[2592000s:1728s])"));
  // The exporter was restarted since.
  EXPECT_EQ(unit->nodes[0].mem_peak, 1700);
  EXPECT_EQ(unit->nodes[0].cpu_used_max, 7.5);
  EXPECT_EQ(unit->nodes[1].mem_peak, std::nullopt);
  EXPECT_DOUBLE_EQ(unit->nodes[0].covered_seconds, 40.0 * 1728);
}

TEST(TsdbMeasurements, OfEarlierRunsAreOneQuery) {
  MeasurementsFixture f(
      [](const FakeTransport::Request& request) {
        if (!request.path.ends_with("/query")) {
          return FakeTransport::status(404, "");
        }
        return FakeTransport::ok(measured_vector({
            {R"("__name__":"ceems_compute_unit_memory_peak_bytes","uuid":"1","hostname":"a")",
             "10"},
            {R"("__name__":"ceems_compute_unit_memory_peak_bytes","uuid":"1","hostname":"b")",
             "30"},
            {R"("__name__":"ceems_compute_unit_cpu_used_max","uuid":"2")", "1.5"},
            {R"("__name__":"ceems_compute_unit_gpu_busy_seconds_total","uuid":"2","index":"0")",
             "7"},
            {R"("__name__":"ceems_compute_unit_gpu_busy_seconds_total","uuid":"2","index":"1")",
             "0"},
            {R"("__name__":"ceems_compute_unit_memory_peak_bytes","uuid":"3")", "99"},
        }));
      },
      "ceems_id");
  const auto runs = f.source->measure_runs(
      "c1", {{.uuid = "1", .started_ms = 1000, .ended_ms = 61'000, .until_ms = 61'000},
             {.uuid = "2", .started_ms = 1000, .ended_ms = 9'000'000, .until_ms = 9'000'000}});
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].mem_peak, 30);
  EXPECT_EQ((*runs)[0].cpu_used_max, std::nullopt);
  EXPECT_EQ((*runs)[1].mem_peak, std::nullopt);
  EXPECT_EQ((*runs)[1].cpu_used_max, 1.5);
  EXPECT_EQ((*runs)[1].gpu_busy_seconds, 7);
  EXPECT_EQ((*runs)[1].gpus, 2U);
  EXPECT_EQ((*runs)[1].gpus_unused, 1U);
  const auto queries = f.queries();
  ASSERT_EQ(queries.size(), 1U);
  EXPECT_THAT(queries[0], HasSubstr(R"(uuid="1",ceems_id="c1"}[60s] @ 61) or last_over_time()"));
  EXPECT_TRUE(f.source->measure_runs("c1", {})->empty());
}

TEST(TsdbMeasurements, OverTimeAreOneQuestionOfTheRun) {
  // Parts of an hour. The CPUs are known in the first and the last, the GPUs in the second.
  constexpr std::int64_t kStart = 1'000'000'000;
  constexpr std::int64_t kPart = 3'600'000;
  MeasurementsFixture f(
      [](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
        if (request.path.ends_with("/config")) {
          return two_nodes(request);
        }
        return FakeTransport::ok(
            R"({"status":"success","data":{"resultType":"matrix","result":[)"
            R"({"metric":{"of":"cpu"},"values":[[1003600,"0.25"],[1086400,"1"],[1090000,"1"]]},)"
            R"({"metric":{"of":"gpu"},"values":[[1007200,"0.5"],[1010800,"NaN"]]}]}})");
      },
      "ceems_id");
  const UnitRun run{.uuid = "47\"11",
                    .started_ms = kStart,
                    .ended_ms = kStart + 24 * kPart + 5,
                    .until_ms = kStart + 24 * kPart + 5};
  const auto strip = f.source->strip("c1", run);
  ASSERT_TRUE(strip) << strip.error().message;
  EXPECT_EQ(store::strip_text(*strip), "G......................_.W......................");
  const auto brief = f.source->strip(
      "c1", {.uuid = "1", .started_ms = kStart, .ended_ms = kStart + 299'999, .until_ms = 0});
  ASSERT_TRUE(brief);
  EXPECT_EQ(store::strip_text(*brief), "");
  std::vector<std::string> ranges;
  for (const auto& request : f.transport->requests()) {
    if (request.path.ends_with("/query_range")) {
      ranges.push_back(request.first("query"));
      EXPECT_EQ(request.first("start"), "1003600");
      EXPECT_EQ(request.first("end"), "1086400");
    }
  }
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_THAT(ranges[0], HasSubstr(R"({uuid="47\"11",ceems_id="c1"}[3600s:300s])"));
  EXPECT_THAT(ranges[0], HasSubstr("gpu_busy_seconds_total"));
  EXPECT_EQ(f.source->strip("c2", run).error().code, ErrorCode::kNotFound);
}

TEST(TsdbMeasurements, ReportWhatGoesWrong) {
  MeasurementsFixture f(
      [](const FakeTransport::Request& /*request*/) { return FakeTransport::status(500, "no"); });
  const UnitRun run{.uuid = "1", .started_ms = 0, .ended_ms = 9000, .until_ms = 9000};
  EXPECT_EQ(f.source->measure("c1", run).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(f.source->measure("c2", run).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(f.source->measure_runs("c2", {run}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::api
