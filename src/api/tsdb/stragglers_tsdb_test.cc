#include "api/tsdb/stragglers_tsdb.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"
#include "api/tsdb/fleet.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tsdb::FakeTransport;

constexpr std::int64_t kMinuteOfTest = 60'000;

/// The range query's series with the same value at each step, and NaN at the second.
class Matrix {
 public:
  explicit Matrix(const FakeTransport::Request& request)
      : from_(std::stod(request.first("start"))),
        to_(std::stod(request.first("end"))),
        step_(std::stod(request.first("step"))) {}
  void add(const std::string& labels, double value) {
    rows_ += fmt::format(R"({}{{"metric":{{{}}},"values":[)", rows_.empty() ? "" : ",", labels);
    const auto last = std::llround((to_ - from_) / step_);
    for (int place = 0; place <= last; ++place) {
      rows_ += fmt::format(R"({}[{},"{}"])", place == 0 ? "" : ",", from_ + place * step_,
                           place == 1 ? "NaN" : fmt::to_string(value));
    }
    rows_ += "]}";
  }
  [[nodiscard]] Result<net::ClientResponse> answer() const {
    return FakeTransport::ok(R"({"status":"success","data":{"resultType":"matrix","result":[)" +
                             rows_ + "]}}");
  }

 private:
  double from_, to_, step_;
  std::string rows_;
};

/// The answer to what the client asks about the TSDB itself.
Result<net::ClientResponse> no_settings() {
  return FakeTransport::ok(R"({"status":"success","data":{}})");
}

/// A job on four nodes with two GPUs each. GPU 3, the second of g12, is slow because it is hot.
Result<net::ClientResponse> job_with_slow_gpu(const FakeTransport::Request& request) {
  if (!request.path.ends_with("_range")) {
    return no_settings();
  }
  const std::string query = request.first("query");
  Matrix matrix(request);
  for (int i = 0; i < 8; ++i) {
    const std::string gpu = fmt::format(R"("gpuuuid":"GPU-{}")", i);
    const std::string own =
        fmt::format(R"({},"hostname":"g{}","index":"{}")", gpu, 11 + i / 2, i % 2);
    if (query.contains("gpu_index_flag")) {
      matrix.add(own + R"(,"of":"gpu")", 1);
      matrix.add(own + R"(,"of":"activity")", i == 3 ? 0.8 : 0.72);
    } else if (query.contains("ceems_gpu_clock_hertz")) {
      matrix.add(gpu + R"(,"of":"clock")", i == 3 ? 1.76e9 : 1.98e9);
      matrix.add(gpu + R"(,"of":"power")", i == 3 ? 450 : 600);
      matrix.add(gpu + R"(,"of":"reason","reason":"hardware_thermal")", i == 3 ? 0.9 : 0);
      matrix.add(gpu + R"(,"of":"class","name":"H100")", 1);
    } else if (i % 2 == 0) {
      matrix.add(fmt::format(R"("hostname":"g{}","of":"symbol_error")", 11 + i / 2),
                 i == 6 ? 3 : 0);
    }
  }
  return matrix.answer();
}

struct StragglersFixture {
  explicit StragglersFixture(FakeTransport::Answer answer) {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    tsdb.client = std::make_unique<tsdb::Client>("http://t", std::move(owned), clock);
    tsdb.cluster_label = "ceems_id";
  }
  Result<std::vector<fleet::Straggler>> read(std::int64_t minutes, bool running = false) {
    return read_stragglers(tsdb, "hpc-a",
                           {.uuid = "47\"11",
                            .started_ms = 1'000'000'000,
                            .until_ms = 1'000'000'000 + minutes * kMinuteOfTest,
                            .running = running});
  }
  [[nodiscard]] std::vector<FakeTransport::Request> ranges() const {
    std::vector<FakeTransport::Request> all;
    for (const auto& request : transport->requests()) {
      if (request.path.ends_with("_range")) {
        all.push_back(request);
      }
    }
    return all;
  }
  testing::FakeClock clock;
  FakeTransport* transport = nullptr;
  ClusterTsdb tsdb;
};

TEST(StragglersTsdb, FindsASlowGpuAndABadLinkByThreeQueries) {
  StragglersFixture fixture(job_with_slow_gpu);
  const auto rows = fixture.read(30);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 2U);
  const fleet::Straggler& slow = rows->front();
  EXPECT_EQ(slow.node + " " + slow.device + " " + slow.cause, "g12 1 hardware_thermal");
  EXPECT_EQ(slow.kind, fleet::StragglerKind::kSlowDevice);
  EXPECT_NEAR(slow.deviation.value(), -0.111, 0.001);
  // Seven others draw 600 W for a tenth of 25 minutes.
  EXPECT_NEAR(slow.waiting_joules_max.value(), 7 * 600 * 0.1 * 25 * 60, 1);
  EXPECT_EQ(rows->back().node + " " + rows->back().cause, "g14 symbol_error");
  EXPECT_EQ(rows->back().kind, fleet::StragglerKind::kFabricOrDisk);

  const auto asked = fixture.ranges();
  ASSERT_EQ(asked.size(), 3U);
  for (const auto& request : asked) {
    EXPECT_THAT(request.first("query"), HasSubstr(R"(ceems_id="hpc-a")"));
    EXPECT_EQ(request.first("start"), "1000060");
    EXPECT_EQ(request.first("end"), "1001800");
  }
  EXPECT_THAT(asked[0].first("query"), HasSubstr(R"(uuid="47\"11")"));
  EXPECT_THAT(asked[1].first("query"), HasSubstr(R"(gpuuuid=~"GPU-0|)"));
  EXPECT_THAT(asked[2].first("query"),
              HasSubstr(R"(ceems_node_info{hostname=~"g11|g12|g13|g14",ceems_id="hpc-a"})"));
  EXPECT_THAT(asked[2].first("query"),
              HasSubstr(R"((ceems_infiniband_symbol_error_total{ceems_id="hpc-a"}[)"));
}

/// Unit a on GPUs 8 to 15 and node g4 with a bad link, and 10 on the others, of which GPU 3 is
/// slow; the series of its reasons are not there while they are small.
Result<net::ClientResponse> many_units(const FakeTransport::Request& request) {
  const std::string query = request.first("query");
  if (request.path.ends_with("/query") && query.contains("count by (uuid)")) {
    return FakeTransport::ok(
        R"({"status":"success","data":{"resultType":"vector","result":[)"
        R"({"metric":{"uuid":"10"},"value":[1,"8"]},{"metric":{"uuid":"a"},"value":[1,"9"]},)"
        R"({"metric":{},"value":[1,"9"]},{"metric":{"uuid":"x"},"value":[1,"NaN"]},)"
        R"({"metric":{"uuid":"late"},"value":[1,"8"]}]}})");
  }
  if (!request.path.ends_with("_range")) {
    return no_settings();
  }
  Matrix matrix(request);
  for (int i = 0; i < 16; ++i) {
    const std::string gpu = fmt::format(R"("gpuuuid":"GPU-{}")", i);
    if (query.contains("gpu_index_flag")) {
      for (const char* uuid : {"a", "10", "late", "unasked"}) {
        const bool of_a = std::string_view(uuid) == "a";
        if (of_a == (i >= 8) && std::string_view(uuid) != "late") {
          matrix.add(fmt::format(R"({},"uuid":"{}","hostname":"g{}","index":"{}","of":"gpu")", gpu,
                                 uuid, i / 2, i % 2),
                     1);
        }
      }
    } else if (query.contains("ceems_gpu_clock_hertz")) {
      matrix.add(gpu + R"(,"of":"clock")", i == 3 ? 1.76e9 : 1.98e9);
      if (i == 3) {
        matrix.add(gpu + R"(,"of":"reason","reason":"hardware_thermal")", 0.9);
      }
    } else if (i == 8) {
      matrix.add(R"("hostname":"g4","of":"link_downed")", 1);
      matrix.add(R"("hostname":"elsewhere","of":"link_downed")", 1);
    }
  }
  return matrix.answer();
}

TEST(StragglersTsdb, FindsThoseOfAllRunningUnitsByFourQueries) {
  StragglersFixture fixture(many_units);
  constexpr std::int64_t kNow = 1'000'000'000;
  const auto units = read_all_stragglers(fixture.tsdb, "hpc-a", kNow);
  ASSERT_TRUE(units) << units.error().message;
  std::string found;
  for (const StragglersOfUnit& unit : *units) {
    for (const fleet::Straggler& row : unit.rows) {
      found += fmt::format("{} {} {} {} {}\n", unit.uuid, row.node, row.device,
                           fleet::name_of(row.kind), row.cause);
    }
  }
  EXPECT_EQ(found,
            "10 g1 1 slow_device hardware_thermal\n"
            "a g4  fabric_or_disk link_downed\n"
            "unasked g1 1 slow_device hardware_thermal\n");
  const auto asked = fixture.ranges();
  ASSERT_EQ(asked.size(), 3U);
  EXPECT_THAT(asked[0].first("query"), HasSubstr(R"(uuid=~"a|10|late",ceems_id="hpc-a")"));
  EXPECT_EQ(asked[0].first("start"), "998860");
  EXPECT_EQ(asked[0].first("end"), "1000000");
  EXPECT_THAT(asked[1].first("query"), HasSubstr("> 0.01"));
}

TEST(StragglersTsdb, LooksBackLongerWhereScrapesAreSeldom) {
  StragglersFixture fixture([](const FakeTransport::Request& request) {
    return request.path.ends_with("/status/config")
               ? FakeTransport::ok(
                     R"({"status":"success","data":{"yaml":"global:\n  scrape_interval: 2m\n"}})")
               : many_units(request);
  });
  const auto units = read_all_stragglers(fixture.tsdb, "hpc-a", 1'000'000'000);
  ASSERT_TRUE(units) << units.error().message;
  EXPECT_EQ(units->size(), 3U);
  const auto asked = fixture.ranges();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked[0].first("step"), "120");
  EXPECT_EQ(asked[0].first("start"), "998560");  // 10 windows, after 3 of the start
}

TEST(StragglersTsdb, AsksOnceWithoutWideUnits) {
  StragglersFixture none([](const FakeTransport::Request& request) {
    return request.path.ends_with("/query")
               ? FakeTransport::ok(
                     R"({"status":"success","data":{"resultType":"vector","result":[]}})")
               : no_settings();
  });
  EXPECT_TRUE(read_all_stragglers(none.tsdb, "hpc-a", 1'000'000'000)->empty());
  EXPECT_TRUE(none.ranges().empty());
  StragglersFixture down([](const FakeTransport::Request&) -> Result<net::ClientResponse> {
    return fail(ErrorCode::kUnavailable, "refused");
  });
  EXPECT_FALSE(read_all_stragglers(down.tsdb, "hpc-a", 1'000'000'000));
}

TEST(StragglersTsdb, AsksNothingOfShortRunsAndOnceOfSmallOnes) {
  StragglersFixture fixture(job_with_slow_gpu);
  EXPECT_TRUE(fixture.read(14)->empty());
  EXPECT_TRUE(fixture.ranges().empty());
  StragglersFixture small([](const FakeTransport::Request& request) {
    if (!request.path.ends_with("_range")) {
      return no_settings();
    }
    Matrix matrix(request);
    matrix.add(R"("hostname":"g1","of":"cpu")", 0.9);
    matrix.add(R"("of":"cpu")", 0.9);
    return matrix.answer();
  });
  EXPECT_TRUE(small.read(30)->empty());
  EXPECT_EQ(small.ranges().size(), 1U);
}

TEST(StragglersTsdb, ReadsAtMost120Windows) {
  StragglersFixture ended(job_with_slow_gpu);
  ASSERT_TRUE(ended.read(std::int64_t{24} * 60));
  EXPECT_EQ(ended.ranges().front().first("step"), "720");
  EXPECT_EQ(ended.ranges().front().first("start"), "1000720");
  StragglersFixture running(job_with_slow_gpu);
  ASSERT_EQ(running.read(std::int64_t{24} * 60, true)->size(), 2U);
  EXPECT_EQ(running.ranges().front().first("step"), "60");
  EXPECT_EQ(running.ranges().front().first("start"), std::to_string(1'000'000 + 22 * 3600 + 60));
}

TEST(StragglersTsdb, PassesOnErrorsAndSurvivesNonsense) {
  StragglersFixture down([](const FakeTransport::Request&) -> Result<net::ClientResponse> {
    return fail(ErrorCode::kUnavailable, "refused");
  });
  EXPECT_FALSE(down.read(30));
  StragglersFixture nonsense([](const FakeTransport::Request& request) {
    if (!request.path.ends_with("_range")) {
      return no_settings();
    }
    Matrix matrix(request);
    for (int i = 0; i < 9; ++i) {
      matrix.add(fmt::format(R"("gpuuuid":"{}","hostname":"h","of":"gpu")", i), -1e308);
      matrix.add(fmt::format(R"("gpuuuid":"{}","of":"clock")", i), i == 0 ? 1e308 : -1e308);
      matrix.add(fmt::format(R"("gpuuuid":"{}","of":"reason")", i), 1e300);
      matrix.add(R"("gpuuuid":"elsewhere","of":"power")", 1);
    }
    return matrix.answer();
  });
  const auto rows = nonsense.read(30);
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->empty());
}

/// hpc-a has a TSDB, in which each unit has a slow GPU. ada's unit 10 has run for an hour.
class StragglersAnswer : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto transport = std::make_unique<FakeTransport>(
        [this](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
          asked_ += request.path.ends_with("_range") ? 1 : 0;
          if (down_) {
            return fail(ErrorCode::kUnavailable, "http://secret: refused");
          }
          return wide_ ? wide_(request) : job_with_slow_gpu(request);
        });
    tsdbs_["hpc-a"].client =
        std::make_unique<tsdb::Client>("http://t", std::move(transport), clock_);
    ApiOptions options;
    options.fleet = &fleet_;
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm", .series = true},
                             {.id = "hpc-b", .manager = "slurm", .series = false}};
    make(std::move(options));
  }
  bool down_ = false;
  FakeTransport::Answer wide_;
  std::atomic<int> asked_ = 0;
  ClusterTsdbs tsdbs_;
  Fleet fleet_{tsdbs_, clock_};
};

TEST_F(StragglersAnswer, NamesThemToTheOwnerAndToAdmins) {
  const std::string path = "/api/v1/insight/stragglers?cluster_id=hpc-a&uuid=10";
  const auto own = get(path, "ada");
  EXPECT_EQ(own.status, 200);
  // Seven others wait for a tenth of the 55 minutes after the start.
  EXPECT_THAT(own.body, HasSubstr(R"("data":[{"node":"g12","device":"1","metric":"gpu_clock",)"));
  EXPECT_THAT(
      own.body,
      HasSubstr(R"("deviation":-0.1111,"windows":"10/10","kind":"slow_device",)"
                R"("cause":"hardware_thermal","your_code":false,"waiting_kwh_max":0.385})"));
  EXPECT_THAT(own.body,
              HasSubstr(R"({"node":"g14","device":null,"metric":"symbol_error","z":null,)"
                        R"("deviation":null,"windows":"10/10","kind":"fabric_or_disk",)"
                        R"("cause":"symbol_error","your_code":false,"waiting_kwh_max":null})"));
  EXPECT_EQ(asked_, 3);
  EXPECT_EQ(get(path, "root").body, own.body);
  EXPECT_EQ(get("/api/v1/insight/stragglers/admin?cluster_id=hpc-a&uuid=10", "root").body,
            own.body);
  EXPECT_EQ(asked_, 3);  // kept for a minute
  EXPECT_EQ(get(path, "bob").status, 404);
  EXPECT_EQ(get("/api/v1/insight/stragglers/admin?cluster_id=hpc-a&uuid=10", "ada").status, 403);
  EXPECT_EQ(get(path).status, 401);
}

TEST_F(StragglersAnswer, ListsAndCountsThoseOfAllRunningUnits) {
  wide_ = many_units;
  const std::string path = "/api/v1/insight/stragglers/admin";
  const auto all = get(path, "root");
  EXPECT_EQ(all.status, 200) << all.body;
  EXPECT_THAT(
      all.body,
      HasSubstr(R"("data":[{"cluster_id":"hpc-a","uuid":"10","user":"ada","project":"fluids",)"
                R"("partition":"","node":"g1","device":"1","metric":"gpu_clock",)"));
  EXPECT_THAT(all.body, HasSubstr(R"({"cluster_id":"hpc-a","uuid":"a","user":"","project":"",)"
                                  R"("partition":"","node":"g4","device":null,)"));
  EXPECT_EQ(asked_, 3);
  const std::string rows = all.body.substr(0, all.body.find(R"(,"missing")"));
  EXPECT_EQ(get(path + "?cluster_id=hpc-a", "root").body, rows + ",\"missing\":[]}\n");
  EXPECT_THAT(get(path + "?project=fluids", "root").body,
              AllOf(HasSubstr(R"("uuid":"10")"), Not(HasSubstr(R"("uuid":"a")"))));
  EXPECT_THAT(get(path + "?cluster_id=hpc-b", "root").body, HasSubstr(R"("data":[])"));
  EXPECT_TRUE(testing::eventually([this] {
    return get("/metrics")
        .body.contains(
            "ceems_api_server_straggler_units{cluster_id=\"hpc-a\",kind=\"slow_device\"} 2\n");
  }));
  EXPECT_THAT(
      get("/metrics").body,
      HasSubstr(
          "ceems_api_server_straggler_units{cluster_id=\"hpc-a\",kind=\"fabric_or_disk\"} 1\n"));
  EXPECT_EQ(asked_, 3);  // kept for five minutes
  EXPECT_EQ(get(path).status, 401);
  EXPECT_EQ(get(path, "ada").status, 403);
  EXPECT_EQ(get(path + "?uuid=10", "root").status, 400) << "of which cluster?";
  EXPECT_EQ(get("/api/v1/insight/stragglers", "ada").status, 400);
}

TEST_F(StragglersAnswer, AClusterWhoseTsdbFailsDoesNotHideTheOthers) {
  wide_ = many_units;
  tsdbs_["hpc-b"].client = std::make_unique<tsdb::Client>(
      "http://t",
      std::make_unique<FakeTransport>(
          [](const FakeTransport::Request&) -> Result<net::ClientResponse> {
            return fail(ErrorCode::kUnavailable, "http://secret: refused");
          }),
      clock_);
  ApiOptions options;
  options.fleet = &fleet_;
  options.site.clusters = {{.id = "hpc-b", .manager = "slurm", .series = true},
                           {.id = "hpc-a", .manager = "slurm", .series = true},
                           {.id = "cloud", .manager = "openstack", .series = false}};
  make(std::move(options));
  const auto all = get("/api/v1/insight/stragglers/admin", "root");
  EXPECT_EQ(all.status, 200);
  EXPECT_THAT(all.body,
              AllOf(HasSubstr(R"("data":[{"cluster_id":"hpc-a","uuid":"10","user":"ada",)"),
                    HasSubstr(R"("missing":[{"cluster_id":"hpc-b","reason":"unavailable"},)"
                              R"({"cluster_id":"cloud","reason":"no_tsdb"}])"),
                    Not(HasSubstr("secret"))));
  EXPECT_EQ(get("/api/v1/insight/stragglers/admin?cluster_id=hpc-b", "root").status, 503);
}

TEST_F(StragglersAnswer, KnowsWhoseUnitsThatHaveJustEndedWere) {
  wide_ = many_units;
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  model::Unit before = job("a", "bob", "optics");  // another run of the same ID
  before.started_at_ts = kNow - kHour;
  before.ended_at_ts = kNow - kHour / 2;
  model::Unit now = job("a", "eve", "climate");
  now.started_at_ts = kNow - kHour / 3;
  now.ended_at_ts = kNow;
  update.units = {now, before};
  write(update);
  EXPECT_THAT(body("insight/stragglers/admin", "root"),
              HasSubstr(R"({"cluster_id":"hpc-a","uuid":"a","user":"eve","project":"climate",)"));
}

TEST_F(StragglersAnswer, SaysThatTheListCannotBeRead) {
  down_ = true;
  const auto failed = get("/api/v1/insight/stragglers/admin", "root");
  EXPECT_GE(failed.status, 500);
  EXPECT_EQ(failed.body.find("secret"), std::string::npos);
  EXPECT_EQ(get("/metrics").body.find("straggler_units{"), std::string::npos);
}

TEST_F(StragglersAnswer, SaysWhatIsMissing) {
  const auto other = get("/api/v1/insight/stragglers?cluster_id=hpc-b&uuid=10", "ada");
  EXPECT_EQ(other.status, 200);
  EXPECT_THAT(other.body, HasSubstr(R"("data":[])"));
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(get("/api/v1/insight/stragglers?cluster_id=hpc-a", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/insight/stragglers?cluster_id=hpc-a&uuid=10&start=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/insight/stragglers?cluster_id=hpc-a&uuid=99", "ada").status, 404);
  down_ = true;
  const auto failed = get("/api/v1/insight/stragglers?cluster_id=hpc-a&uuid=10", "ada");
  EXPECT_GE(failed.status, 500);
  EXPECT_EQ(failed.body.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace ceems::api
