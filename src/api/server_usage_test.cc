// Arithmetic and reach of usage/current, as answers show it.
#include <map>
#include <string>
#include <vector>

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

TEST_F(UsageTest, CustomMetricsAreShownOnlyWhereTheyExist) {
  EXPECT_THAT(body("usage/current?cluster_id=hpc-a", "ada"), Not(HasSubstr("custom_stats")));
  custom_stats_ = true;
  open();
  make();
  auto measured = unit("1", {{"global", 50}}, {{"walltime", 100}});
  for (const auto& [metric, map] : std::map<model::Metric, model::MetricMap>{
           {model::Metric::kTotalCustomStats, {{"misses", 5}}},
           {model::Metric::kAvgCustomStats, {{"sm", 61.5}}},
           {model::Metric::kMinCustomStats, {{"temp", 41}}},
           {model::Metric::kMaxCustomStats, {{"temp", 78}}}}) {
    store::with(measured, metric, map);
  }
  auto other = unit("2", {}, {{"walltime", 300}});
  other.username = "ben";
  write({measured, other});
  const std::string stats =
      R"("total_custom_stats":{"misses":5},"avg_custom_stats":{"sm":61.50000000},)"
      R"("min_custom_stats":{"temp":41},"max_custom_stats":{"temp":78})";
  for (const char* target :
       {"usage/current?cluster_id=sums", "usage/current?cluster_id=sums&experimental",
        "usage/global?cluster_id=sums", "units?cluster_id=sums", "units/admin?cluster_id=sums"}) {
    const bool admin = std::string(target).starts_with("units/admin");
    EXPECT_THAT(body(target, admin ? "root" : "ann"), HasSubstr(stats)) << target;
  }
  // Names of others are 0 in usage, but a least or greatest value cannot be made up.
  EXPECT_THAT(sums("username&field=min_custom_stats&field=total_custom_stats"),
              HasSubstr(R"("username":"ben","total_custom_stats":{"misses":0}})"));
  EXPECT_THAT(sums("max_custom_stats&__terminated"),
              HasSubstr(R"("max_custom_stats":{"temp":78})"));
}

TEST_F(UsageTest, PatternsFilterUsage) {
  auto other = unit("2", {{"special", 1}}, {{"alloc_cputime", 5}});
  other.username = "ben";
  write({unit("1", {{"global", 50}}, {{"alloc_cputime", 100}}), other});
  for (const char* target : {"usage/current?cluster_id=sums", "usage/global?cluster_id=sums"}) {
    const std::string all = body(target, "ann");
    EXPECT_THAT(all, HasSubstr(R"("username":"ben")"));
    const std::string some = body(std::string(target) + "&match=username:a.*", "ann");
    EXPECT_THAT(some, HasSubstr(R"("username":"ann")")) << target;
    EXPECT_THAT(some, Not(HasSubstr(R"("username":"ben")"))) << target;
    // The field need not be part of the answer.
    const std::string project =
        body(std::string(target) + "&match=username:a.*&field=project", "ann");
    EXPECT_THAT(project, HasSubstr(R"("project":"sums")")) << target;
    EXPECT_EQ(project.find(R"("project")"), project.rfind(R"("project")")) << project;
  }
  EXPECT_EQ(get("/api/v1/usage/current?match=username:(", "ann").status, 400);
  EXPECT_EQ(get("/api/v1/usage/global?match=nothing:x", "ann").status, 400);
}

TEST_F(UsageTest, PagesOfFilteredUnitsAreFull) {
  const std::string query =
      "units/admin?cluster_id=hpc-a&running&field=uuid&match=username:ada|eve";
  std::vector<std::string> seen;
  std::string next = "?" + query.substr(query.find('?') + 1) + "&limit=1";
  for (int page = 0; page < 3; ++page) {
    const auto answer = get("/api/v1/units/admin" + next, "root");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const std::string key = R"("uuid":")";
    const auto at = answer.body.find(key) + key.size();
    seen.push_back(answer.body.substr(at, answer.body.find('"', at) - at));
    const std::string link = header(answer, "Link");
    EXPECT_EQ(link == "(none)", page == 2) << link;
    next = link.substr(1, link.find('>') - 1);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "10", "3"}));  // ada's two and eve's
}

TEST_F(UsageTest, PartitionsFilterUnitsAndUsage) {
  auto gpu = unit("1", {}, {{"walltime", 7}});
  gpu.tags = R"({"partition":"gpu","qos":"long","workdir":"/home/ann"})";
  auto cpu = unit("2", {}, {{"walltime", 30}});
  cpu.tags = R"({"partition":"cpu","qos":"long"})";
  write({gpu, cpu});
  EXPECT_THAT(sums("total_time_seconds&tags.qos=long"), HasSubstr(R"("walltime":37)"));
  EXPECT_THAT(sums("total_time_seconds&tags.partition=gpu"), HasSubstr(R"("walltime":7)"));
  EXPECT_THAT(sums("total_time_seconds&tags.partition=gpu&tags.partition=cpu"),
              HasSubstr(R"("walltime":37)"));
  EXPECT_EQ(body("usage/current?cluster_id=sums&tags.partition=none", "ann"),
            body("usage/current?cluster_id=none", "ann"));
  // Tags that a person writes cannot be filtered by: they would reveal other users' units.
  EXPECT_THAT(sums("total_time_seconds&tags.workdir=none"), HasSubstr(R"("walltime":37)"));
  EXPECT_EQ(get("/api/v1/usage/current?experimental&tags.partition=gpu", "ann").status, 400);
  const std::string units = body("units?cluster_id=sums&tags.partition=gpu&field=uuid", "ann");
  EXPECT_THAT(units, HasSubstr(R"("uuid":"1")"));
  EXPECT_THAT(units, Not(HasSubstr(R"("uuid":"2")")));
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
