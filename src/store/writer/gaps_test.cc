#include "store/writer/gaps.h"

#include "store/test_database.h"

namespace ceems::store {
namespace {

using model::Metric;

class Gaps : public EveryDatabase {
 protected:
  /// A job of two windows; the average of the second one is missing.
  void write_with_gap() {
    auto first = job("7", kNow + kMinute);
    with_times(first, 840, 1000);
    with(first, Metric::kAvgCpuUsage, {{"global", 10}});
    with(first, Metric::kTotalCpuEnergyUsageKwh, {{"total", 1}});
    write(kNow, kNow + 15 * kMinute, {first});
    auto second = job("7", kNow + kMinute, kNow + 20 * kMinute);
    with_times(second, 300, 500);
    auto with_gap = update(kNow + 15 * kMinute, kNow + 30 * kMinute, {second, job("8", 0)});
    with_gap.gaps = {{.id = 0,
                      .updater = "prom",
                      .parts = {"avg_cpu_usage.global", "total_cpu_energy_usage_kwh.total"},
                      .window = {}}};
    write(with_gap);
  }
};

TEST_P(Gaps, AreKeptWithTheirWindowAndFilledOnce) {
  write_with_gap();
  auto& writer = db_->writer();
  ASSERT_TRUE(writer.keeps_gaps());
  const auto gaps = writer.gaps("hpc");
  ASSERT_TRUE(gaps) << gaps.error().message;
  ASSERT_EQ(gaps->size(), 1U);
  EXPECT_EQ(gaps->front().updater, "prom");
  EXPECT_EQ(gaps->front().parts,
            (Texts{"avg_cpu_usage.global", "total_cpu_energy_usage_kwh.total"}));
  EXPECT_EQ(gaps->front().window.start_ms, kNow + 15 * kMinute);
  EXPECT_EQ(gaps->front().window.end_ms, kNow + 30 * kMinute);
  EXPECT_TRUE(writer.gaps("other")->empty());
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM units WHERE uuid='7'"), R"({"global":10})");

  auto units = writer.gap_units(gaps->front().id);
  ASSERT_TRUE(units) << units.error().message;
  ASSERT_EQ(units->size(), 2U);
  model::Unit& unit = units->front();
  EXPECT_EQ(unit.uuid, "7");
  EXPECT_EQ(unit.started_at_ts, kNow + kMinute);
  EXPECT_EQ(unit.ended_at_ts, kNow + 20 * kMinute);
  EXPECT_EQ(unit.total_time_seconds.at("alloc_cputime"), 500);
  with(unit, Metric::kAvgCpuUsage, {{"global", 40}});
  unit.total_time_seconds["used_cputime"] = 200;
  GapFill fill{.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
               .gap_id = gaps->front().id,
               .units = *units,
               .times = {"used_cputime"},
               .still_missing = {"total_cpu_energy_usage_kwh.total"}};
  ASSERT_TRUE(writer.fill_gap(fill));
  EXPECT_EQ(writer.gaps("hpc")->front().parts, (Texts{"total_cpu_energy_usage_kwh.total"}));

  auto rest = writer.gap_units(fill.gap_id);
  with(rest->front(), Metric::kTotalCpuEnergyUsageKwh, {{"total", 0.5}});
  fill.units = *rest;
  fill.times = {};
  fill.still_missing = {};
  ASSERT_TRUE(writer.fill_gap(fill));
  EXPECT_TRUE(writer.gaps("hpc")->empty());
  EXPECT_EQ(text("SELECT count(*) FROM ceems_gap_units"), "0");
  for (const char* table : {"units WHERE uuid='7'", "usage", "daily_usage"}) {
    EXPECT_EQ(text(std::string("SELECT avg_cpu_usage FROM ") + table), R"({"global":20})") << table;
    EXPECT_EQ(text(std::string("SELECT total_cpu_energy_usage_kwh FROM ") + table),
              R"({"total":1.5})")
        << table;
    EXPECT_EQ(text(std::string("SELECT total_time_seconds FROM ") + table),
              R"({"alloc_cputime":1500,"used_cputime":200,"walltime":1140})")
        << table;
  }
  // Filling counts no update and no unit.
  EXPECT_EQ(text("SELECT num_updates FROM units WHERE uuid='7'"), "2");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
  EXPECT_FALSE(writer.fill_gap(fill));
}

TEST_P(Gaps, AFailedFillChangesNothing) {
  write_with_gap();
  GapFill fill{.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
               .gap_id = 99,
               .units = {job("7", kNow + kMinute)},
               .times = {},
               .still_missing = {}};
  const auto done = db_->writer().fill_gap(fill);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(db_->writer().gaps("hpc")->size(), 1U);
}

TEST_P(Gaps, SurviveARestartAndGoWithThePurge) {
  write_with_gap();
  open();
  EXPECT_EQ(db_->writer().gaps("hpc")->size(), 1U);
  ASSERT_TRUE(db_->writer().purge(kNow + 30 * kMinute + 1));
  EXPECT_TRUE(db_->writer().gaps("hpc")->empty());
  EXPECT_EQ(text("SELECT count(*) FROM ceems_gap_units"), "0");
}

TEST_P(Gaps, UnitsThatArePurgedSinceAreLeftOut) {
  write_with_gap();
  const auto gap = db_->writer().gaps("hpc")->front();
  auto units = db_->writer().gap_units(gap.id).value();
  with(units.front(), Metric::kAvgCpuUsage, {{"global", 40}});
  execute("DELETE FROM units WHERE uuid='7'");
  ASSERT_TRUE(db_->writer().fill_gap({.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
                                      .gap_id = gap.id,
                                      .units = units,
                                      .times = {},
                                      .still_missing = {}}));
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM usage"), R"({"global":10})");
}

TEST_P(Gaps, WindowsWithoutAMetricDoNotDiluteItsAverage) {
  auto first = job("7", kNow + kMinute);
  with_times(first, 840, 1000);
  with(first, Metric::kAvgCpuUsage, {{"global", 10}});
  write(kNow, kNow + 15 * kMinute, {first});
  auto second = job("7", kNow + kMinute);
  with_times(second, 900, 3000);
  write(kNow + 15 * kMinute, kNow + 30 * kMinute, {second});
  auto third = job("7", kNow + kMinute);
  with_times(third, 900, 1000);
  with(third, Metric::kAvgCpuUsage, {{"global", 40}});
  write(kNow + 30 * kMinute, kNow + 45 * kMinute, {third});
  for (const char* table : {"units", "usage", "daily_usage"}) {
    EXPECT_EQ(text(std::string("SELECT avg_cpu_usage FROM ") + table), R"({"global":25})") << table;
  }
}

INSTANTIATE_TEST_SUITE_P(,
                         Gaps,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
