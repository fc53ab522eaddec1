#include "api/mail/report_source.h"

#include <gmock/gmock.h>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

class MailSource : public ServerTest {
 protected:
  MailReports source(bool measured) {
    return {db_->reader(), server_->reports(),
            [measured](const std::string& /*cluster*/) { return measured; }, clock_};
  }
};

TEST_F(MailSource, ReportsOnlyOwnJobsThatEndedLately) {
  const std::int64_t ended = kNow - kHour / 2;
  auto reports = source(false);
  const auto known = reports.report("hpc-a", "ada", "1", ended - 1);
  ASSERT_TRUE(known && *known);
  EXPECT_EQ((*known)->report.uuid, "1");
  EXPECT_EQ((*known)->report.job.user, "ada");
  EXPECT_TRUE((*known)->final) << "nothing more can come without a TSDB";
  EXPECT_FALSE((*source(true).report("hpc-a", "ada", "1", 0))->final);
  // An earlier run of a requeued job, somebody else's job, a running one, and none.
  EXPECT_FALSE(reports.report("hpc-a", "ada", "1", ended + 1)->has_value());
  EXPECT_FALSE(reports.report("hpc-a", "ada", "2", 0)->has_value());
  EXPECT_FALSE(reports.report("hpc-a", "ada", "10", 0)->has_value());
  EXPECT_FALSE(reports.report("hpc-a", "ada", "99", 0)->has_value());
  EXPECT_FALSE(reports.report("hpc-z", "ada", "1", 0)->has_value());
}

TEST_F(MailSource, AddsUpTheEnergyOfTasks) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  std::vector<std::string> ids;
  for (int i = 0; i < 450; ++i) {
    model::Unit unit = job(std::to_string(1000 + i), i == 7 ? "eve" : "ada", "fluids");
    unit.started_at_ts = kNow;
    unit.ended_at_ts = kNow + 1000;
    unit.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"total", 0.5}};
    unit.has_metric[static_cast<std::size_t>(model::Metric::kTotalCpuEnergyUsageKwh)] = true;
    ids.push_back(unit.uuid);
    update.units.push_back(unit);
  }
  ids.emplace_back("99999");
  write(update);
  mail::ArraySums sums;
  ASSERT_TRUE(source(false).add_energy("hpc-a", "ada", ids, sums));
  EXPECT_EQ(sums.known, 449U) << "not that of somebody else";
  EXPECT_EQ(sums.kwh, 224.5);
}

}  // namespace
}  // namespace ceems::api
