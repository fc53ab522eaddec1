// Reports in every kind of database: queued by windows, stored once, found, purged.
#include "store/reports.h"

#include <stop_token>
#include <string>

#include <gmock/gmock.h>

#include "store/advice_rules.h"
#include "store/schema/tables.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Reports : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (db_ == nullptr) {
      return;
    }
    model::Unit eve = job("3", kNow + kMinute, kNow + 10 * kMinute);
    eve.username = "eve";
    eve.project = "optics";
    model::Unit hidden = job("4", kNow, kNow + kMinute);
    hidden.ignore = true;
    write(kNow, kNow + kHour,
          {job("1", kNow - kHour, kNow + 30 * kMinute), job("2", kNow + kMinute), eve, hidden,
           job("5", 0, kNow + kMinute)});
  }

  std::vector<std::string> due(std::int64_t now_ms = kNow + kHour,
                               const std::vector<std::string>& without = {}) {
    std::vector<std::string> ids;
    const auto found = db_->reader().due_reports(now_ms, now_ms, without, 10);
    EXPECT_TRUE(found) << found.error().message;
    for (const DueReport& one : found.value()) {
      ids.push_back(one.key.uuid);
    }
    return ids;
  }
  static ReportKey key(const std::string& uuid) {
    return {.cluster_id = "hpc",
            .uuid = uuid,
            .started_at_ts = uuid == "1" ? kNow - kHour : kNow + kMinute};
  }
  static ReportRow report(const std::string& uuid, bool final, const std::string& body = "body") {
    ReportRow row{.key = key(uuid),
                  .ended_at_ts = kNow + (uuid == "1" ? 30 : 10) * kMinute,
                  .final = final,
                  .due_ms = kNow + 2 * kHour,
                  .made_ms = kNow + kHour,
                  .version = 1,
                  .coverage = 0.998,
                  .numbers = {.mem_peak = 2e9,
                              .cpu_used_max = 1.5,
                              .gpu_busy_seconds = 300.25,
                              .gpus = 2,
                              .gpus_unused = 1},
                  .body = body};
    row.findings = {{.rule = "mem-excess",
                     .severity = 2,
                     .confidence = 1,
                     .runs = 6,
                     .saves_kwh = 0.25,
                     .numbers = R"({"want":3})"},
                    {.rule = "of-the-site", .severity = 1, .numbers = "{}"}};
    return row;
  }
  [[nodiscard]] std::string advice(const std::string& uuid) const {
    return text("SELECT advice FROM ceems_unit_facts WHERE uuid = '" + uuid + "'");
  }
  static FactFilter everybodys() {
    FactFilter filter;
    filter.owners.everybody = true;
    filter.names.everybody = true;
    filter.advice = any_advice();
    return filter;
  }
};

INSTANTIATE_TEST_SUITE_P(Databases,
                         Reports,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

TEST_P(Reports, OfUnitsThatHaveEndedAreQueuedByTheirWindow) {
  EXPECT_THAT(due(), ElementsAre("1", "3"));  // the newest end first
  EXPECT_EQ(db_->reader().open_reports().value(), 2);
  EXPECT_THAT(due(kNow + 20 * kMinute), ElementsAre("3"));
  EXPECT_THAT(due(kNow + kHour, {"hpc", "other"}), IsEmpty());
  EXPECT_THAT(due(kNow + kHour, {"other"}), ElementsAre("1", "3"));
  EXPECT_EQ(db_->reader().stored_report(key("1")).value(), std::nullopt);
  // A unit that is reported again is not queued again, and one that ends later is.
  write(kNow + kHour, kNow + 2 * kHour,
        {job("1", kNow - kHour, kNow + 30 * kMinute), job("2", kNow + kMinute, kNow + 2 * kHour)});
  EXPECT_THAT(due(kNow + 2 * kHour), ElementsAre("2", "1", "3"));
}

TEST_P(Reports, BecomeFinalOnce) {
  Writer& writer = db_->writer();
  EXPECT_EQ(writer.store_reports({report("1", false, "partial")}).value(), 0U);
  auto stored = db_->reader().stored_report(key("1")).value();
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->final);
  EXPECT_EQ(stored->body, "partial");
  EXPECT_EQ(stored->version, 1);
  EXPECT_EQ(stored->made_ms, kNow + kHour);
  EXPECT_THAT(due(), ElementsAre("3"));
  EXPECT_THAT(due(kNow + 2 * kHour), ElementsAre("1", "3"));
  EXPECT_EQ(db_->reader().open_reports().value(), 2);

  ReportRow row = report("1", true, "final");
  row.findings.pop_back();
  EXPECT_EQ(writer.store_reports({row, report("3", true)}).value(), 2U);
  EXPECT_EQ(writer.store_reports({report("1", true, "again"), report("3", false)}).value(), 0U);
  stored = db_->reader().stored_report(key("1")).value();
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->final);
  EXPECT_EQ(stored->body, "final");
  EXPECT_THAT(due(kNow + 9 * kHour), IsEmpty());
  EXPECT_EQ(db_->reader().open_reports().value(), 0);
  EXPECT_EQ(text("SELECT rule FROM ceems_findings WHERE uuid = '1'"), "mem-excess");
}

TEST_P(Reports, SetTheAdviceOfTheirUnits) {
  EXPECT_EQ(advice("1"), "0");
  ASSERT_TRUE(db_->writer().store_reports({report("1", true)}));
  EXPECT_EQ(advice("1"), std::to_string(advice_bit("mem-excess") | advice_bit(kOtherRule)));
  EXPECT_EQ(advice("3"), "0");
  // The next window keeps it.
  write(kNow + kHour, kNow + 2 * kHour, {job("1", kNow - kHour, kNow + 90 * kMinute)});
  EXPECT_NE(advice("1"), "0");
  FactFilter filter = everybodys();
  filter.advice = advice_mask("mem-excess");
  const FactListQuery query{.filter = filter, .columns = {Fact::kUuid}, .limit = 10};
  EXPECT_THAT(column(db_->reader().unit_facts(query), 0), ElementsAre("1"));
}

TEST_P(Reports, SetTheVerdictOfTheirUnits) {
  const auto verdicts = [this] {
    FactListQuery query{.filter = everybodys(),
                        .columns = {Fact::kUuid, Fact::kVerdict},
                        .sort = Fact::kVerdict,
                        .limit = 10};
    query.filter.advice = 0;
    query.filter.ended = {};
    std::vector<std::string> found;
    auto rows = db_->reader().unit_facts(query);
    EXPECT_TRUE(rows) << rows.error().message;
    for (auto row = (*rows)->next(); row && *row; row = (*rows)->next()) {
      found.push_back(std::string((*rows)->text(0)) + "=" + std::to_string((*rows)->integer(1)));
    }
    return found;
  };
  EXPECT_THAT(verdicts(), ::testing::Each(::testing::EndsWith("=-1")));
  ReportRow small = report("1", true);
  small.verdict = Verdict::kSmaller;
  ReportRow bad = report("3", true);
  bad.verdict = Verdict::kLook;
  ASSERT_TRUE(db_->writer().store_reports({small, bad}));
  EXPECT_EQ(verdicts().at(0), "3=2") << "the worst first";
  EXPECT_EQ(verdicts().at(1), "1=1");
  ASSERT_TRUE(db_->writer().purge_reports(kNow + kHour));
  EXPECT_THAT(verdicts(), ::testing::Each(::testing::EndsWith("=-1")));
}

TEST_P(Reports, LeaveRoomForWhatUnitsUsedOverTime) {
  const std::string line(48, 'z');
  ASSERT_TRUE(db_->writer().store_strips(
      {{.key = key("1"), .text = line}, {.key = key("gone"), .text = line}}));
  EXPECT_EQ(text("SELECT strip FROM ceems_unit_facts WHERE uuid = '1'"), line);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts WHERE strip <> ''"), "1");
  // Windows and reports keep it.
  write(kNow + kHour, kNow + 2 * kHour, {job("1", kNow - kHour, kNow + 90 * kMinute)});
  ASSERT_TRUE(db_->writer().store_reports({report("1", true)}));
  EXPECT_EQ(text("SELECT strip FROM ceems_unit_facts WHERE uuid = '1'"), line);
  // Those who do not see the name do not see it.
  FactListQuery query{.filter = everybodys(), .columns = {Fact::kStrip}, .limit = 1};
  query.filter.advice = 0;
  query.filter.ended = {};
  query.filter.uuids = {"1"};
  query.filter.clusters = {"hpc"};
  EXPECT_THAT(column(db_->reader().unit_facts(query), 0), ElementsAre(line));
  query.filter.names = {.everybody = false, .user = "eve"};
  EXPECT_THAT(column(db_->reader().unit_facts(query), 0), ElementsAre(""));
}

TEST_P(Reports, OfVersion16GetTheirVerdictsFromTheirFindings) {
  ReportRow good = report("3", true);
  good.findings = {{.rule = "good", .severity = 0, .numbers = "{}"}};
  ASSERT_TRUE(db_->writer().store_reports({report("1", true), good}));
  const auto upgraded = [this](const std::string& change) {
    execute(
        "DROP TABLE ceems_tokens; DROP TABLE ceems_feedback; DROP TABLE ceems_node_effects;"
        "DROP TABLE ceems_ended_units; DROP TABLE ceems_export_targets;"
        "ALTER TABLE ceems_unit_facts DROP COLUMN verdict;"
        "ALTER TABLE ceems_unit_facts DROP COLUMN strip;" +
        change + "UPDATE ceems_schema SET version = 16");
    open();
    EXPECT_TRUE(db_->writer().lead());
    return text("SELECT verdict FROM ceems_unit_facts WHERE uuid = '1'") + " " +
           text("SELECT verdict FROM ceems_unit_facts WHERE uuid = '3'") + " " +
           text("SELECT verdict FROM ceems_unit_facts WHERE uuid = '2'");
  };
  EXPECT_EQ(upgraded(""), "1 0 -1");
  EXPECT_EQ(text("SELECT version FROM ceems_schema"), std::to_string(kOwnVersion));
  EXPECT_EQ(text("SELECT strip FROM ceems_unit_facts WHERE uuid = '1'"), "");
  EXPECT_EQ(upgraded("UPDATE ceems_findings SET rule = 'idle' WHERE rule = 'mem-excess';"),
            "2 0 -1");
  EXPECT_EQ(upgraded("UPDATE ceems_findings SET severity = 3, rule = 'oom' WHERE rule = 'idle';"),
            "2 0 -1");
  EXPECT_EQ(upgraded("UPDATE ceems_findings SET severity = 1, rule = 'node-fail' WHERE"
                     " rule = 'oom'; DELETE FROM ceems_findings WHERE rule = 'of-the-site';"),
            "-1 0 -1");
}

TEST_P(Reports, AreMadeAgainIfTheEndChanges) {
  ASSERT_TRUE(db_->writer().store_reports({report("1", true)}));
  write(kNow + kHour, kNow + 2 * kHour, {job("1", kNow - kHour, kNow + 90 * kMinute)});
  EXPECT_THAT(due(kNow + 2 * kHour), ElementsAre("1", "3"));
  // One that was made of the old end comes too late.
  EXPECT_EQ(db_->writer().store_reports({report("1", true, "late")}).value(), 0U);
  ReportRow row = report("1", true, "new");
  row.ended_at_ts = kNow + 90 * kMinute;
  EXPECT_EQ(db_->writer().store_reports({row}).value(), 1U);
}

TEST_P(Reports, OfUnitsThatAreGoneAreNotStored) {
  ASSERT_TRUE(db_->writer().store_reports({report("1", true)}));
  ASSERT_TRUE(db_->writer().purge(kNow + 20 * kMinute, {}));
  EXPECT_EQ(db_->writer().store_reports({report("3", true)}).value(), 0U);
  EXPECT_EQ(text("SELECT uuid FROM ceems_unit_reports"), "1");
  ASSERT_TRUE(db_->writer().purge(kNow + 40 * kMinute, {}));
  EXPECT_EQ(text("SELECT uuid FROM ceems_unit_reports"), "");
  EXPECT_EQ(text("SELECT uuid FROM ceems_findings"), "");
}

TEST_P(Reports, ArePostponedDroppedAndPurged) {
  Writer& writer = db_->writer();
  ASSERT_TRUE(writer.postpone_reports({key("3")}, kNow + 5 * kHour));
  EXPECT_THAT(due(), ElementsAre("1"));
  EXPECT_THAT(due(kNow + 5 * kHour), ElementsAre("1", "3"));
  ASSERT_TRUE(writer.drop_reports({key("3")}));
  EXPECT_THAT(due(kNow + 5 * kHour), ElementsAre("1"));
  ASSERT_TRUE(writer.store_reports({report("1", true)}));
  ASSERT_TRUE(writer.purge_reports(kNow + 30 * kMinute));
  std::stop_source stopped;
  stopped.request_stop();
  ASSERT_TRUE(writer.purge_reports(kNow + 30 * kMinute + 1, stopped.get_token()));
  EXPECT_TRUE(db_->reader().stored_report(key("1")).value());
  ASSERT_TRUE(writer.purge_reports(kNow + 30 * kMinute + 1));
  EXPECT_EQ(db_->reader().stored_report(key("1")).value(), std::nullopt);
  EXPECT_EQ(text("SELECT rule FROM ceems_findings"), "");
  EXPECT_EQ(advice("1"), "0");
}

TEST_P(Reports, HoldTheNumbersOfTheFamily) {
  std::vector<model::Unit> units;
  const auto add = [&units](const std::string& uuid, const std::string& name, int minute,
                            const std::string& state) -> model::Unit& {
    model::Unit unit = job(uuid, kNow + kHour, kNow + kHour + minute * kMinute);
    unit.name = name;
    unit.state = state;
    unit.allocation = R"({"cpus":4,"gpus":1,"nodes":2,"mem":4e9,"time_limit":600,"req_cpus":3})";
    unit.tags = R"({"partition":"cpu"})";
    with_times(unit, 60, 240);
    with(unit, model::Metric::kAvgCpuUsage, {{"global", 41.25}});
    with(unit, model::Metric::kTotalCpuEnergyUsageKwh, {{"total", 0.5}});
    return units.emplace_back(unit);
  };
  add("11", "run-1", 1, "COMPLETED");
  add("12", "run-22", 2, "OUT_OF_MEMORY");
  add("13", "run-3", 3, "FAILED");
  add("14", "runs-3", 4, "COMPLETED");
  add("15", "run-4", 5, "COMPLETED").allocation =
      R"({"cpus":8,"gpus":1,"nodes":2,"mem":4e9,"time_limit":600})";
  add("16", "run-5", 6, "COMPLETED").tags = R"({"partition":"gpu"})";
  add("17", "run-6", 7, "COMPLETED").project = "optics";
  add("18", "run-7", 8, "COMPLETED").username = "eve";
  add("19", "run-8", 9, "COMPLETED");
  write(kNow + kHour, kNow + 2 * kHour, units);
  ReportRow row = report("1", false);
  row.key = {.cluster_id = "hpc", .uuid = "11", .started_at_ts = kNow + kHour};
  row.ended_at_ts = kNow + kHour + kMinute;
  ASSERT_TRUE(db_->writer().store_reports({row}));

  FamilyQuery query{.run = {.cluster_id = "hpc", .uuid = "19", .started_at_ts = kNow + kHour},
                    .ended = {.from_ms = kNow, .to_ms = kNow + 2 * kHour},
                    .limit = 10};
  const auto runs = db_->reader().family_runs(query);
  ASSERT_TRUE(runs) << runs.error().message;
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[0].key.uuid, "12");
  EXPECT_EQ((*runs)[0].state, "OUT_OF_MEMORY");
  EXPECT_FALSE((*runs)[0].measured);
  EXPECT_EQ((*runs)[0].numbers.mem_peak, std::nullopt);
  const FamilyRun& first = (*runs)[1];
  EXPECT_EQ(first.key.uuid, "11");
  EXPECT_EQ(first.ended_at_ts, kNow + kHour + kMinute);
  EXPECT_EQ(first.cpus, 4);
  EXPECT_EQ(first.nodes, 2);
  EXPECT_EQ(first.memory, 4e9);
  EXPECT_EQ(first.time_limit, 600);
  EXPECT_EQ(first.req_cpus, 3);
  EXPECT_DOUBLE_EQ(first.cpu_use.value(), 0.4125);
  EXPECT_EQ(first.gpu_use, std::nullopt);
  EXPECT_DOUBLE_EQ(first.kwh.value(), 0.5);
  EXPECT_TRUE(first.measured);
  EXPECT_EQ(first.numbers.mem_peak, 2e9);
  EXPECT_EQ(first.numbers.cpu_used_max, 1.5);
  EXPECT_EQ(first.numbers.gpu_busy_seconds, 300.25);
  EXPECT_EQ(first.numbers.gpus, 2U);
  EXPECT_EQ(first.numbers.gpus_unused, 1U);
  query.limit = 1;
  EXPECT_EQ(db_->reader().family_runs(query)->front().key.uuid, "12");
  query.limit = 10;
  query.ended.to_ms = kNow + kHour + kMinute;
  EXPECT_EQ(db_->reader().family_runs(query)->size(), 1U);
  query.run.uuid = "unknown";
  EXPECT_THAT(db_->reader().family_runs(query).value(), IsEmpty());
  query.run.uuid = "";
  query.family = Family{.user = "ada",
                        .project = "fluids",
                        .name = "run-#",
                        .queue = "cpu",
                        .nodes = 2,
                        .cpus = 4000,
                        .gpus = 1000};
  ASSERT_EQ(db_->reader().family_runs(query)->size(), 1U);
  EXPECT_EQ(db_->reader().family_runs(query)->front().key.uuid, "11");
  EXPECT_EQ(db_->reader().family_runs(query)->front().created_at_ts, kNow + kHour);
  query.family->user = "eve";
  EXPECT_THAT(db_->reader().family_runs(query).value(), IsEmpty());
}

TEST_P(Reports, OfAFamilyAreOfRunsThatCompletedAsTheirManagerSaysIt) {
  std::vector<model::Unit> units;
  const std::vector<std::string> states{"COMPLETED", "DONE", "FINISHED",       "Succeeded",
                                        "EXIT",      "RUN",  "CANCELLED by 7", "Failed"};
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto minute = static_cast<std::int64_t>(i + 1) * kMinute;
    model::Unit unit = job(std::to_string(i), kNow + kHour, kNow + kHour + minute);
    unit.name = "run";
    unit.state = states[i];
    units.push_back(std::move(unit));
  }
  write(kNow + kHour, kNow + 2 * kHour, units);
  const auto runs = db_->reader().family_runs(
      {.run = {.cluster_id = "hpc", .uuid = "7", .started_at_ts = kNow + kHour},
       .ended = {.from_ms = kNow, .to_ms = kNow + 2 * kHour},
       .limit = 10});
  ASSERT_TRUE(runs) << runs.error().message;
  std::vector<std::string> found;
  for (const FamilyRun& run : *runs) {
    found.push_back(run.state);
  }
  EXPECT_THAT(found, ElementsAre("SUCCEEDED", "FINISHED", "DONE", "COMPLETED"));
}

TEST_P(Reports, HaveFindings) {
  ASSERT_TRUE(db_->writer().store_reports({report("1", true), report("3", false)}));
  const auto found = [this](const FindingQuery& query) {
    std::vector<std::string> lines;
    const auto all = db_->reader().findings(query);
    EXPECT_TRUE(all) << all.error().message;
    for (const UnitFinding& one : all.value()) {
      lines.push_back(one.key.uuid + " " + one.user + " " + one.finding.rule + " " + one.name);
    }
    return lines;
  };
  FindingQuery query{.filter = everybodys(), .limit = 10};
  EXPECT_THAT(found(query), ElementsAre("1 ada mem-excess job-1", "1 ada of-the-site job-1",
                                        "3 eve mem-excess job-3", "3 eve of-the-site job-3"));
  const UnitFinding first = db_->reader().findings(query)->front();
  EXPECT_EQ(first.project, "fluids");
  EXPECT_EQ(first.ended_at_ts, kNow + 30 * kMinute);
  EXPECT_EQ(first.finding.severity, 2);
  EXPECT_EQ(first.finding.confidence, 1);
  EXPECT_EQ(first.finding.runs, 6);
  EXPECT_DOUBLE_EQ(first.finding.saves_kwh.value(), 0.25);
  EXPECT_EQ(first.finding.numbers, R"({"want":3})");
  EXPECT_EQ(db_->reader().findings(query)->back().finding.saves_kwh, std::nullopt);

  query.limit = 1;
  EXPECT_THAT(found(query), ElementsAre("1 ada mem-excess job-1"));
  query.limit = 10;
  query.least_severity = 2;
  EXPECT_THAT(found(query), ElementsAre("1 ada mem-excess job-1", "3 eve mem-excess job-3"));
  query.least_severity = 0;
  query.rules = {"of-the-site"};
  EXPECT_THAT(found(query), ElementsAre("1 ada of-the-site job-1", "3 eve of-the-site job-3"));
  query.filter.projects = {"optics"};
  EXPECT_THAT(found(query), ElementsAre("3 eve of-the-site job-3"));
  query.filter.projects.clear();
  query.filter.ended = TimeRange{.from_ms = kNow, .to_ms = kNow + 20 * kMinute};
  EXPECT_THAT(found(query), ElementsAre("3 eve of-the-site job-3"));
  query.filter.ended.reset();
  query.filter.names = {.everybody = false, .user = "eve"};
  EXPECT_THAT(found(query), ElementsAre("1 ada of-the-site ", "3 eve of-the-site job-3"));
  query.filter.owners = {.names = {"ada"}};
  EXPECT_THAT(found(query), ElementsAre("1 ada of-the-site "));
  query.filter.owners = {};
  EXPECT_THAT(found(query), IsEmpty());
}

}  // namespace
}  // namespace ceems::store
