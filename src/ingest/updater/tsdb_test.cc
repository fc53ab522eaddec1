#include "ingest/updater/tsdb.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/updater/all.h"
#include "ingest/updater/fake_tsdb.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using model::MetricMap;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

constexpr std::int64_t kNow = 1'767'225'600'000;
constexpr model::Window kQuarter{.start_ms = kNow, .end_ms = kNow + 900'000};

model::Unit unit(const std::string& uuid, std::int64_t start_ms = 0, std::int64_t end_ms = 0) {
  model::Unit u;
  u.uuid = uuid;
  u.started_at_ts = kNow + start_ms;
  u.ended_at_ts = end_ms == 0 ? 0 : kNow + end_ms;
  u.total_time_seconds = {{"walltime", 900.0}};
  return u;
}

std::string vector(const std::map<std::string, std::string>& values) {
  std::string text;
  for (const auto& [uuid, value] : values) {
    text += fmt::format(R"({}{{"metric":{{"uuid":"{}"}},"value":[1,"{}"]}})",
                        text.empty() ? "" : ",", uuid, value);
  }
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + text + "]}}";
}

/// Returns the options of a configuration with one query.
TsdbUpdaterOptions options_with(const std::string& yaml) {
  auto node = config::parse_yaml(yaml, "c.yml");
  EXPECT_TRUE(node);
  auto options = read_tsdb_updater_options(*node);
  EXPECT_TRUE(options) << (options ? "" : options.error().message);
  return options ? std::move(*options) : TsdbUpdaterOptions{};
}

std::string options_error(const std::string& yaml) {
  const auto node = config::parse_yaml(yaml, "c.yml");
  if (!node) {
    return node.error().message;
  }
  const UpdaterConfig config{
      .id = "t", .kind = "tsdb", .web_url = "http://localhost:9090", .web = {}, .extra = *node};
  const testing::FakeClock clock;
  const auto updater = create_updater(tsdb_updater(), config, clock);
  return updater ? "accepted" : updater.error().message;
}

TEST(TsdbUpdaterOptions, NameFileAndLineOfWhatIsWrong) {
  EXPECT_THAT(options_error("queries:\n  avg_cpu_usage:\n    global: up{{.Foo}}\n"),
              HasSubstr("c.yml:3: queries.avg_cpu_usage.global: query template: '{{.Foo}}' at "
                        "character 3"));
  EXPECT_THAT(options_error("query_max_series: -1\n"),
              HasSubstr("c.yml:1: query_max_series: query_max_series must be more than 0"));
  EXPECT_THAT(options_error("query_min_samples: 1.5\n"),
              HasSubstr("query_min_samples must be between (0, 1]"));
  EXPECT_THAT(options_error("labels_to_drop: ['{}']\n"),
              HasSubstr("an empty selector would delete everything"));
  EXPECT_THAT(options_error("emission_faktor: 3\n"),
              HasSubstr("unknown key, did you mean 'emission_factor'?"));
  EXPECT_EQ(options_error("query_batch_size: 1000\nquery_max_series: 0\n"), "accepted");
}

TEST(TsdbUpdaterOptions, QueriesReplaceTheDefaultsAndTheCounters) {
  EXPECT_EQ(options_with("cutoff_duration: 5m\n").queries.size(), 20U);
  EXPECT_TRUE(options_with("").unit_counters);
  const auto custom =
      options_with("queries:\n  avg_cpu_usage:\n    global: up\n  no_such_metric:\n    x: up\n");
  EXPECT_EQ(custom.queries.size(), 1U);
  EXPECT_FALSE(custom.unit_counters);
  EXPECT_TRUE(
      options_with("unit_counters: true\nqueries: {avg_cpu_usage: {global: up}}\n").unit_counters);
}

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
  std::vector<model::Unit> units{unit("4"), unit("1"), unit("2"), unit("3"), unit("")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), MetricMap{});
  EXPECT_TRUE(units[0].has_metric[0]);
  EXPECT_EQ(units[1].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 50.5}}));
  EXPECT_EQ(units[2].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 0}}));
  EXPECT_EQ(units[3].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 0}}));
  EXPECT_FALSE(units[4].has_metric[0]);
  EXPECT_FALSE(units[0].has_metric[1]);
}

/// A TSDB with the counters of a job whose node has so many GPUs, each busy for a quarter of the
/// time.
void add_job(FakeTsdb& tsdb, int gpus) {
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
  labels.erase("domain");
  tsdb.add("ceems_compute_unit_memory_peak_bytes", labels, rising(1e6));
  for (int i = 0; i < gpus; ++i) {
    labels["gpuuuid"] = fmt::format("GPU-{}", i);
    tsdb.add("ceems_compute_unit_gpu_busy_seconds_total", labels, rising(0.25));
  }
  tsdb.now_ms = kNow + 1'200'000;
}

model::Unit job_with_gpus(double gpus) {
  model::Unit job = unit("42", -3'600'000);
  job.total_time_seconds["alloc_gputime"] = gpus * 900;
  return job;
}

TEST(TsdbUpdater, SetsPeakMemoryIdleGpuTimeAndIdleEnergy) {
  FakeTsdb tsdb;
  add_job(tsdb, 4);
  TsdbUpdater updater(options_with("unit_counters: true\nqueries: {}\n"), tsdb.client());
  std::vector<model::Unit> units{job_with_gpus(4), unit("43")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_NEAR(units[0].gpu_idle_share.value_or(-1), 0.75, 1e-9);
  EXPECT_NEAR(units[0].idle_kwh.value_or(-1), 100 * 900 / 3.6e6, 1e-9);
  EXPECT_GE(units[0].peak_memory_bytes.value_or(-1), 900e6);
  EXPECT_EQ(units[1].gpu_idle_share, std::nullopt);
  EXPECT_EQ(units[1].idle_kwh, std::nullopt);
  EXPECT_EQ(units[1].peak_memory_bytes, std::nullopt);
}

TEST(TsdbUpdater, KnowsNoIdleGpuTimeWhereGpusAreMissing) {
  FakeTsdb tsdb;
  add_job(tsdb, 3);
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
  add_job(tsdb, 4);
  TsdbUpdater updater(options_with("unit_counters: true\nqueries: {}\n"), tsdb.client());
  std::vector<model::Unit> units{job_with_gpus(4)};
  ASSERT_TRUE(updater.update(
      {.window = kQuarter, .parts = {"total_cpu_emissions_gms.global_total"}}, units, {}));
  EXPECT_EQ(units[0].idle_kwh, std::nullopt);
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
  std::vector<model::Unit> units{unit("")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  units = {unit("1")};
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
    std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
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
    units.push_back(unit("u" + std::to_string(i)));
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
  std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
  const auto missing =
      updater.update({.window = kQuarter, .parts = {"total_io_read_stats.requests"}}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->parts, ::testing::IsEmpty());
  EXPECT_EQ(tsdb.queries_asked(), std::vector<std::string>{});  // answered by the override
  EXPECT_EQ(units[0].metric(Metric::kTotalIoReadStats), (MetricMap{{"requests", 5}}));
  EXPECT_EQ(units[0].metric(Metric::kAvgGpuUsage), MetricMap{});
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
    std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1"), unit("2"), unit("3"), unit("4"), unit("5")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  for (const auto& u : units) {
    EXPECT_EQ(u.metric(Metric::kAvgCpuUsage).at("global"), std::stod(u.uuid));
  }
  EXPECT_EQ(refused, 2);
}

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
  std::vector<model::Unit> units{unit("1")};
  const auto done = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 25}}));
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuMemUsage), (MetricMap{{"global", 25}}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEnergyUsageKwh), (MetricMap{{"total", 1}}));
  EXPECT_EQ(units[0].metric(Metric::kTotalCpuEmissionsGms), (MetricMap{{"global_total", 100}}));
  EXPECT_EQ(units[0].total_time_seconds.at("used_cputime"), 450);
  EXPECT_EQ(units[0].metric(Metric::kTotalGpuEnergyUsageKwh), MetricMap{});
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
  std::vector<model::Unit> units{unit("1"), unit("2")};
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

TEST(TsdbUpdater, IgnoresShortUnitsAndDeletesTheirSeriesOnceTheWindowIsCommitted) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{unit("1.a", 0, 59'000), unit("2", 0, 60'000), unit("3", 0)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_TRUE(units[0].ignore);
  EXPECT_FALSE(units[1].ignore);
  EXPECT_FALSE(units[2].ignore);
  // The same window again: it was not committed, so the series are still needed.
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms - 1, {});
  EXPECT_TRUE(tsdb.deletions.empty());
  updater.release(kQuarter.end_ms, {});
  EXPECT_EQ(tsdb.deletions, (std::vector<std::string>{R"(match[]={uuid=~"1[.]a"})",
                                                      "start=1767225540", "end=1767226500"}));
}

/// Answers as VictoriaMetrics does: it deletes whole series only.
void delete_whole_only(FakeTsdb& tsdb) {
  tsdb.override_answer =
      [](const FakeTransport::Request& request) -> std::optional<Result<net::ClientResponse>> {
    if (!request.path.ends_with("/delete_series") || request.first("start").empty()) {
      return std::nullopt;
    }
    return FakeTransport::status(
        422, R"({"status":"error","errorType":"422","error":"start and end aren't supported. )"
             R"(Remove these args from the query in order to delete all the matching metrics"})");
  };
}

constexpr std::array<std::string_view, 4> kUuids{
    "6ba7b810-9dad-11d1-80b4-00c04fd430c0", "6ba7b810-9dad-11d1-80b4-00c04fd430c1",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c2", "6ba7b810-9dad-11d1-80b4-00c04fd430c3"};

/// Short VMs: one alone, one whose id had a later life, one of old age, and a job.
std::vector<model::Unit> short_units() {
  std::vector<model::Unit> units{
      unit(std::string(kUuids[0]), 0, 59'000), unit(std::string(kUuids[1]), 0, 59'000),
      unit(std::string(kUuids[1]), 59'000),    unit(std::string(kUuids[2]), 0, 59'000),
      unit(std::string(kUuids[3]), 0, 59'000), unit("4711", 0, 59'000)};
  for (auto& one : units) {
    one.resource_manager = "openstack";
    one.created_at_ts = one.started_at_ts - 10'000;
  }
  units[3].created_at_ts -= 86'400'000;
  units[4].resource_manager = "slurm";
  units[5].resource_manager = "slurm";
  return units;
}

std::vector<std::string> deletions_of_victoria_metrics(const std::string& yaml) {
  FakeTsdb tsdb;
  delete_whole_only(tsdb);
  TsdbUpdater updater(options_with("cutoff_duration: 60s\ndelete_ignored: true\n"
                                   "labels_to_drop: ['{job=\"x\"}']\n"
                                   "queries: {avg_cpu_usage: {global: up}}\n" +
                                   yaml),
                      tsdb.client());
  auto units = short_units();
  EXPECT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms, {});
  return tsdb.deletions;
}

TEST(TsdbUpdater, DeletesNoWholeSeriesUnlessItIsTold) {
  EXPECT_TRUE(deletions_of_victoria_metrics("").empty());
}

TEST(TsdbUpdater, DeletesWholeSeriesOnlyOfIdsThatAreNeverGivenOutAgain) {
  EXPECT_EQ(deletions_of_victoria_metrics("delete_whole_series: true\n"),
            (std::vector<std::string>{fmt::format("match[]={{uuid=~\"{}\"}}", kUuids[0])}));
}

TEST(TsdbUpdater, NeverSendsAnEmptyMatcher) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with("labels_to_drop: ['{job=\"x\"}']\ndelete_ignored: true\n"
                                   "queries: {avg_cpu_usage: {global: up}}"),
                      tsdb.client());
  std::vector<model::Unit> units{unit("1", 0, 100'000)};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  updater.release(kQuarter.end_ms, {});
  EXPECT_THAT(tsdb.deletions, Contains("match[]={job=\"x\"}"));
  for (const auto& text : tsdb.deletions) {
    EXPECT_THAT(text, Not(HasSubstr("uuid")));
  }
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
  std::vector<model::Unit> units{unit("1")};
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
  std::vector<model::Unit> units{unit("1")};
  const auto missing = updater.update({.window = kQuarter}, units, {});
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->parts, ::testing::IsEmpty());
  EXPECT_EQ(units[0].metric(Metric::kAvgCpuUsage), (MetricMap{{"global", 25}}));
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
    units.push_back(unit("u" + std::to_string(i)));
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
    units.push_back(unit(id));
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
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        --active;
        return FakeTransport::ok(vector({}));
      });
  TsdbUpdater updater(options_with(""),
                      std::make_unique<tsdb::Client>("http://tsdb", std::move(transport), clock));
  std::vector<model::Unit> units{unit("1")};
  ASSERT_TRUE(updater.update({.window = kQuarter}, units, {}));
  EXPECT_GE(queries, 20);
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
}

TEST(TsdbUpdater, StopsAtOnce) {
  FakeTsdb tsdb;
  TsdbUpdater updater(options_with(""), tsdb.client());
  std::vector<model::Unit> units{unit("1")};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(updater.update({.window = kQuarter}, units, stop.get_token()));
  EXPECT_TRUE(tsdb.queries_asked().empty());
}

}  // namespace
}  // namespace ceems::ingest
