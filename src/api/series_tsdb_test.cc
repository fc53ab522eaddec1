#include "api/series_tsdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using tsdb::FakeTransport;

struct Fixture {
  explicit Fixture(FakeTransport::Answer answer) {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    std::map<std::string, std::unique_ptr<tsdb::Client>, std::less<>> clients;
    clients.emplace("c1", std::make_unique<tsdb::Client>("http://t", std::move(owned), clock));
    source = std::make_unique<TsdbSeriesSource>(std::move(clients));
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
  const auto series = f.source->series("c1", "a\"b", 0, 60'000);
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
    ASSERT_TRUE(f.source->series("c1", "1", 0, hours * 3'600'000));
    const std::int64_t step = std::stoll(f.ranges().at(0).first("step"));
    EXPECT_LE(hours * 3600 / step + 1, 300) << hours;
    EXPECT_GE(hours * 3600 / step + 1, 200) << hours;
  }
}

TEST(TsdbSeries, RefusesUnknownClustersAndEmptyPeriods) {
  Fixture f(answer);
  EXPECT_EQ(f.source->series("c2", "1", 0, 1000).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(f.source->series("c1", "", 0, 1000).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(f.source->series("c1", "1", 1000, 1000).error().code, ErrorCode::kInvalidArgument);
}

TEST(TsdbSeries, SaysWhichSeriesFailed) {
  Fixture f([](const auto&) { return fail(ErrorCode::kUnavailable, "connection refused"); });
  EXPECT_THAT(f.source->series("c1", "1", 0, 1000).error().message,
              HasSubstr("cpu: TSDB: connection refused"));
}

}  // namespace
}  // namespace ceems::api
