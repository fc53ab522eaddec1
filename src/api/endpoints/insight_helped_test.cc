// What followed suggestions brought, through the API.
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "base/time/durations.h"
#include "store/facts.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HelpedTest : public ServerTest {
 protected:
  /// A run of two hours with so many GPUs, of which `unused` kWh were not used, and its report.
  void run(const std::string& uuid,
           const std::string& user,
           std::int64_t days_ago,
           int gpus,
           double unused,
           const std::string& rule,
           store::Verdict verdict = store::Verdict::kFits) {
    model::Unit unit = job(uuid, user, user == "eve" ? "optics" : "fluids");
    unit.name = "<i>train_" + uuid;
    unit.ended_at_ts = kNow - days_ago * kDayMs;
    unit.started_at_ts = unit.ended_at_ts - 2 * kHour;
    unit.allocation = fmt::format(R"({{"cpus":16,"gpus":{},"mem":68719476736,"nodes":1}})", gpus);
    unit.total_time_seconds = {{"walltime", 7200}};
    unit.idle_kwh = unused;
    unit.not_used_kwh = unused;
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {window_, window_ + 1};
    ++window_;
    update.units = {unit};
    write(update);
    store::ReportRow row{.key = {"hpc-a", uuid, unit.started_at_ts},
                         .ended_at_ts = unit.ended_at_ts,
                         .final = true,
                         .verdict = verdict};
    if (!rule.empty()) {
      row.findings = {{.rule = rule, .numbers = "{}"}};
    }
    ASSERT_TRUE(db_->writer().store_reports({row}));
  }

  std::string body(const std::string& target, const std::string& user) {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body;
  }

 private:
  std::int64_t window_ = kNow;
};

TEST_F(HelpedTest, RequestsThatFollowASuggestionAreCounted) {
  run("101", "ada", 20, 4, 1.5, "gpu-unused", store::Verdict::kSmaller);
  run("102", "ada", 10, 1, 0.25, "");
  run("103", "ada", 9, 1, 0.25, "");
  run("104", "ada", 8, 1, 0.25, "", store::Verdict::kUnknown);  // nothing was measured
  run("201", "eve", 20, 4, 1.5, "gpu-none", store::Verdict::kLook);
  run("202", "eve", 10, 2, 0.5, "");
  const std::string ada =
      R"([{"cluster_id":"hpc-a","project":"fluids","rule":"gpu-unused","kinds":1,"runs":2,)"
      R"("core_hours":0,"gpu_hours":12,"gib_hours":0,"kwh":2.5}])";
  EXPECT_THAT(body("insight/helped", "ada"), HasSubstr("\"data\":" + ada));
  EXPECT_THAT(body("insight/helped", "bob"), HasSubstr(R"("data":[])"));
  const std::string all = body("insight/helped/admin", "root");
  EXPECT_THAT(all, HasSubstr(R"("project":"optics","rule":"gpu-none","kinds":1,"runs":1)"));
  EXPECT_THAT(all, HasSubstr(R"("project":"fluids","rule":"gpu-unused","kinds":1,"runs":2)"));
  EXPECT_THAT(all, Not(HasSubstr("train")));
  EXPECT_THAT(body("insight/helped/admin?project=optics", "root"), Not(HasSubstr("fluids")));
  EXPECT_EQ(get("/api/v1/insight/helped/admin", "ada").status, 403);
}

TEST_F(HelpedTest, SumsByRuleNameNoProject) {
  for (const std::string user : {"ada", "eve"}) {
    run("1" + user, user, 20, 4, 1, "gpu-unused", store::Verdict::kSmaller);
    run("2" + user, user, 10, 2, 1, "");
  }
  EXPECT_THAT(body("insight/helped/admin?by=rule", "root"),
              HasSubstr(R"("data":[{"rule":"gpu-unused","kinds":2,"runs":2,"core_hours":0,)"
                        R"("gpu_hours":8,"gib_hours":0,"kwh":0}])"));
}

TEST_F(HelpedTest, OnlyRunsOfThePeriodCountAndTheSuggestionMayBeOlder) {
  run("101", "ada", 20, 4, 1.5, "gpu-unused", store::Verdict::kSmaller);
  run("102", "ada", 10, 1, 0.25, "");
  run("103", "ada", 5, 1, 0.25, "");
  const auto since = [](std::int64_t days) {
    return fmt::format("insight/helped?from={}", (kNow - days * kDayMs) / 1000);
  };
  EXPECT_THAT(body(since(7), "ada"), HasSubstr(R"("runs":1,)"));
  EXPECT_THAT(body(since(15), "ada"), HasSubstr(R"("runs":2,)"));
  EXPECT_THAT(body(since(1), "ada"), HasSubstr(R"("data":[])"));
  for (const std::string wrong : {"by=user", "from=1&to=1", "from=1&to=40000000", "from=x"}) {
    EXPECT_EQ(get("/api/v1/insight/helped?" + wrong, "ada").status, 400) << wrong;
  }
}

}  // namespace
}  // namespace ceems::api
