// The finisher on every kind of database: each end of a unit gets exactly one final report.
#include "api/report/finisher.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/accounting/accounting.h"
#include "report/stored.h"
#include "store/nodes.h"
#include "store/test_database.h"
#include "testing/eventually.h"

namespace ceems::api {
namespace {

using store::kDay;
using store::kHour;
using store::kMinute;
using store::kNow;
using ::testing::IsEmpty;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::int64_t kRun = 2 * kHour;

/// A TSDB that has measured every unit in the same way.
class FakeMeasurements final : public MeasurementSource {
 public:
  [[nodiscard]] bool measures(std::string_view cluster_id) const override {
    return cluster_id != "without";
  }
  Result<UnitMeasurements> measure(const std::string& /*cluster_id*/, const UnitRun& run) override {
    ++asked;
    if (failure || (refused == run.uuid)) {
      return fail(failure.value_or(Error{ErrorCode::kInvalidArgument, "too many samples"}));
    }
    const double seconds = static_cast<double>(run.ended_ms - run.started_ms) / 1000;
    if (!watts.empty()) {
      UnitMeasurements several{.method = "measured"};
      for (std::size_t i = 0; i < watts.size(); ++i) {
        several.nodes.push_back({.node = std::string(1, static_cast<char>('a' + i)),
                                 .cpus = 64,
                                 .joules = {{"node", watts[i] * seconds}},
                                 .node_cpus = 64,
                                 .covered_seconds = coverage * seconds});
      }
      return several;
    }
    return UnitMeasurements{.nodes = {{.node = "n1",
                                       .cpus = 4,
                                       .cpu_seconds = 3.8 * seconds,
                                       .cpu_used_max = 4,
                                       .mem_peak = 2 * kGiB,
                                       .idle_seconds = 0,
                                       .node_cpus = 64,
                                       .node_mem = 256 * kGiB,
                                       .covered_seconds = coverage * seconds}},
                            .method = "measured",
                            .marked = marked.contains(run.uuid)};
  }
  Result<std::vector<UnitMarks>> marks(const std::string& /*cluster_id*/,
                                       const std::vector<UnitRun>& runs) override {
    ++marks_asked;
    if (marks_failure) {
      return fail(*marks_failure);
    }
    std::vector<UnitMarks> all(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      all[i].nodes = {{.name = "n1", .regions = {{"solve", {.seconds = 3600, .count = 2}}}}};
      all[i].results = {{.name = "step", .unit = "", .n = marked.at(runs[i].uuid)}};
    }
    return all;
  }
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& /*cluster_id*/,
                                                    const std::vector<UnitRun>& runs) override {
    earlier_asked += runs.size();
    return std::vector<RunMeasurements>(runs.size(), {.mem_peak = 2 * kGiB});
  }
  Result<store::Strip> strip(const std::string& /*cluster_id*/, const UnitRun& /*run*/) override {
    ++strips_asked;
    if (strip_failure) {
      return fail(*strip_failure);
    }
    store::Strip strip;
    strip.cpu.fill(1);
    return strip;
  }
  double coverage = 1;
  std::vector<double> watts;  ///< of nodes a, b, c, …, which a unit has for itself
  std::optional<Error> strip_failure;
  std::size_t strips_asked = 0;
  std::optional<Error> failure;
  std::string refused;
  std::size_t asked = 0, earlier_asked = 0;
  std::map<std::string, double> marked;  ///< units with marks, and their results
  std::optional<Error> marks_failure;
  std::size_t marks_asked = 0;
};

/// A run of two hours that used 2 of its 32 GiB, and two hours of its day.
model::Unit wide_job(const std::string& uuid, std::int64_t ended_ms) {
  model::Unit unit = store::job(uuid, ended_ms - kRun, ended_ms);
  unit.name = "relax-" + uuid;
  unit.allocation =
      R"({"cpus":4,"gpus":0,"nodes":1,"mem":34359738368,"time_limit":86400,"req_cpus":4})";
  unit.tags = R"({"partition":"cpu"})";
  store::with_times(unit, 7200, 28800);
  store::with(unit, model::Metric::kAvgCpuUsage, {{"global", 95}});
  return store::with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", 0.5}});
}

class FinisherTest : public store::EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    at(kNow + kHour);
  }
  void at(std::int64_t ms) { clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(ms))); }
  /// A window with the ends of so many units, one in each second.
  void end_units(int count, const std::string& cluster = "hpc") {
    std::vector<model::Unit> units;
    for (int i = 0; i < count; ++i) {
      units.push_back(wide_job(std::to_string(i), kNow + 1000 + i * 1000));
    }
    write(store::update(kNow, kNow + kHour, units, cluster));
  }
  /// Makes all reports that are due, as a program that has just been started.
  std::size_t finish_all(const Accounting* accounting = nullptr) {
    const ReportMaker maker(db_->reader(), &measurements_, rules_, accounting);
    Finisher finisher({}, db_->reader(), db_->writer(), maker, registry_, clock_);
    std::size_t made = 0;
    while (true) {
      const auto outcome = finisher.run_batch();
      EXPECT_TRUE(outcome) << outcome.error().message;
      made += outcome ? outcome->made : 0;
      if (!outcome || !outcome->more_due) {
        return made;
      }
    }
  }
  double made(const char* state) {
    return static_cast<double>(
        registry_.counters("ceems_api_server_reports_made_total", {}, {"state"})
            .with({state})
            .value());
  }
  [[nodiscard]] std::string states() const {
    return text("SELECT state FROM ceems_unit_reports ORDER BY cluster_id, ended_at_ts");
  }
  report::Report stored(const std::string& uuid, std::int64_t ended_ms) {
    const auto found = db_->reader().stored_report(
        {.cluster_id = "hpc", .uuid = uuid, .started_at_ts = ended_ms - kRun});
    EXPECT_TRUE(found && *found);
    return found && *found ? report::from_stored((*found)->body).value() : report::Report{};
  }

  FakeMeasurements measurements_;
  advice::RulesInUse rules_;
  metrics::Registry registry_{"ceems_api_server", "the API server"};
};

/// NODE USER FAMILY EFFECT OUTCOME.
std::vector<std::string> rows_on_nodes(store::Reader& reader) {
  std::vector<std::string> rows;
  const auto found = reader.node_effects("hpc", 0);
  EXPECT_TRUE(found);
  for (const store::NodeEffect& one : *found) {
    rows.push_back(fmt::format("{} {} {} {} {}", one.on.node, one.username, one.family,
                               one.on.effect ? fmt::format("{:.4f}", *one.on.effect) : "-",
                               static_cast<int>(one.outcome)));
  }
  return rows;
}

TEST_P(FinisherTest, StoresWhatNodesDrewWithTheReport) {
  end_units(1);
  measurements_.watts = {500, 500, 530, 490, 500};
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_THAT(rows_on_nodes(db_->reader()),
              ::testing::ElementsAre("e ada relax-# 0.0000 0", "d ada relax-# -0.0202 0",
                                     "c ada relax-# 0.0583 0", "b ada relax-# 0.0000 0",
                                     "a ada relax-# 0.0000 0"));
}

TEST_P(FinisherTest, ComparesOnlyNodesOfAClass) {
  store::NodeUpdate nodes{
      .cluster_id = "hpc", .start_ms = kNow, .end_ms = kNow + 1000, .day_ms = kNow};
  nodes.facts = {{.node = "d", .node_class = "big"}, {.node = "e", .node_class = "big"}};
  ASSERT_TRUE(db_->writer().write_nodes(nodes));
  end_units(1);
  measurements_.watts = {500, 500, 530, 490, 500};
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_THAT(rows_on_nodes(db_->reader()),
              ::testing::ElementsAre("e ada relax-# - 0", "d ada relax-# - 0", "c ada relax-# - 0",
                                     "b ada relax-# - 0", "a ada relax-# - 0"));
}

INSTANTIATE_TEST_SUITE_P(Databases,
                         FinisherTest,
                         ::testing::Values(store::Backend::kSqlite, store::Backend::kPostgres),
                         store::backend_name);

TEST_P(FinisherTest, StoredReportsHaveTheirCost) {
  end_units(1);
  const Accounting accounting({}, {.currency = "EUR", .prices = {.kwh = 0.5, .core_hour = 0.1}},
                              nullptr, db_->reader(), registry_);
  EXPECT_EQ(finish_all(&accounting), 1U);
  const report::Report report = stored("0", kNow + 1000);
  EXPECT_EQ(report.cost.amount, 0.5 * 0.5 + 0.1 * 8);
  EXPECT_EQ(report.cost.currency, "EUR");
}

TEST_P(FinisherTest, ReportsHaveWhatUnitsHaveMarked) {
  measurements_.marked = {{"0", 100}, {"2", 300}};
  end_units(3);
  EXPECT_EQ(finish_all(), 3U);
  EXPECT_EQ(measurements_.marks_asked, 1U) << "of both at once";
  const report::Report first = stored("0", kNow + 1000);
  ASSERT_EQ(first.phases.size(), 1U);
  EXPECT_EQ(first.phases[0].region, "solve");
  EXPECT_EQ(first.phases[0].share, 0.5);
  ASSERT_EQ(first.results.size(), 1U);
  EXPECT_EQ(first.results[0].joules, 18'000);  // 0.5 kWh
  EXPECT_TRUE(first.results[0].family.empty());
  EXPECT_TRUE(stored("1", kNow + 2000).results.empty());
  EXPECT_EQ(stored("2", kNow + 3000).results.at(0).joules, 6000);

  measurements_.marked = {{"9", 50}};
  write(store::update(kNow + kHour, kNow + 2 * kHour, {wide_job("9", kNow + 2 * kHour)}, "hpc"));
  at(kNow + 3 * kHour);
  EXPECT_EQ(finish_all(), 1U);
  const report::Report later = stored("9", kNow + 2 * kHour);
  ASSERT_EQ(later.results.size(), 1U);
  ASSERT_EQ(later.results[0].family.size(), 2U);
  EXPECT_EQ(later.results[0].family[0].uuid, "2");  // the newest first
  EXPECT_EQ(later.results[0].family[1].joules, 18'000);
  EXPECT_EQ(later.results[0].family_joules, 12'000);
}

TEST_P(FinisherTest, NoReportWaitsForMarks) {
  measurements_.marked = {{"0", 100}};
  measurements_.marks_failure = Error{ErrorCode::kUnavailable, "down"};
  end_units(2);
  EXPECT_EQ(finish_all(), 2U);
  EXPECT_EQ(made("final"), 2);
  EXPECT_TRUE(stored("0", kNow + 1000).results.empty());
  measurements_.marked.clear();
  end_units(1, "hpc-2");
  measurements_.marks_asked = 0;
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(measurements_.marks_asked, 0U) << "nothing is asked without marks";
}

TEST_P(FinisherTest, MakesOneFinalReportOfEachEnd) {
  constexpr int kUnits = 120;
  end_units(kUnits);
  EXPECT_EQ(finish_all(), 120U);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_reports WHERE state = 2"), "120");
  EXPECT_EQ(made("final"), kUnits);
  EXPECT_EQ(made("partial"), 0);
  EXPECT_EQ(measurements_.asked, 120U);
  EXPECT_EQ(finish_all(), 0U);
  EXPECT_EQ(made("final"), kUnits);
  const report::Report report = stored("119", kNow + 120'000);
  EXPECT_EQ(report.coverage, 1);
  EXPECT_EQ(report.job.name, "relax-119");
  EXPECT_EQ(report.use.mem_peak_node, 2 * kGiB);
  EXPECT_EQ(report.compared.runs, 20U);
  EXPECT_EQ(report.energy.kwh, 0.5);
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].rule, "time-limit");
  EXPECT_EQ(report.findings[0].confidence, advice::Confidence::kSure);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_findings WHERE rule = 'mem-excess'"), "120");
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts WHERE advice <> 0"), "120");
}

TEST_P(FinisherTest, StoresVerdictsAndWhatWasUsedOverTime) {
  end_units(2);
  end_units(1, "without");
  EXPECT_EQ(finish_all(), 3U);
  // 2 if a finding is important (3), 1 if one is a suggestion (2), otherwise 0.
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts AS f WHERE cluster_id = 'hpc' AND"
                 " verdict = (SELECT max(CASE WHEN severity > 1 THEN severity - 1 ELSE 0 END)"
                 " FROM ceems_findings AS g WHERE g.cluster_id = f.cluster_id AND g.uuid = f.uuid"
                 " AND g.started_at_ts = f.started_at_ts)"),
            "2");
  EXPECT_EQ(
      text("SELECT count(*) FROM ceems_unit_facts WHERE strip = '" + std::string(24, '_') + "'"),
      "2");
  EXPECT_EQ(measurements_.strips_asked, 2U);
  EXPECT_EQ(finish_all(), 0U);
  EXPECT_EQ(measurements_.strips_asked, 2U) << "once for each";
}

TEST_P(FinisherTest, NoReportWaitsForWhatWasUsedOverTime) {
  end_units(3);
  measurements_.strip_failure = Error{ErrorCode::kUnavailable, "down"};
  EXPECT_EQ(finish_all(), 3U);
  EXPECT_EQ(made("final"), 3);
  EXPECT_EQ(measurements_.strips_asked, 1U) << "the others would wait as long";
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts WHERE strip <> ''"), "0");
}

TEST_P(FinisherTest, AsksForWhatWasUsedOverTimeWhenTheReportIsFinal) {
  end_units(1);
  measurements_.coverage = 0.5;
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(made("partial"), 1);
  EXPECT_EQ(measurements_.strips_asked, 0U);
}

TEST_P(FinisherTest, AsksForEarlierRunsOnlyIfTheyHaveNoReport) {
  end_units(120);
  finish_all();
  // The newest come first: of those before them, only the 19 that are not in the same batch.
  EXPECT_EQ(measurements_.earlier_asked, 19U + 19U);
  measurements_.earlier_asked = 0;
  write(store::update(kNow + kHour, kNow + 2 * kHour, {wide_job("200", kNow + kHour + kMinute)}));
  at(kNow + 2 * kHour);
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(measurements_.earlier_asked, 0U);
  EXPECT_EQ(stored("200", kNow + kHour + kMinute).compared.runs, 20U);
}

TEST_P(FinisherTest, WaitsForTheLastSamples) {
  end_units(1);
  at(kNow + 1000 + kSettleMs - 1);
  EXPECT_EQ(finish_all(), 0U);
  at(kNow + 1000 + kSettleMs);
  EXPECT_EQ(finish_all(), 1U);
}

TEST_P(FinisherTest, LosesNothingWhileTheTsdbIsDown) {
  end_units(60);
  end_units(2, "without");
  measurements_.failure = Error{ErrorCode::kUnavailable, "down"};
  EXPECT_EQ(finish_all(), 2U);  // units of the other cluster
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_reports WHERE state = 0"), "60");
  at(kNow + 2 * kDay);
  EXPECT_EQ(finish_all(), 0U);
  measurements_.failure.reset();
  EXPECT_EQ(finish_all(), 60U);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_reports WHERE state = 2"), "62");
  EXPECT_EQ(made("final"), 62);
}

TEST_P(FinisherTest, ContinuesAfterARestart) {
  end_units(120);
  const ReportMaker maker(db_->reader(), &measurements_, rules_);
  {
    Finisher finisher({}, db_->reader(), db_->writer(), maker, registry_, clock_);
    EXPECT_EQ(finisher.run_batch()->made, 50U);
  }
  open();
  ASSERT_TRUE(db_->writer().lead().value());
  EXPECT_EQ(finish_all(), 70U);
  EXPECT_EQ(made("final"), 120);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_reports WHERE state = 2"), "120");
}

TEST_P(FinisherTest, OneUnitThatAsksForTooMuchDoesNotStopTheOthers) {
  end_units(3);
  measurements_.refused = "1";
  EXPECT_EQ(finish_all(), 3U);
  EXPECT_EQ(states(), "2 1 2");
  at(kNow + 2 * kDay);
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(states(), "2 2 2");
}

TEST_P(FinisherTest, LateSamplesMakeAPartialReportFinal) {
  end_units(1);
  measurements_.coverage = 0.8;
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(states(), "1");
  EXPECT_EQ(made("partial"), 1);
  EXPECT_THAT(stored("0", kNow + 1000).findings, IsEmpty());
  EXPECT_EQ(finish_all(), 0U);
  measurements_.coverage = 0.95;
  at(kNow + 2 * kHour);
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(states(), "2");
  EXPECT_EQ(made("final"), 1);
  EXPECT_FALSE(stored("0", kNow + 1000).findings.empty());
}

TEST_P(FinisherTest, AfterADayReportsAreFinalInAnyCase) {
  end_units(1);
  measurements_.coverage = 0.5;
  std::size_t all = finish_all();
  for (std::int64_t hour = 2; hour <= 30; ++hour) {
    at(kNow + hour * kHour);
    all += finish_all();
  }
  EXPECT_EQ(states(), "2");
  EXPECT_EQ(made("final"), 1);
  EXPECT_LE(all, 25U);
  EXPECT_EQ(stored("0", kNow + 1000).coverage, 0.5);
  EXPECT_THAT(stored("0", kNow + 1000).findings, IsEmpty());
}

TEST_P(FinisherTest, WaitsForGapsOfTheWindowsInWhichTheUnitLived) {
  store::ClusterUpdate window = store::update(kNow, kNow + kHour, {wide_job("0", kNow + kMinute)});
  window.gaps = {{.updater = "tsdb", .parts = {"power"}}};
  write(window);
  write(
      store::update(kNow + kHour, kNow + 2 * kHour, {wide_job("1", kNow + kHour + 30 * kMinute)}));
  at(kNow + 2 * kHour);
  EXPECT_EQ(finish_all(), 2U);
  EXPECT_EQ(states(), "1 1");  // the second one ran in that window, too
  at(kNow + 3 * kHour);
  EXPECT_EQ(finish_all(), 0U);
  const auto gaps = db_->writer().gaps("hpc").value();
  ASSERT_EQ(gaps.size(), 1U);
  auto units = db_->writer().gap_units(gaps[0].id).value();
  ASSERT_EQ(units.size(), 1U);
  store::with(units[0], model::Metric::kTotalGpuEnergyUsageKwh, {{"total", 0.25}});
  ASSERT_TRUE(db_->writer().fill_gap({.cluster = window.cluster,
                                      .gap_id = gaps[0].id,
                                      .units = units,
                                      .times = {},
                                      .still_missing = {}}));
  at(kNow + 4 * kHour);
  EXPECT_EQ(finish_all(), 2U);
  EXPECT_EQ(states(), "2 2");
  EXPECT_EQ(stored("0", kNow + kMinute).energy.kwh, 0.75);
}

TEST_P(FinisherTest, AGapThatStaysOpenDelaysReportsByADay) {
  store::ClusterUpdate window = store::update(kNow, kNow + kHour, {wide_job("0", kNow + kMinute)});
  window.gaps = {{.updater = "tsdb", .parts = {"power"}}};
  write(window);
  EXPECT_EQ(finish_all(), 1U);
  at(kNow + kDay);
  EXPECT_EQ(finish_all(), 0U);
  at(kNow + kMinute + kDay);
  finish_all();
  at(kNow + kDay + kHour);
  finish_all();
  EXPECT_EQ(states(), "2");
  EXPECT_EQ(made("final"), 1);
}

TEST_P(FinisherTest, ShortRunsAndUnitsWithoutTsdbAreFinalAtOnce) {
  measurements_.coverage = 0;
  model::Unit unit = wide_job("0", kNow + kMinute);
  unit.started_at_ts = kNow;
  unit.started_at = "short";
  write(kNow, kNow + kHour, {unit});
  end_units(1, "without");
  EXPECT_EQ(finish_all(), 2U);
  EXPECT_EQ(states(), "2 2");
}

TEST_P(FinisherTest, DropsReportsOfUnitsThatAreGone) {
  end_units(2);
  execute("DELETE FROM units WHERE uuid = '0'");
  EXPECT_EQ(finish_all(), 1U);
  EXPECT_EQ(text("SELECT uuid FROM ceems_unit_reports"), "1");
}

TEST_P(FinisherTest, SaysNothingBelowACoverageOfNineTenths) {
  std::size_t findings = 0;
  for (int percent = 0; percent < 100; percent += 3) {
    measurements_.coverage = percent / 100.0;
    std::vector<model::Unit> units;
    for (const char* state : {"COMPLETED", "OUT_OF_MEMORY", "TIMEOUT", "FAILED", "NODE_FAIL"}) {
      units.push_back(wide_job(fmt::format("{}-{}", state, percent), kNow + kMinute));
      units.back().state = state;
      units.back().username = fmt::format("user-{}", percent);
    }
    const std::int64_t start = kNow + percent;
    write(start, percent == 99 ? kNow + kHour : start + 3, units);
    ASSERT_EQ(finish_all(), 5U);
    findings += static_cast<std::size_t>(std::stoi(text(fmt::format(
        "SELECT count(*) FROM ceems_findings WHERE rule <> 'node-fail' AND uuid LIKE '%-{}'",
        percent))));
    if (percent < 90) {
      ASSERT_EQ(findings, 0U) << percent;
    }
  }
  EXPECT_GT(findings, 0U);
}

TEST_P(FinisherTest, WorksByItsThreadWhileItsProgramLeads) {
  end_units(60);
  const ReportMaker maker(db_->reader(), &measurements_, rules_);
  ReportOptions options;
  options.rate = 1000;
  Finisher finisher(options, db_->reader(), db_->writer(), maker, registry_, clock_);
  finisher.start();
  finisher.wake(false);
  finisher.wake(true);
  EXPECT_TRUE(testing::eventually([this] { return db_->reader().open_reports().value() == 0; }));
  finisher.stop();
  EXPECT_EQ(made("final"), 60);
}

TEST_P(FinisherTest, PurgesWhatIsOlderThanItIsKept) {
  end_units(2);
  finish_all();
  const ReportMaker maker(db_->reader(), &measurements_, rules_);
  ReportOptions options;
  options.keep = std::chrono::days(30);
  at(kNow + 30 * kDay + 1500);
  Finisher finisher(options, db_->reader(), db_->writer(), maker, registry_, clock_);
  finisher.start();
  finisher.wake(true);
  EXPECT_TRUE(testing::eventually(
      [this] { return text("SELECT count(*) FROM ceems_unit_reports") == "1"; }));
  finisher.stop();
  EXPECT_EQ(text("SELECT uuid FROM ceems_unit_reports"), "1");
}

class PgFinisherTest : public FinisherTest {};
INSTANTIATE_TEST_SUITE_P(Postgres,
                         PgFinisherTest,
                         ::testing::Values(store::Backend::kPostgres),
                         store::backend_name);

TEST_P(PgFinisherTest, OnlyTheProgramThatLeadsStoresReports) {
  end_units(3);
  const auto other = another();
  ASSERT_TRUE(other);
  ASSERT_FALSE((*other)->writer().lead().value());
  const ReportMaker maker((*other)->reader(), &measurements_, rules_);
  Finisher second({}, (*other)->reader(), (*other)->writer(), maker, registry_, clock_);
  EXPECT_EQ(second.run_batch().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(states(), "0 0 0");
  EXPECT_EQ(finish_all(), 3U);
  EXPECT_EQ(second.run_batch()->made, 0U);
}

}  // namespace
}  // namespace ceems::api
