// Arithmetic and reach of usage/current, as answers show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class UsageTest : public ServerTest {
 protected:
  static model::Unit unit(const std::string& uuid,
                          model::MetricMap average,
                          model::MetricMap times) {
    model::Unit made = job(uuid, "ann", "sums");
    made.total_time_seconds = std::move(times);
    made.metric(model::Metric::kAvgCpuUsage) = std::move(average);
    return made;
  }
  void write(std::vector<model::Unit> units, const std::string& cluster = "sums") {
    store::ClusterUpdate update;
    update.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
    update.window = {kNow - kHour, kNow};
    update.units = std::move(units);
    update.projects = std::vector<model::Project>{{.name = "sums", .users = {"ann", "ben"}}};
    ASSERT_TRUE(db_->writer().write(update));
  }
  std::string sums(const std::string& field, const std::string& user = "ann") {
    return body("usage/current?cluster_id=sums&field=" + field, user);
  }
};

TEST_F(UsageTest, AveragesOfWholeNumbersAreNotCut) {
  write({unit("1", {{"global", 50}}, {{"alloc_cputime", 100}}),
         unit("2", {{"global", 51}}, {{"alloc_cputime", 100}})});
  EXPECT_THAT(sums("avg_cpu_usage"), HasSubstr(R"("avg_cpu_usage":{"global":50.50000000})"));
}

TEST_F(UsageTest, RowsWithoutANameDoNotDiluteItsAverage) {
  write({unit("1", {{"global", 50}}, {{"alloc_cputime", 100}}),
         unit("2", {{"other", 7}}, {{"alloc_cputime", 300}})});
  EXPECT_THAT(sums("avg_cpu_usage"), HasSubstr(R"({"global":50,"other":7})"));
}

TEST_F(UsageTest, SumsBeyond64BitsStayNumbers) {
  const double huge = 9e18;
  write({unit("1", {}, {{"walltime", huge}}), unit("2", {}, {{"walltime", huge}})});
  EXPECT_THAT(sums("total_time_seconds"), HasSubstr(R"("walltime":18000000000000000000.00000000)"));
}

TEST_F(UsageTest, AGroupWithoutANameOfAnotherShows0AndWithoutWeight0) {
  auto other = unit("2", {{"special", 5}}, {{"alloc_cputime", 0}});
  other.username = "ben";
  write({unit("1", {{"global", 50}}, {{"alloc_cputime", 100}}), other});
  const std::string seen = sums("username&field=avg_cpu_usage");
  EXPECT_THAT(seen, HasSubstr(R"("username":"ann","avg_cpu_usage":{"global":50,"special":0})"));
  EXPECT_THAT(seen, HasSubstr(R"("username":"ben","avg_cpu_usage":{"global":0,"special":0})"));
}

TEST_F(UsageTest, NamesThatAnyUnitOfTheWindowHasAre0WhereNoRowOfTheAnswerHasThem) {
  auto foreign = unit("2", {{"special", 5}}, {{"alloc_cputime", 10}});
  foreign.project = "secret";
  foreign.username = "eve";
  foreign.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"rte", 3}};
  foreign.has_metric[static_cast<std::size_t>(model::Metric::kTotalCpuEnergyUsageKwh)] = true;
  write({unit("1", {{"global", 50}}, {{"alloc_cputime", 100}}), foreign});
  EXPECT_THAT(sums("avg_cpu_usage"), HasSubstr(R"("avg_cpu_usage":{"global":50,"special":0})"));
  EXPECT_THAT(sums("total_cpu_energy_usage_kwh"), HasSubstr(R"(_kwh":{"rte":0})"));
  // Units of other clusters and projects than those that the request names do not count.
  EXPECT_THAT(sums("avg_cpu_usage&project=sums"), Not(HasSubstr("special")));
  EXPECT_THAT(body("usage/current?field=avg_gpu_usage&cluster_id=hpc-a", "ada"),
              Not(HasSubstr("special")));
  EXPECT_THAT(body("usage/current/admin?cluster_id=sums&user=ann&field=avg_cpu_usage", "root"),
              HasSubstr(R"({"global":50,"special":0})"));
  EXPECT_THAT(body("usage/current/admin?cluster_id=sums", "root"), HasSubstr(R"("special":5)"));
}

TEST_F(UsageTest, UserOfAdminsMeansAllMembersOfTheirProjects) {
  const std::string seen =
      body("usage/global/admin?user=bob&cluster_id=hpc-b&field=username", "root");
  for (const char* name : {"ada", "bob", "fluids:svc"}) {
    EXPECT_THAT(seen, HasSubstr(fmt::format(R"("username":"{}")", name)));
  }
  EXPECT_THAT(seen, Not(HasSubstr("eve")));
}

TEST_F(UsageTest, FurtherColumnsToGroupBy) {
  auto other = unit("2", {}, {{"walltime", 5}});
  other.groupname = "chem";
  write({unit("1", {}, {{"walltime", 3}}), other});
  EXPECT_THAT(sums("num_units"), HasSubstr(R"("num_units":2)"));
  const std::string apart = sums("groupname&field=num_units&groupby=groupname");
  EXPECT_THAT(apart, HasSubstr(R"("num_units":1,"project":"","groupname":"chem")"));
  EXPECT_THAT(apart, HasSubstr(R"("num_units":1,"project":"","groupname":"grp")"));
}

}  // namespace
}  // namespace ceems::api
