#include "api/tsdb/series_tsdb.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/time/durations.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

struct Fixture {
  explicit Fixture(FakeTransport::Answer answer, const std::string& label = "") {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    ClusterTsdbs tsdbs;
    tsdbs["c1"] = {.client = std::make_unique<tsdb::Client>("http://t", std::move(owned), clock),
                   .cluster_label = label};
    source = std::make_unique<TsdbSeriesSource>(std::move(tsdbs));
  }
  /// A unit that lived all the time.
  Result<std::vector<Series>> series(const std::string& cluster,
                                     const std::string& uuid,
                                     std::int64_t from_ms,
                                     std::int64_t to_ms) const {
    return source->series({.cluster_id = cluster,
                           .uuid = uuid,
                           .from_ms = from_ms,
                           .to_ms = to_ms,
                           .lives = {.own = {{from_ms, to_ms}}}});
  }
  std::vector<FakeTransport::Request> ranges() const {
    std::vector<FakeTransport::Request> found;
    for (const auto& request : transport->requests()) {
      if (request.path.ends_with("/query_range")) {
        found.push_back(request);
      }
    }
    return found;
  }
  testing::FakeClock clock;
  FakeTransport* transport = nullptr;
  std::unique_ptr<TsdbSeriesSource> source;
};

Result<net::ClientResponse> answer(const FakeTransport::Request& request) {
  if (request.path.ends_with("/config")) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"yaml":"global:\n  scrape_interval: 15s\n"}})");
  }
  if (request.first("query").find("cpu_user") != std::string::npos) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"0.5"],[16,"NaN"],[31,"2"]]}]}})");
  }
  return FakeTransport::ok(R"({"status":"success","data":{"resultType":"matrix","result":[]}})");
}

TEST(TsdbSeries, GivesCpuMemoryAndPower) {
  Fixture f(answer);
  const auto series = f.series("c1", "a\"b", 0, 60'000);
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 3U);
  EXPECT_EQ((*series)[0].name, "cpu");
  EXPECT_EQ((*series)[0].unit, "cores");
  EXPECT_EQ((*series)[0].points,
            (std::vector<std::pair<std::int64_t, double>>{{1000, 0.5}, {31'000, 2}}));
  EXPECT_EQ((*series)[1].name, "memory");
  EXPECT_EQ((*series)[2].name, "power");
  EXPECT_TRUE((*series)[2].points.empty());
  const auto ranges = f.ranges();
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].first("query"),
            "sum(rate(ceems_compute_unit_cpu_user_seconds_total{uuid=\"a\\\"b\"}[60s]) + "
            "rate(ceems_compute_unit_cpu_system_seconds_total{uuid=\"a\\\"b\"}[60s]))");
  EXPECT_EQ(ranges[0].first("step"), "15");
}

TEST(TsdbSeries, NeverAsksForMoreThan300Points) {
  for (const std::int64_t hours : {1, 5, 24, 24 * 30}) {
    Fixture f(answer);
    ASSERT_TRUE(f.series("c1", "1", 0, hours * 3'600'000));
    const std::int64_t step = std::stoll(f.ranges().at(0).first("step"));
    EXPECT_LE(hours * 3600 / step + 1, 300) << hours;
    EXPECT_GE(hours * 3600 / step + 1, 200) << hours;
  }
}

TEST(TsdbSeries, ReadsRatesOverLongerRangesWhereSamplesAreFew) {
  // As of a server that keeps a sample of each two hours: a range of 4 h has two of them.
  Fixture f([](const FakeTransport::Request& request) {
    const std::string query = request.first("query");
    const bool enough = query.find("[14400s]") != std::string::npos;
    return query.find("cpu_user") != std::string::npos && !enough
               ? answer({.method = "GET", .path = "/api/v1/query_range", .form = {}})
               : answer(request);
  });
  const auto series = f.series("c1", "1", 0, 24 * kHourMs);
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_EQ(series->at(0).points,
            (std::vector<std::pair<std::int64_t, double>>{{1000, 0.5}, {31'000, 2}}));
  const auto ranges = f.ranges();
  ASSERT_EQ(ranges.size(), 5U);  // memory has no rate, power has none in both
  EXPECT_EQ(ranges[1].first("step"), "7200");
  EXPECT_EQ(ranges[1].first("query"),
            "sum(rate(ceems_compute_unit_cpu_user_seconds_total{uuid=\"1\"}[14400s]) + "
            "rate(ceems_compute_unit_cpu_system_seconds_total{uuid=\"1\"}[14400s]))");
}

TEST(TsdbSeries, RefusesUnknownClustersAndEmptyPeriods) {
  Fixture f(answer);
  EXPECT_EQ(f.series("c2", "1", 0, 1000).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(f.series("c1", "", 0, 1000).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(f.series("c1", "1", 1000, 1000).error().code, ErrorCode::kInvalidArgument);
}

TEST(TsdbSeries, SaysWhichSeriesFailed) {
  Fixture f([](const auto&) { return fail(ErrorCode::kUnavailable, "connection refused"); });
  EXPECT_THAT(f.series("c1", "1", 0, 1000).error().message,
              HasSubstr("cpu: TSDB: connection refused"));
}

TEST(TsdbSeries, OfASharedTsdbAreConfinedToTheCluster) {
  Fixture f(answer, "ceems_id");
  ASSERT_TRUE(f.series("c1", "1", 0, 60'000));
  for (const auto& request : f.ranges()) {
    const std::string query = request.first("query");
    std::size_t selectors = 0;
    for (std::size_t at = query.find('{'); at != std::string::npos; at = query.find('{', at + 1)) {
      EXPECT_THAT(query.substr(at), ::testing::StartsWith(R"({uuid="1",ceems_id="c1")"));
      ++selectors;
    }
    EXPECT_GT(selectors, 0U);
  }
}

TEST(TsdbSeries, OfClustersWithOneTsdbAreToldApartByTheLabel) {
  const testing::FakeClock clock;
  std::vector<ingest::UpdaterConfig> updaters;
  for (const auto& [id, url] :
       {std::pair("p", "http://tsdb"), {"same", "http://tsdb/"}, {"other", "http://other"}}) {
    ingest::UpdaterConfig& updater = updaters.emplace_back();
    updater.id = id;
    updater.kind = "tsdb";
    updater.web_url = url;
  }
  std::vector<ingest::ClusterConfig> clusters;
  for (const auto& [id, updater] :
       {std::pair("a", "p"), {"b", "same"}, {"c", "other"}, {"d", "none"}}) {
    clusters.emplace_back().cluster = {.id = id, .manager = "slurm", .updaters = {updater}};
  }
  const auto labels = [&](const SeriesOptions& options) {
    const auto tsdbs = cluster_tsdbs(clusters, updaters, options, clock);
    EXPECT_TRUE(tsdbs);
    std::string all;
    for (const auto& [id, tsdb] : *tsdbs) {
      all += id + "=" + tsdb.cluster_label + " ";
    }
    return all;
  };
  EXPECT_EQ(labels({}), "a=ceems_id b=ceems_id c= ");
  EXPECT_EQ(labels({.pin_cluster = true, .cluster_label = "site"}), "a=site b=site c=site ");
  EXPECT_EQ(labels({.pin_cluster = false}), "a= b= c= ");
}

TEST(TsdbSeries, OfASharedTsdbWithoutTheLabelAreRefused) {
  Fixture f(
      [](const FakeTransport::Request& request) {
        const bool unlabelled =
            request.first("query").find(R"({uuid="1",ceems_id=""})") != std::string::npos;
        return FakeTransport::ok(
            fmt::format(R"({{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}})",
                        unlabelled ? R"({"metric":{},"values":[[1,"1"]]})" : ""));
      },
      "ceems_id");
  const auto series = f.series("c1", "1", 0, 60'000);
  ASSERT_FALSE(series);
  EXPECT_EQ(series.error().code, ErrorCode::kPermissionDenied);
}

TEST(TsdbSeries, AreReadLifeByLifeWithoutTheTimesOfOthers) {
  Fixture f(answer);
  ASSERT_TRUE(f.source->series(
      {.cluster_id = "c1",
       .uuid = "1",
       .from_ms = 0,
       .to_ms = 100 * kHourMs,
       .lives = {.own = {{10 * kHourMs, 11 * kHourMs}, {20 * kHourMs, 21 * kHourMs}},
                 .others = {{12 * kHourMs, 20 * kHourMs - 1000}}}}));
  std::vector<std::string> asked;
  for (const auto& request : f.ranges()) {
    if (request.first("query").find("memory") != std::string::npos) {
      asked.push_back(request.first("start") + " " + request.first("end"));
    }
  }
  // Rates reach back 60 s, and the TSDB looks back 5 min; clocks may differ by 60 s.
  EXPECT_EQ(asked, (std::vector<std::string>{"35950 39660", "72425 75660"}));
}

std::string matrix(const std::vector<std::string>& series) {
  return fmt::format(R"({{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}})",
                     fmt::join(series, ","));
}

std::string line(const std::string& labels, double value) {
  return fmt::format(R"({{"metric":{{{}}},"values":[[0,"{}"],[60,"{}"]]}})", labels, value,
                     value + 1);
}

std::string gpu(int index) {
  return fmt::format(R"("hostname":"n1","index":"{0}","gpuuuid":"GPU-{0}")", index);
}

SeriesRequest of_gpus(std::vector<std::string> charts) {
  return {.cluster_id = "c1",
          .uuid = "1",
          .from_ms = 0,
          .to_ms = kHourMs,
          .lives = {.own = {{0, kHourMs}}},
          .charts = std::move(charts),
          .by = ChartBy::kGpu};
}

/// A TSDB with `count` GPUs of one unit.
FakeTransport::Answer with_gpus(int count) {
  return [count](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
    const std::string query = request.first("query");
    std::vector<std::string> series;
    if (query.contains("quantile(")) {
      for (const auto* const quantile : {"0", "0.5", "1"}) {
        series.push_back(line(fmt::format(R"("quantile":"{}")", quantile), 7));
      }
    } else if (query.contains("memory_total_bytes")) {
      series.push_back(line(gpu(0), 80e9));
    } else if (query.contains("gpu")) {
      for (int i = 0; i < count; ++i) {
        series.push_back(line(gpu(count - 1 - i), i));
      }
    }
    return FakeTransport::ok(matrix(series));
  };
}

TEST(TsdbSeries, OfGpusHaveALineForEachDeviceInOrder) {
  Fixture f(with_gpus(12), "ceems_id");
  const auto series = f.source->series(of_gpus({"gpu_memory"}));
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ((*series)[i].labels, (std::vector<std::pair<std::string, std::string>>{
                                       {"hostname", "n1"},
                                       {"index", std::to_string(i)},
                                       {"gpuuuid", fmt::format("GPU-{}", i)}}));
    EXPECT_EQ((*series)[i].points.front().second, 11 - static_cast<double>(i));
    EXPECT_EQ((*series)[i].name, "gpu_memory");
    EXPECT_EQ((*series)[i].unit, "bytes");
  }
  EXPECT_EQ((*series)[0].limit, 80e9 + 1);
  EXPECT_EQ((*series)[1].limit, std::nullopt);
  // Only the unit's devices are read, and only in its cluster.
  const std::string query = f.ranges().at(1).first("query");
  EXPECT_THAT(query, HasSubstr(R"(ceems_compute_unit_gpu_index_flag{uuid="1",ceems_id="c1"})"));
  EXPECT_THAT(query, HasSubstr(R"(DCGM_FI_DEV_FB_USED{gpuuuid=~"GPU-0|GPU-1|GPU-10|)"));
  EXPECT_THAT(query, HasSubstr(R"(|GPU-9",ceems_id="c1"})"));
}

TEST(TsdbSeries, OfMoreGpusThanALineEachHaveQuantiles) {
  Fixture f(with_gpus(65));
  const auto series = f.source->series(of_gpus({"gpu_use"}));
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 3U);
  EXPECT_EQ((*series)[1].labels,
            (std::vector<std::pair<std::string, std::string>>{{"quantile", "0.5"}}));
  SeriesRequest bins = of_gpus({"gpu_use"});
  bins.max_lines = 4096;
  const auto all = f.source->series(bins);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 65U);
}

TEST(TsdbSeries, OfManyGpusReadOnlyTheSourcesThatHaveValues) {
  Fixture f([](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
    if (request.first("query").contains("\"source\"")) {
      return FakeTransport::ok(matrix({line(R"("source":"2")", 7), line(R"("source":"99")", 7)}));
    }
    return with_gpus(65)(request);
  });
  const auto series = f.source->series(of_gpus({"gpu_use", "gpu_sm"}));
  ASSERT_TRUE(series) << series.error().message;
  std::vector<std::string> queries;
  for (const auto& request : f.ranges()) {
    if (request.first("query").contains("quantile(")) {
      queries.push_back(request.first("query"));
    }
  }
  ASSERT_EQ(queries.size(), 2U);
  EXPECT_THAT(queries[0], HasSubstr("DCGM_FI_PROF_GR_ENGINE_ACTIVE"));
  EXPECT_THAT(queries[1], HasSubstr("DCGM_FI_PROF_SM_ACTIVE"));
  for (const std::string& query : queries) {
    EXPECT_THAT(query, Not(HasSubstr("busy_seconds")));
    EXPECT_THAT(query, Not(HasSubstr("ceems_gpu_")));
    EXPECT_THAT(query, Not(HasSubstr("amd_gpu")));
  }
}

TEST(TsdbSeries, SayWhatIsNotCollected) {
  Fixture f([](const auto&) { return FakeTransport::ok(matrix({})); });
  const auto series = f.source->series(of_gpus({"gpu_use", "cpu", "net_in"}));
  ASSERT_TRUE(series) << series.error().message;
  ASSERT_EQ(series->size(), 3U);
  EXPECT_EQ((*series)[0].none, NoLine::kNotCollected);
  EXPECT_EQ((*series)[0].collector, "gpu");
  EXPECT_EQ((*series)[1].collector, "");
  EXPECT_EQ((*series)[2].collector, "ebpf");
  SeriesRequest brief = of_gpus({"ipc"});
  brief.to_ms = 1000;
  brief.lives = {.own = {{0, 1000}}};
  const auto none = f.source->series(brief);
  ASSERT_TRUE(none);
  EXPECT_EQ((*none)[0].none, NoLine::kTooShort);
}

TEST(TsdbSeries, RefuseAnUnknownChart) {
  Fixture f(answer);
  EXPECT_EQ(f.source->series(of_gpus({"gpu"})).error().code, ErrorCode::kInvalidArgument);
}

TEST(TsdbSeries, EndWhenTheClientHasLeftOrTheProgramStops) {
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_GE(silent.get(), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(silent.get(), raw, size), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), raw, &size), 0);
  const testing::FakeClock clock;
  net::ClientOptions options;
  options.timeout = std::chrono::minutes(10);
  const auto source_of = [&] {
    ClusterTsdbs tsdbs;
    tsdbs["c1"].client =
        std::make_unique<tsdb::Client>(fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port)),
                                       tsdb::http_transport(options).value(), clock);
    return std::make_unique<TsdbSeriesSource>(std::move(tsdbs));
  };
  const SeriesRequest request{.cluster_id = "c1",
                              .uuid = "1",
                              .from_ms = 0,
                              .to_ms = 60'000,
                              .lives = {.own = {{0, 60'000}}}};
  const auto start = std::chrono::steady_clock::now();
  for (const bool at_shutdown : {false, true}) {
    const auto source = source_of();
    std::stop_source left;
    const std::jthread leaving([&] {
      pollfd asked{.fd = silent.get(), .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&asked, 1, 60'000), 1);
      at_shutdown ? source->cancel() : static_cast<void>(left.request_stop());
    });
    const tsdb::CancelScope scope(left.get_token());
    const auto series = source->series(request);
    ASSERT_FALSE(series);
    EXPECT_THAT(series.error().message, HasSubstr("cancelled"));
    EXPECT_EQ(series.error().code, ErrorCode::kUnavailable);
    ASSERT_TRUE(UniqueFd(::accept(silent.get(), nullptr, nullptr)).valid());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, ceems::testing::kPatience);
}

TEST(TsdbSeries, HaveAtMostAsManyPointsAsAskedFor) {
  Fixture f(with_gpus(1));
  SeriesRequest request = of_gpus({"gpu_use"});
  request.max_points = 24;
  ASSERT_TRUE(f.source->series(request));
  const auto asked = f.ranges().back();
  EXPECT_LE(3600 / std::stoll(asked.first("step")) + 1, 24);
}

}  // namespace
}  // namespace ceems::api
