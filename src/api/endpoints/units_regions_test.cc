#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/endpoints/units_report_test_support.h"

namespace ceems::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class UnitRegions : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    measurements_.marked.nodes = {
        {.name = "n1",
         .regions = {{"<b>", {.seconds = 20, .count = 1}},
                     {"solve",
                      {.seconds = 100,
                       .count = 1'234'567'890,
                       .joules = {{"node", 9000.123456}, {"package", 7000}},
                       .self_joules = 9000}}},
         .joules = {{"node", 10'000}}},
        {.name = "n2", .regions = {{"solve", {.seconds = 80}}}}};
    measurements_.marked.results = {{.name = "step", .unit = "ns", .n = 1234.5678},
                                    {.name = "none", .unit = "", .n = 0}};
    measurements_.marked.merits = {{.name = "loss", .unit = "", .nodes = 1, .last = -1.5}};
    ApiOptions options;
    options.measurements = &measurements_;
    make(std::move(options));
  }
  static constexpr const char* kPath = "units/regions?cluster_id=hpc-a&uuid=1";
  FakeMeasurements measurements_;
};

TEST_F(UnitRegions, AreOfTheLifeOfTheUnit) {
  EXPECT_EQ(
      body(kPath, "ada"),
      R"({"status":"success","data":{"from":1767222000000,"to":1767223800000,"energy_j":10000,)"
      R"("regions":[{"region":"solve","count":1234567890,"seconds":100,"mean_seconds":90,)"
      R"("energy_j":9000.12,"self_energy_j":9000,"watts":90.0012,"domains":{"package":7000},)"
      R"("nodes":[{"node":"n1","count":1234567890,"seconds":100,"energy_j":9000.12},)"
      R"({"node":"n2","count":0,"seconds":80,"energy_j":null}],"nodes_left_out":0},)"
      R"({"region":"\u003cb\u003e","count":1,"seconds":20,"mean_seconds":20,"energy_j":null,)"
      R"("self_energy_j":null,"watts":null,"domains":{},"nodes":[{"node":"n1","count":1,)"
      R"("seconds":20,"energy_j":null}],"nodes_left_out":0}],"regions_left_out":0,)"
      R"("results":[{"result":"step","unit":"ns","n":1234.5678,"joules_per":8.1},)"
      R"({"result":"none","unit":"","n":0,"joules_per":null}],)"
      R"("fom":[{"fom":"loss","unit":"","nodes":1,"last":-1.5,"mean":null}]}})"
      "\n");
  // To a minute after its end, for the last samples.
  EXPECT_THAT(measurements_.marks_asked, ElementsAre("1 -3600000 -1800000 -1740000"));
}

TEST_F(UnitRegions, AreForOwnersAndAdmins) {
  const std::string path = std::string("/api/v1/") + kPath;
  EXPECT_EQ(get(path).status, 401);
  EXPECT_EQ(get(path, "bob").status, 403);
  EXPECT_EQ(get("/api/v1/units/regions?cluster_id=hpc-a&uuid=nothing", "root").status, 403);
  EXPECT_EQ(get("/api/v1/units/regions?cluster_id=hpc-b&uuid=3", "ada").status, 403);
  EXPECT_EQ(get("/api/v1/units/regions?uuid=1", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/regions?cluster_id=hpc-a&uuid=1&uuid=3", "ada").status, 400);
  EXPECT_THAT(measurements_.marks_asked, IsEmpty());
  EXPECT_EQ(get(path, "root").status, 200);
}

TEST_F(UnitRegions, OfAUnitThatRunsAreUntilNow) {
  clock_.advance(std::chrono::hours(2));
  EXPECT_THAT(body("units/regions?cluster_id=hpc-a&uuid=10", "ada"),
              HasSubstr(fmt::format(R"("to":{})", kNow + 2 * kHour)));
  EXPECT_THAT(measurements_.marks_asked, ElementsAre("10 -3600000 7200000 7200000"));
}

TEST_F(UnitRegions, AreNotThoseOfOthersWithTheSameId) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + 3 * kHour};
  model::Unit next = job("1", "eve", "optics");
  next.started_at_ts = next.created_at_ts = kNow - kHour / 2;
  next.started_at = next.created_at = "2025-12-31T23:30:00+0000";
  next.ended_at_ts = kNow + kHour;
  next.ended_at = "2026-01-01T01:00:00+0000";
  update.units = {next};
  write(update);
  clock_.advance(std::chrono::hours(3));
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "ada").status, 200);
  EXPECT_EQ(get(std::string("/api/v1/") + kPath, "eve").status, 200);
  EXPECT_THAT(measurements_.marks_asked,
              ElementsAre("1 -3600000 -1860001 -1860001", "1 -1739000 3600000 3660000"));
}

TEST_F(UnitRegions, AreBounded) {
  measurements_.marked = {};
  for (int i = 0; i < 100; ++i) {
    auto& node = measurements_.marked.nodes.emplace_back();
    node.name = fmt::format("n{}", i);
    node.regions["all"].seconds = 1000 + i;
    node.regions[fmt::format("r{}", i)].seconds = i;
  }
  const std::string answer = body(kPath, "ada");
  EXPECT_THAT(answer, HasSubstr(R"("nodes_left_out":36)"));
  EXPECT_THAT(answer, HasSubstr(R"("regions_left_out":37)"));
  EXPECT_THAT(answer, HasSubstr(R"("nodes":[{"node":"n99","count":0,"seconds":1099)"));
}

TEST_F(UnitRegions, FailuresAreSaidWithoutNamesOfServers) {
  measurements_.marks_failure = Error{ErrorCode::kUnavailable, "http://secret:9090: refused"};
  const auto failed = get(std::string("/api/v1/") + kPath, "ada");
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(failed.body, Not(HasSubstr("secret")));
  make();
  EXPECT_THAT(body(kPath, "ada"), HasSubstr(R"("energy_j":null,"regions":[],)"));
}

}  // namespace
}  // namespace ceems::api
