#include "api/tsdb/series_tsdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
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

constexpr std::int64_t kHour = 3'600'000;

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
  ASSERT_TRUE(
      f.source->series({.cluster_id = "c1",
                        .uuid = "1",
                        .from_ms = 0,
                        .to_ms = 100 * kHour,
                        .lives = {.own = {{10 * kHour, 11 * kHour}, {20 * kHour, 21 * kHour}},
                                  .others = {{12 * kHour, 20 * kHour - 1000}}}}));
  std::vector<std::string> asked;
  for (const auto& request : f.ranges()) {
    if (request.first("query").find("memory") != std::string::npos) {
      asked.push_back(request.first("start") + " " + request.first("end"));
    }
  }
  // Rates reach back 60 s, and the TSDB looks back 5 min; clocks may differ by 60 s.
  EXPECT_EQ(asked, (std::vector<std::string>{"35950 39660", "72425 75660"}));
}

}  // namespace
}  // namespace ceems::api
