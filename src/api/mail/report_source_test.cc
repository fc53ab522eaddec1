#include "api/mail/report_source.h"

#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "mail/letter.h"
#include "report/stored.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MailSource : public ServerTest {
 protected:
  MailReports source(bool measured) {
    return {
        db_->reader(), server_->reports(), server_->digests(),
        MailReports::Setup{.stored = false,
                           .measured = [measured](const auto& /*cluster*/) { return measured; }},
        clock_};
  }
  MailReports with_finisher() {
    return {db_->reader(), server_->reports(), server_->digests(), MailReports::Setup{}, clock_};
  }
  /// Stores a report of ada's unit 1, whose numbers no report that is made anew has.
  void store_report(bool final, std::optional<advice::Confidence> finding = {}) {
    report::Report report{.cluster_id = "hpc-a",
                          .uuid = "1",
                          .started_ms = kNow - kHour,
                          .ended_ms = kNow - kHour / 2,
                          .started_text = "2025-12-31T23:00:00+0000",
                          .state = report::State::kFinal,
                          .coverage = 0.998};
    report.job = {.name = "cp2k-water",
                  .user = "ada",
                  .project = "fluids",
                  .state = "COMPLETED",
                  .manager = "slurm",
                  .elapsed = 1800};
    report.use = {.cpu = 0.41};
    report.energy = {.kwh = 41.3, .idle_kwh = 6.23, .method = "measured"};
    report.co2 = {.grams = 1820, .provider = "rte_total"};
    report.compared = {.runs = 6, .median_kwh = 42.6, .project_month_share = 0.014};
    report.findings = {{.rule = "mem-excess",
                        .severity = advice::Severity::kSuggest,
                        .confidence = advice::Confidence::kSure,
                        .runs = 6,
                        .text = {{"en", "Memory: 7.9 GiB a node at most."}},
                        .lines = {{.type = "#SBATCH --mem=10G"}},
                        .saves_kwh = 2.6}};
    std::vector<store::FindingRow> findings;
    if (finding) {
      findings = {{.rule = "mem-excess",
                   .severity = 2,
                   .confidence = static_cast<int>(*finding),
                   .runs = 6,
                   .numbers = "{}"}};
    }
    const auto stored = db_->writer().store_reports(
        {{.key = {.cluster_id = "hpc-a", .uuid = "1", .started_at_ts = report.started_ms},
          .ended_at_ts = report.ended_ms,
          .final = final,
          .due_ms = kNow + kHour,
          .made_ms = kNow,
          .version = report::kStoredVersion,
          .body = report::to_stored(report),
          .findings = findings}});
    ASSERT_TRUE(stored) << stored.error().message;
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

TEST_F(MailSource, WaitsForTheReportThatIsStored) {
  auto reports = with_finisher();
  const auto made = reports.report("hpc-a", "ada", "1", 0);
  ASSERT_TRUE(made && *made);
  EXPECT_FALSE((*made)->final) << "the finisher has not made it yet";
  EXPECT_FALSE((*made)->report.energy.kwh);
  store_report(false);
  EXPECT_FALSE((*reports.report("hpc-a", "ada", "1", 0))->final) << "its data may still come";
  store_report(true);
  const auto stored = reports.report("hpc-a", "ada", "1", 0);
  ASSERT_TRUE(stored && *stored);
  EXPECT_TRUE((*stored)->final);
  EXPECT_EQ((*stored)->report.energy.kwh, 41.3);
  EXPECT_EQ((*stored)->report.compared.project_month_share, 0.014);
  EXPECT_FALSE(reports.report("hpc-a", "bob", "1", 0)->has_value());
}

TEST_F(MailSource, MailsSayWhatThePageAndCacctSay) {
  store_report(true);
  const auto known = with_finisher().report("hpc-a", "ada", "1", 0);
  ASSERT_TRUE(known && *known);
  const mail::Letter letter = mail::job_letter(
      {.cluster = "hpc-a", .id = "1", .name = "cp2k-water", .user = "ada", .state = "COMPLETED"},
      &(*known)->report, (*known)->final, {});
  const std::string report = "units/report?cluster_id=hpc-a&uuid=1&width=78&format=";
  const std::string text = body(report + "text", "ada");
  EXPECT_THAT(text, HasSubstr("41.3 kWh"));
  EXPECT_THAT(letter.text, StartsWith(text)) << "digit by digit";
  const std::string page = body(report + "html", "ada");
  const std::string main = page.substr(page.find("<h1>"), page.find("</main>") - page.find("<h1>"));
  EXPECT_THAT(main, HasSubstr("41.3 kWh"));
  EXPECT_THAT(letter.html, HasSubstr(main));
}

TEST_F(MailSource, DigestsAreThoseOfTheUserWithoutWhatIsMuted) {
  auto reports = with_finisher();
  EXPECT_EQ(reports.last_month().name, "2025-12");
  EXPECT_EQ(reports.last_month().ended_ms, kNow);
  EXPECT_THAT(*reports.users_of("2025-12"), ElementsAre("ada", "bob", "eve", "fluids:svc"));
  EXPECT_TRUE(reports.users_of("2025-11")->empty());
  EXPECT_FALSE(reports.users_of("x"));
  store_report(true, advice::Confidence::kSure);
  const auto digest = reports.digest("ada", "2025-12", {});
  ASSERT_TRUE(digest && *digest);
  EXPECT_EQ((*digest)->user, "ada");
  ASSERT_EQ((*digest)->suggestions.size(), 1U);
  const std::string text = body("usage/digest?month=2025-12&format=text&width=78", "ada");
  EXPECT_THAT(mail::month_letter("ada", **digest, {}).text, StartsWith(text)) << "digit by digit";
  EXPECT_TRUE((*reports.digest("ada", "2025-12", {"mem-excess"}))->suggestions.empty());
  EXPECT_FALSE(reports.digest("ada", "2025-11", {})->has_value());
  EXPECT_FALSE(reports.digest("nobody", "2025-12", {})->has_value());
  EXPECT_FALSE(reports.digest("ada", "x", {})->has_value());
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

TEST_F(MailSource, KnowsTheTasksOfAnArrayAndTheWorstOfThem) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow, kNow + kHour};
  const auto task = [&](const std::string& id, std::int64_t start, const std::string& state) {
    model::Unit unit = job(id, id == "1009" ? "eve" : "ada", "fluids");
    unit.started_at = std::to_string(start);
    unit.started_at_ts = start;
    unit.ended_at_ts = state == "RUNNING" ? 0 : kNow + 1000;
    unit.state = state;
    unit.allocation = fmt::format(R"({{"array_job":{},"array_task":{}}})",
                                  id == "10001" ? 9990 : 999, id.back() - '0');
    unit.total_time_seconds = {{"walltime", start > 0 ? 1 : 0}};
    update.units.push_back(unit);
  };
  task("1001", kNow - 5000, "PREEMPTED");  // ran twice
  task("1001", kNow, "COMPLETED");
  task("1002", kNow, "RUNNING");
  task("1003", 0, "CANCELLED by 1000");
  task("1009", kNow, "FAILED");   // somebody else's
  task("10001", kNow, "FAILED");  // of another array
  write(update);
  auto reports = source(false);
  const auto tasks = reports.tasks_of("hpc-a", "ada", "999_");
  ASSERT_TRUE(tasks) << tasks.error().message;
  std::vector<std::string> texts;
  for (const mail::ArrayTask& one : *tasks) {
    texts.push_back(fmt::format("{} {}{}{}", one.job, one.state, one.ran ? " ran" : "",
                                one.ended ? " ended" : ""));
  }
  EXPECT_THAT(texts,
              ElementsAre("1001 COMPLETED ran ended", "1002 RUNNING ran", "1003 CANCELLED ended"));
  EXPECT_EQ(*reports.worst_of("hpc-a", "ada", {"1", "1001"}), "");
  store_report(true, advice::Confidence::kSure);
  EXPECT_EQ(*reports.worst_of("hpc-a", "ada", {"1001", "1"}), "1");
  EXPECT_EQ(*reports.worst_of("hpc-a", "bob", {"1001", "1"}), "");
}

TEST_F(MailSource, KnowsWhichBudgetsHavePassedAShare) {
  EXPECT_TRUE(source(false).passed_budgets()->empty()) << "without budgets";
  store::ClusterUpdate update = ended_unit("200", 6);
  update.leads = {{"fluids", {"lea", "zoe"}}, {"optics", {"eve"}}};
  write(update);
  clock_.advance(std::chrono::hours(12));
  ApiOptions options;
  options.site.currency = "EUR";
  options.site.prices = {.kwh = 0.5};
  options.accounting.budgets = {
      {.cluster = "hpc-a", .project = "fluids", .amount = 10, .warn = {0.5, 0.6, 0.8}},
      {.project = "fluids", .unit = BudgetUnit::kCost, .amount = 3},
      {.cluster = "hpc-a", .project = "optics", .amount = 1000},
      {.cluster = "hpc-b", .project = "fluids", .amount = 1},
      {.cluster = "hpc-a",
       .project = "fluids",
       .amount = 1,
       .period = ProjectBudget::Period::kFixed,
       .from_ms = kNow - 48 * kHour,
       .to_ms = kNow}};
  make(std::move(options));
  MailReports reports(
      db_->reader(), server_->reports(), server_->digests(),
      MailReports::Setup{
          .accounting = &server_->accounting(),
          .roles = {.project_leads =
                        {{.cluster_id = "hpc-a", .project = "fluids", .users = {"ada", "lea"}},
                         {.cluster_id = "hpc-b", .project = "fluids", .users = {"bob"}}}}},
      clock_);
  const auto passed = reports.passed_budgets();
  ASSERT_TRUE(passed) << passed.error().message;
  ASSERT_EQ(passed->size(), 2U) << "neither one that has hardly begun nor one that has ended";
  const mail::PassedBudget& kwh = passed->at(0);
  EXPECT_EQ(kwh.id, "fluids hpc-a kwh 10 2026 0.6") << "the highest share that has passed";
  EXPECT_EQ(kwh.share, 0.6);
  EXPECT_EQ(kwh.used, 6);
  EXPECT_THAT(kwh.leads, ElementsAre("ada", "lea", "zoe"));
  const mail::PassedBudget& cost = passed->at(1);
  EXPECT_EQ(cost.unit, mail::PassedBudget::Unit::kCost);
  EXPECT_EQ(cost.used, 3);
  EXPECT_EQ(cost.share, 1);
  EXPECT_EQ(cost.currency, "EUR");
  EXPECT_THAT(cost.leads, ElementsAre("ada", "bob", "lea", "zoe")) << "of all clusters";
}

}  // namespace
}  // namespace ceems::api
