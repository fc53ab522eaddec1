#include "ingest/updater/tsdb.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/updater/fake_tsdb.h"
#include "ingest/updater/tsdb_test_support.h"
#include "testing/eventually.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using model::MetricMap;
using ::testing::HasSubstr;
using tsdb::FakeTransport;

TEST(TsdbUpdater, PutsAnswersIntoUnitsAndMakesNumbersOfNonsense) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (request.first("query").starts_with("cpu")) {
      EXPECT_EQ(request.first("time"), "1767226499.999");
      EXPECT_EQ(request.first("lookback_delta"), "15s");
      EXPECT_EQ(request.first("query"), R"(cpu{uuid=~"1|2|3|4"}[15m0s])");
      return Result<net::ClientResponse>(
          FakeTransport::ok(vector({{"1", "50.5"}, {"2", "NaN"}, {"3", "-1"}, {"9", "7"}})));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(
      options_with("queries: {avg_cpu_usage: {global: 'cpu{uuid=~\"{{.UUIDs}}\"}[{{.Range}}]'}}"),
      tsdb.client());
  std::vector<model::Unit> units{counted_unit("4"), counted_unit("1"), counted_unit("2"),
                                 counted_unit("3"), counted_unit("")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), MetricMap{});
  EXPECT_TRUE(units[0].has_metric[0]);
  EXPECT_EQ(units[1].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 50.5}}));
  EXPECT_EQ(units[2].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 0}}));
  EXPECT_EQ(units[3].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 0}}));
  EXPECT_FALSE(units[4].has_metric[0]);
  EXPECT_FALSE(units[0].has_metric[1]);
}

TEST(TsdbUpdater, LeavesOutWhatNoUnitCanHave) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (query.starts_with("kwh") || query.starts_with("bytes")) {
      return Result<net::ClientResponse>(
          FakeTransport::ok(vector({{"1", "5e7"}, {"2", "1e9"}, {"3", "1e308"}})));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("queries: {total_cpu_energy_usage_kwh: {total: "
                                   "'kwh{uuid=~\"{{.UUIDs}}\"}[{{.Range}}]'}, "
                                   "total_io_write_stats: {bytes_total: "
                                   "'bytes{uuid=~\"{{.UUIDs}}\"}[{{.Range}}]'}}"),
                      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1"), counted_unit("2"), counted_unit("3")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  const auto kwh = [&](std::size_t i) {
    return units[i].metric(Metric::kTotalCpuEnergyUsageKwh).at("total");
  };
  EXPECT_EQ(kwh(0), 5e7);
  EXPECT_EQ(kwh(1), 0) << "no unit uses so much in a quarter of an hour";
  EXPECT_EQ(kwh(2), 0);
  EXPECT_EQ(units[1].metric(Metric::kTotalIoWriteStats).at("bytes_total"), 1e9);
  EXPECT_EQ(units[2].metric(Metric::kTotalIoWriteStats).at("bytes_total"), 0);
}

/// A TSDB with the counters of a job whose node has so many GPUs, each busy for a quarter of the
/// time.
void add_tsdb_job(FakeTsdb& tsdb, int gpus) {
  std::map<std::string, std::string> labels{
      {"uuid", "42"}, {"hostname", "n1"}, {"manager", "slurm"}, {"domain", "node"}};
  const auto rising = [](double per_second) {
    std::vector<tsdb::Sample> samples;
    for (std::int64_t t = 0; t <= 1200; t += 15) {
      samples.push_back({kNow + t * 1000, per_second * static_cast<double>(t)});
    }
    return samples;
  };
  tsdb.add("ceems_compute_unit_energy_joules_total", labels, rising(400));
  tsdb.add("ceems_compute_unit_idle_energy_joules_total", labels, rising(100));
  tsdb.add("ceems_compute_unit_unused_idle_energy_joules_total", labels, rising(25));
  labels.erase("domain");
  tsdb.add("ceems_compute_unit_memory_peak_bytes", labels, rising(1e6));
  for (int i = 0; i < gpus; ++i) {
    labels["gpuuuid"] = fmt::format("GPU-{}", i);
    tsdb.add("ceems_compute_unit_gpu_busy_seconds_total", labels, rising(0.25));
  }
  tsdb.now_ms = kNow + 1'200'000;
}

model::Unit job_with_gpus(double gpus) {
  model::Unit job = counted_unit("42", -3'600'000);
  job.total_time_seconds["alloc_gputime"] = gpus * 900;
  return job;
}

TEST(TsdbUpdater, SetsPeakMemoryIdleGpuTimeAndIdleEnergy) {
  FakeTsdb tsdb;
  add_tsdb_job(tsdb, 4);
  TsdbUpdater updater(options_with("unit_counters: true\nqueries: {}\n"), tsdb.client());
  std::vector<model::Unit> units{job_with_gpus(4), counted_unit("43")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_NEAR(units[0].gpu_idle_share.value_or(-1), 0.75, 1e-9);
  EXPECT_NEAR(units[0].idle_kwh.value_or(-1), 100 * 900 / 3.6e6, 1e-9);
  EXPECT_NEAR(units[0].not_used_kwh.value_or(-1), 25 * 900 / 3.6e6, 1e-9);
  EXPECT_GE(units[0].peak_memory_bytes.value_or(-1), 900e6);
  EXPECT_EQ(units[1].gpu_idle_share, std::nullopt);
  EXPECT_EQ(units[1].idle_kwh, std::nullopt);
  EXPECT_EQ(units[1].not_used_kwh, std::nullopt);
  EXPECT_EQ(units[1].peak_memory_bytes, std::nullopt);
}

TEST(TsdbUpdater, KnowsNoIdleGpuTimeWhereGpusAreMissing) {
  FakeTsdb tsdb;
  add_tsdb_job(tsdb, 3);
  TsdbUpdater updater(options_with("unit_counters: true\nqueries: {}\n"), tsdb.client());
  std::vector<model::Unit> units{job_with_gpus(4)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(units[0].gpu_idle_share, std::nullopt) << "nobody watched the fourth one";
  EXPECT_TRUE(units[0].idle_kwh);
  units = {job_with_gpus(0)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(units[0].gpu_idle_share, std::nullopt);
}

TEST(TsdbUpdater, CountsIdleEnergyOnceWhenAnotherPartIsFilledIn) {
  FakeTsdb tsdb;
  add_tsdb_job(tsdb, 4);
  TsdbUpdater updater(options_with("unit_counters: true\nqueries: {}\n"), tsdb.client());
  std::vector<model::Unit> units{job_with_gpus(4)};
  ASSERT_TRUE(updater.update(
      {.window = kQuarter, .parts = {"total_cpu_emissions_gms.global_total"}}, units, {}));
  EXPECT_EQ(units[0].idle_kwh, std::nullopt);
  EXPECT_EQ(units[0].not_used_kwh, std::nullopt);
  units = {job_with_gpus(4)};
  ASSERT_TRUE(
      updater.update({.window = kQuarter,
                      .parts = {"total_cpu_energy_usage_kwh.*", "total_time_seconds.used_cputime"}},
                     units, {}));
  EXPECT_TRUE(units[0].idle_kwh);
}

TEST(TsdbUpdater, AsksNothingWithoutUnitsOrInAWindowShorterThanTheRateInterval) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: up}}"), tsdb.client());
  std::vector<model::Unit> units{counted_unit("")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  units = {counted_unit("1")};
  ASSERT_TRUE(updater.update({.window = {.start_ms = kNow, .end_ms = kNow + 59'000}}, units, {}));
  EXPECT_TRUE(tsdb.queries_asked().empty());
  ASSERT_TRUE(updater.update({.window = {.start_ms = kNow, .end_ms = kNow + 60'000}}, units, {}));
  EXPECT_EQ(tsdb.queries_asked(), std::vector<std::string>{"up"});
}

TEST(TsdbUpdater, TellsWhatIsMissingAndWhetherItMayCome) {
  struct Case {
    int status;
    const char* body;
    bool lasting;
  };
  for (
      const auto& c :
      {Case{503, "busy", false}, Case{200, "<html>", false},
       Case{
           200,
           R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}})",
           false},
       Case{200, R"({"status":"success","data":{"resultType":"scalar","result":[1,"1"]}})", false},
       Case{
           200,
           R"({"status":"success","data":{"resultType":"vector","result":[]},"warnings":["store down"]})",
           false},
       Case{200,
            R"({"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}})",
            false},
       Case{401, "", false},
       Case{400, R"({"status":"error","errorType":"bad_data","error":"x"})", true},
       Case{422, R"({"status":"error","errorType":"execution","error":"many-to-many"})", true}}) {
    FakeTsdb tsdb;
    tsdb.override_answer = [&c](const auto& request) -> std::optional<Result<net::ClientResponse>> {
      if (request.first("query") == "bad") {
        return Result<net::ClientResponse>(FakeTransport::status(c.status, c.body));
      }
      if (request.first("query") == "good") {
        return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "2"}})));
      }
      return std::nullopt;
    };
    TsdbUpdater updater(
        options_with("queries: {avg_cpu_usage: {global: bad}, avg_gpu_usage: {global: good}}"),
        tsdb.client());
    std::vector<model::Unit> units{counted_unit("1")};
    const auto missing = updater.update({.window = kQuarter}, units, {});
    ASSERT_TRUE(missing) << missing.error().message;
    EXPECT_EQ(missing->parts, std::vector<std::string>{"avg_cpu_usage.global"}) << c.body;
    EXPECT_EQ(missing->lasting, c.lasting) << c.body;
    EXPECT_THAT(missing->cause.message, HasSubstr("query avg_cpu_usage.global: ")) << c.body;
    EXPECT_FALSE(units[0].has_metric[0]);
    EXPECT_EQ(units[0].metric(Metric::kAvgGpuUsage), (MetricMap{{"global", 2}}));
  }
}

TEST(TsdbUpdater, CustomMetricsComeFromTheirQueries) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (!request.path.ends_with("/query")) {
      return std::nullopt;
    }
    const std::map<std::string, std::string> values{
        {"total(1)", "5"}, {"avg(1)", "2.5"}, {"min(1)", "NaN"}, {"max(1)", "-3"}};
    return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", values.at(query)}})));
  };
  TsdbUpdater updater(options_with("queries:\n"
                                   "  total_custom_stats: {misses: 'total({{.UUIDs}})'}\n"
                                   "  avg_custom_stats: {sm: 'avg({{.UUIDs}})'}\n"
                                   "  min_custom_stats: {temp: 'min({{.UUIDs}})'}\n"
                                   "  max_custom_stats: {temp: 'max({{.UUIDs}})'}\n"),
                      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(missing) << missing.error().message;
  EXPECT_TRUE(missing->parts.empty());
  EXPECT_EQ(units[0].metric(Metric::kTotalCustomStats), (MetricMap{{"misses", 5}}));
  EXPECT_EQ(units[0].metric(Metric::kAvgCustomStats), (MetricMap{{"sm", 2.5}}));
  // 0 would stay the least value for ever.
  EXPECT_EQ(units[0].metric(Metric::kMinCustomStats), MetricMap{});
  EXPECT_EQ(units[0].metric(Metric::kMaxCustomStats), (MetricMap{{"temp", 0}}));
}

TEST(TsdbUpdater, IntervalsOfTheConfigurationReplaceThoseOfTheTsdb) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("scrape_interval: 30s\nevaluation_interval: 45s\n"
                                   "queries: {avg_cpu_usage: {global: 'x[{{.ScrapeInterval}}] "
                                   "{{.EvaluationIntervalMilli}} {{.RateInterval}}'}}\n"),
                      tsdb.client());
  EXPECT_EQ(updater.shortest_window(), std::chrono::minutes(2));
  std::vector<model::Unit> units{counted_unit("1")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(tsdb.queries_asked(), std::vector<std::string>{"x[30s] 45000 2m0s"});
}

TEST(TsdbUpdater, MoreThanOneSampleOfAUnitIsRefused) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (query == "per_gpu") {
      return Result<net::ClientResponse>(
          FakeTransport::ok(R"({"status":"success","data":{"resultType":"vector","result":[)"
                            R"({"metric":{"uuid":"1","gpu":"0"},"value":[1,"30"]},)"
                            R"({"metric":{"uuid":"1","gpu":"1"},"value":[1,"50"]}]}})"));
    }
    if (query == "good") {
      return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "2"}})));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(
      options_with("queries: {avg_gpu_usage: {global: per_gpu}, avg_cpu_usage: {global: good}}"),
      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(missing) << missing.error().message;
  EXPECT_EQ(missing->parts, std::vector<std::string>{"avg_gpu_usage.global"});
  EXPECT_TRUE(missing->lasting);
  EXPECT_EQ(missing->cause.message,
            "query avg_gpu_usage.global: the answer has more than one sample of the unit 1; "
            "aggregate the query by (uuid)");
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 2}}));
}

TEST(TsdbUpdater, AQueryThatFailsForOneBatchIsMissingForAllUnits) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (request.path.ends_with("/flags")) {
      return Result<net::ClientResponse>(
          FakeTransport::ok(R"({"status":"success","data":{"query.max-samples":"1000"}})"));
    }
    if (query.starts_with("a") && query.find("u15") != std::string::npos) {
      return Result<net::ClientResponse>(FakeTransport::status(503, "busy"));
    }
    if (request.path.ends_with("/query")) {
      std::map<std::string, std::string> values;
      for (int i = 10; i < 25; ++i) {
        values["u" + std::to_string(i)] = "3";
      }
      return Result<net::ClientResponse>(FakeTransport::ok(vector(values)));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: 'a{{.UUIDs}}'}, "
                                   "avg_gpu_usage: {global: 'b{{.UUIDs}}'}}"),
                      tsdb.client());
  std::vector<model::Unit> units;
  for (int i = 10; i < 25; ++i) {
    units.push_back(counted_unit("u" + std::to_string(i)));
  }
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->parts, std::vector<std::string>{"avg_cpu_usage.global"});
  for (const auto& one : units) {
    EXPECT_EQ(one.metric(Metric::kAvgCpuUsage), MetricMap{}) << one.uuid;
    EXPECT_EQ(one.metric(Metric::kAvgGpuUsage), (MetricMap{{"global", 3}})) << one.uuid;
  }
}

TEST(TsdbUpdater, GivesUpSoonOnATsdbThatDoesNotAnswer) {
  FakeTsdb tsdb;
  std::atomic<int> asked = 0;
  tsdb.override_answer = [&asked](const auto&) -> std::optional<Result<net::ClientResponse>> {
    ++asked;
    return Result<net::ClientResponse>(fail(ErrorCode::kTimeout, "no answer in 130 s"));
  };
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_FALSE(missing);
  EXPECT_LE(asked, 12);  // of 20 queries; one for the settings
}

TEST(TsdbUpdater, BelievesNoAnswerOfMoreSeriesThanThereCanBe) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (!request.path.ends_with("/query")) {
      return std::nullopt;
    }
    std::map<std::string, std::string> values;
    for (int i = 0; i < 10'001; ++i) {
      values["x" + std::to_string(i)] = "1";
    }
    return Result<net::ClientResponse>(FakeTransport::ok(vector(values)));
  };
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: up}}"), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("more than 10000 series"));
}

TEST(TsdbUpdater, FillsOnlyThePartsOfAGap) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (request.path.ends_with("/query")) {
      return Result<net::ClientResponse>(FakeTransport::ok(vector({{"1", "5"}})));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(
      options_with(
          "queries: {total_io_read_stats: {bytes: a, requests: b}, avg_gpu_usage: {x: c}}"),
      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  const auto missing =
      updater.update({.window = kQuarter, .parts = {"total_io_read_stats.requests"}}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->parts, ::testing::IsEmpty());
  EXPECT_EQ(tsdb.queries_asked(), std::vector<std::string>{});  // answered by the override
  EXPECT_EQ(units[0].metric(Metric::kTotalIoReadStats), (MetricMap{{"requests", 5}}));
  EXPECT_EQ(units[0].metric(Metric::kAvgGpuUsage), MetricMap{});
}

TEST(TsdbUpdater, HalvesBatchesThatAreTooManySamples) {
  FakeTsdb tsdb;
  std::atomic<int> refused = 0;
  tsdb.override_answer = [&](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string uuids = request.first("query");
    if (request.path.ends_with("/query") && std::ranges::count(uuids, '|') >= 2) {
      ++refused;
      return Result<net::ClientResponse>(FakeTransport::status(
          422,
          R"({"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"})"));
    }
    if (request.path.ends_with("/query")) {
      std::map<std::string, std::string> values;
      for (const char* id : {"1", "2", "3", "4", "5"}) {
        if (uuids.find(id) != std::string::npos) {
          values[id] = id;
        }
      }
      return Result<net::ClientResponse>(FakeTransport::ok(vector(values)));
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: '{{.UUIDs}}'}}"),
                      tsdb.client());
  std::vector<model::Unit> units{counted_unit("1"), counted_unit("2"), counted_unit("3"),
                                 counted_unit("4"), counted_unit("5")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  for (const auto& u : units) {
    EXPECT_EQ(u.metric(Metric::kAvgCpuUsage).at("global"), std::stod(u.uuid));
  }
  EXPECT_EQ(refused, 2);
}

TEST(TsdbUpdater, BatchesRespectTheSamplesOfTheTsdb) {
  FakeTsdb tsdb;
  std::vector<std::size_t> sizes;
  std::string max_samples = "72000";
  tsdb.override_answer = [&](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    if (request.path.ends_with("/flags")) {
      return Result<net::ClientResponse>(FakeTransport::ok(
          R"({"status":"success","data":{"query.max-samples":")" + max_samples + R"("}})"));
    }
    if (request.path.ends_with("/query")) {
      const std::string query = request.first("query");
      sizes.push_back(static_cast<std::size_t>(std::ranges::count(query, '|')) + 1);
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: '{{.UUIDs}}'}}"),
                      tsdb.client());
  std::vector<model::Unit> units;
  units.reserve(30);
  for (int i = 0; i < 30; ++i) {
    units.push_back(counted_unit("u" + std::to_string(i)));
  }
  // 60 samples for each of the 50 series per unit: 72,000 / 3,000 / 2 = 12 units.
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{12, 12, 6}));
}

TEST(TsdbUpdater, NamesUnitsSoThatAnyQuotesMayStandAroundThem) {
  FakeTsdb tsdb;
  std::vector<std::string> queries;
  tsdb.override_answer = [&](const auto& request) -> std::optional<Result<net::ClientResponse>> {
    const std::string query = request.first("query");
    if (query.starts_with("cpu{")) {
      queries.push_back(query);
    }
    return std::nullopt;
  };
  TsdbUpdater updater(options_with("queries: {avg_cpu_usage: {global: 'cpu{uuid=~`{{.UUIDs}}`}'}}"),
                      tsdb.client());
  std::vector<model::Unit> units;
  for (const char* id : {"6[1]", "7.batch", "a`\"\\b", "12"}) {
    units.push_back(counted_unit(id));
  }
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(queries, (std::vector<std::string>{"cpu{uuid=~`12|6[[]1[]]|7[.]batch|a...b`}"}));
}

TEST(TsdbUpdater, AsksFourQueriesAtATimeWithTheTimeOutOfTheTsdb) {
  std::atomic<int> active = 0;
  std::atomic<int> most = 0;
  std::atomic<int> queries = 0;
  testing::FakeClock clock;
  auto transport = std::make_unique<FakeTransport>(
      [&](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
        if (request.path.ends_with("/flags")) {
          return FakeTransport::ok(R"({"status":"success","data":{"query.timeout":"45s"}})");
        }
        if (!request.path.ends_with("/query")) {
          return FakeTransport::ok(
              R"({"status":"success","data":{"resultType":"matrix","result":[]}})");
        }
        EXPECT_EQ(request.first("timeout"), "45s");
        ++queries;
        const int now = ++active;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        EXPECT_TRUE(testing::eventually([&] { return most > 1; })) << "no other comes";
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        --active;
        return FakeTransport::ok(vector({}));
      });
  TsdbUpdater updater(options_with(""),
                      std::make_unique<tsdb::Client>("http://tsdb", std::move(transport), clock));
  std::vector<model::Unit> units{counted_unit("1")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_GE(queries, 20);
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
}

TEST(TsdbUpdater, StopsAtOnce) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{counted_unit("1")};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(updater.update({.window = kQuarter}, units, stop.get_token()));
  EXPECT_TRUE(tsdb.queries_asked().empty());
}

}  // namespace
}  // namespace ceems::ingest
