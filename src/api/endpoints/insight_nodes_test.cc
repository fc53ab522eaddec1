// Sick nodes, through the API.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "store/nodes.h"
#include "store/reports.h"
#include "testing/eventually.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Nodes n0 to n7 of hpc-a had 12 jobs of three users, in which n3 drew e^0.08 times as much.
class SickNodes : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    ApiOptions options{.tokens = tokens_.get()};
    options.site.clusters = {{.id = "hpc-a", .manager = "slurm"}};
    options.site.time_zone = "UTC";
    make(std::move(options));
    store::NodeUpdate nodes{
        .cluster_id = "hpc-a", .start_ms = kNow, .end_ms = kNow + 1000, .day_ms = kNow};
    for (int i = 0; i < 8; ++i) {
      nodes.facts.push_back({.node = fmt::format("n{}", i), .node_class = "H100"});
    }
    ASSERT_TRUE(db_->writer().write_nodes(nodes));
  }

  void add_jobs() {
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    std::vector<store::ReportRow> rows;
    for (int i = 0; i < 12; ++i) {
      model::Unit& unit = update.units.emplace_back(
          job(fmt::format("{}", 100 + i), std::array{"ada", "bob", "eve"}.at(i % 3), "fluids"));
      unit.started_at_ts = kNow;
      unit.ended_at_ts = kNow + (i + 1) * store::kMinute;
      store::ReportRow& row =
          rows.emplace_back(store::ReportRow{.key = {"hpc-a", unit.uuid, unit.started_at_ts},
                                             .ended_at_ts = unit.ended_at_ts,
                                             .final = true,
                                             .made_ms = kNow + kHour});
      row.on.username = unit.username;
      row.on.family = "train-#";
      for (int node = 0; node < 8; ++node) {
        row.on.nodes.push_back({.node = fmt::format("n{}", node),
                                .effect = node == 3             ? 0.08
                                          : (i + node) % 2 == 0 ? 0.01
                                                                : -0.01});
      }
    }
    write(update);
    ASSERT_TRUE(db_->writer().store_reports(rows));
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow + 2 * kHour)));
  }
};

TEST_F(SickNodes, AreToldWithTheEvidence) {
  add_jobs();
  const json::value answer = json::parse(body("insight/nodes/admin", "root"));
  ASSERT_EQ(answer.at("data").as_array().size(), 1U) << json::serialize(answer);
  EXPECT_EQ(
      answer.at("data").at(0),
      json::parse(
          R"({"cluster_id":"hpc-a","kind":"node","node":"n3","class":"H100","score":40,)"
          R"("effect":0.08,"before":null,"n":12,"users":3,"p":0.000488,"first":"2026-01-01",)"
          R"("failures":null,"hints":[],"signs":{},"suggested":"scontrol update nodename=n3 )"
          R"(state=drain reason=\"ceems: draws 8.3 % more than its peers in 12 jobs of 3 users\""})"));
  EXPECT_EQ(json::parse(body("insight/nodes/admin?cluster_id=hpc-b", "root"))
                .at("data")
                .as_array()
                .size(),
            0U);
}

TEST_F(SickNodes, AreForThoseWhoSeeTheSite) {
  add_jobs();
  EXPECT_EQ(get("/api/v1/insight/nodes/admin").status, 401);
  const auto refused = get("/api/v1/insight/nodes/admin", "ada");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, Not(HasSubstr("n3")));
}

TEST_F(SickNodes, WithoutJobsAreNone) {
  EXPECT_THAT(body("insight/nodes/admin", "root"),
              HasSubstr(R"("data":[],"missing":[{"cluster_id":"hpc-a","reason":"no_tsdb"}])"));
}

TEST_F(SickNodes, AreGauges) {
  add_jobs();
  EXPECT_TRUE(testing::eventually([this] {
    return get("/metrics")
        .body.contains("ceems_node_health_effect{cluster=\"hpc-a\",hostname=\"n3\"} 0.08\n");
  }));
  const std::string page = get("/metrics").body;
  EXPECT_THAT(page, HasSubstr("ceems_node_health_score{cluster=\"hpc-a\",hostname=\"n3\"} 40\n"));
  EXPECT_THAT(page, Not(HasSubstr("hostname=\"n2\"")));
}

}  // namespace
}  // namespace ceems::api
