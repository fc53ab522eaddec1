#include "mail/letter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::mail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

report::Report some_report() {
  report::Report report{.cluster_id = "hpc-a", .uuid = "4711"};
  report.started_ms = 1794903120000;
  report.ended_ms = 1794970436000;
  report.state = report::State::kFinal;
  report.coverage = 1;
  report.job = {.name = "cp2k-water", .user = "ada", .project = "fluids", .state = "COMPLETED"};
  report.energy.kwh = 41.3;
  for (const char* rule : {"time-limit", "mem-excess"}) {
    report.findings.push_back({.rule = rule, .text = {{"en", std::string("Do ") + rule}}});
  }
  report.findings.push_back(
      {.rule = "good", .severity = advice::Severity::kGood, .text = {{"en", "Fine."}}});
  return report;
}

JobNames some_job() {
  return {
      .cluster = "hpc-a", .id = "4711", .name = "cp2k-water", .user = "ada", .state = "COMPLETED"};
}

LetterOptions some_options() {
  return {.help_url = "help@example.org",
          .mute_url = [](const std::string& user, const std::string& rule) {
            return "https://x.org/m?" + user + "+" + rule;
          }};
}

TEST(Letter, ReportsAJob) {
  const auto report = some_report();
  const Letter letter = job_letter(some_job(), &report, true, some_options());
  EXPECT_EQ(letter.subject, "hpc-a job 4711 cp2k-water: COMPLETED, 41.3 kWh, 2 suggestions");
  EXPECT_THAT(letter.rules, ElementsAre("time-limit", "mem-excess"));
  EXPECT_THAT(letter.text, HasSubstr("Do time-limit"));
  EXPECT_THAT(letter.text, HasSubstr("help@example.org"));
  EXPECT_THAT(letter.text, Not(HasSubstr("not complete")));
  EXPECT_THAT(
      letter.text,
      HasSubstr("Do not mention this for 90 days (time-limit): https://x.org/m?ada+time-limit\n"));
  EXPECT_THAT(letter.text, HasSubstr("https://x.org/m?ada+*\n"));
  EXPECT_THAT(letter.html, HasSubstr("<a href=\"https://x.org/m?ada+mem-excess\">"));
  EXPECT_THAT(letter.html, HasSubstr("</main>"));
}

TEST(Letter, LeavesOutWhatTheUserDoesNotWant) {
  const auto report = some_report();
  LetterOptions options = some_options();
  options.muted = {"time-limit"};
  const Letter letter = job_letter(some_job(), &report, true, options);
  EXPECT_EQ(letter.subject, "hpc-a job 4711 cp2k-water: COMPLETED, 41.3 kWh, 1 suggestion");
  EXPECT_THAT(letter.text, Not(HasSubstr("time-limit")));
  EXPECT_THAT(letter.html, Not(HasSubstr("time-limit")));
  options.muted.emplace_back("mem-excess");
  EXPECT_EQ(job_letter(some_job(), &report, true, options).subject,
            "hpc-a job 4711 cp2k-water: COMPLETED, 41.3 kWh");
}

TEST(Letter, SaysWhatIsMissing) {
  const auto report = some_report();
  EXPECT_THAT(job_letter(some_job(), &report, false, {}).text,
              HasSubstr("The report is not complete yet"));
  const Letter letter = job_letter(some_job(), nullptr, false, {});
  EXPECT_EQ(letter.subject, "hpc-a job 4711 cp2k-water: COMPLETED");
  EXPECT_THAT(letter.text, HasSubstr("CEEMS does not know the job yet."));
  EXPECT_THAT(letter.html, HasSubstr("CEEMS does not know the job yet."));
  EXPECT_THAT(letter.text, Not(HasSubstr("http")));
  EXPECT_TRUE(letter.rules.empty());
  EXPECT_THAT(job_letter(some_job(), &report, true, {.language = "de"}).subject,
              HasSubstr("41,3 kWh, 2 Vorschläge"));
}

TEST(Letter, SumsUpAnArray) {
  const auto report = some_report();
  JobNames job = some_job();
  job.array = "4700";
  const ArraySums sums{.states = {{"COMPLETED", 4990}, {"FAILED", 10}}, .known = 4998, .kwh = 41.3};
  const Letter letter = array_letter(job, sums, &report, some_options());
  EXPECT_EQ(letter.subject,
            "hpc-a array 4700 cp2k-water: 5000 tasks (4990 COMPLETED, 10 FAILED), 41.3 kWh, "
            "2 suggestions");
  EXPECT_THAT(letter.text, HasSubstr("Energy: 41.3 kWh (4998 / 5000 tasks)\n"));
  EXPECT_THAT(letter.text, HasSubstr("The report of the task that most needs a look:"));
  EXPECT_THAT(array_letter(job, {.states = {{"FAILED", 1}}}, nullptr, {}).subject,
              HasSubstr("1 tasks (1 FAILED)"));
}

TEST(Letter, SumsUpAMonth) {
  report::Digest digest{.user = "ada", .months = {{.month = "2026-11", .kwh = 41.3}}};
  for (const char* rule : {"time-limit", "mem-excess", "idle", "gpu-low"}) {
    digest.suggestions.push_back(
        {.finding = {.rule = rule, .text = {{"en", std::string("Do ") + rule}}}, .units = 3});
  }
  const Letter letter = month_letter("ada", digest, some_options());
  EXPECT_EQ(letter.subject, "Month 2026-11: 41.3 kWh, 3 suggestions");
  EXPECT_THAT(letter.rules, ElementsAre("time-limit", "mem-excess", "idle"));
  EXPECT_THAT(letter.text, ::testing::StartsWith(report::to_text(
                               digest, {.width = 78, .help_url = "help@example.org"})));
  EXPECT_THAT(letter.text, HasSubstr("Stop these mails: https://x.org/m?ada+monthly-digest\n"));
  EXPECT_THAT(letter.html, HasSubstr("<a href=\"https://x.org/m?ada+monthly-digest\">"));
  digest.months.front().kwh.reset();
  digest.suggestions.clear();
  const Letter bare = month_letter("ada", digest, {.language = "de"});
  EXPECT_EQ(bare.subject, "Monat 2026-11");
  EXPECT_THAT(bare.text, Not(HasSubstr("http")));
}

PassedBudget some_budget() {
  return {.id = "fluids hpc-a",
          .project = "fluids",
          .cluster = "hpc-a",
          .period = "2026",
          .share = 0.8,
          .unit = PassedBudget::Unit::kKgCo2,
          .amount = 1500,
          .used = 1234.5,
          .forecast_low = 1420,
          .forecast_high = 1580};
}

TEST(Letter, SaysHowABudgetStands) {
  PassedBudget budget = some_budget();
  const Letter letter = budget_letter("lea", budget, some_options());
  EXPECT_EQ(letter.subject, "Budget fluids (hpc-a), 2026: 80 % passed");
  EXPECT_THAT(letter.rules, ::testing::IsEmpty());
  EXPECT_EQ(letter.text,
            "Budget fluids (hpc-a), 2026: 80 % passed\n\n"
            "Budget: 1.5 t CO2e\nUsed: 1.23 t CO2e (82 %)\n"
            "At the end, likely: 1.42 t CO2e – 1.58 t CO2e\n\n"
            "A budget stops nothing: jobs of the project go on.\n\n"
            "You get this mail because you lead this project.\n"
            "Stop these mails: https://x.org/m?lea+budget-warnings\n"
            "Questions? help@example.org\n");
  EXPECT_THAT(letter.html, HasSubstr("<tr><th scope=\"row\">Used</th><td>1.23 t CO2e (82 %)</td>"));
  EXPECT_THAT(letter.html, HasSubstr("<a href=\"https://x.org/m?lea+budget-warnings\">"));
  budget.unit = PassedBudget::Unit::kCost;
  budget.currency = "EUR";
  budget.cluster.clear();
  const Letter other = budget_letter("lea", budget, {.language = "de"});
  EXPECT_EQ(other.subject, "Budget fluids (alle Cluster), 2026: 80 % überschritten");
  EXPECT_THAT(other.text, HasSubstr("Genutzt: 1.234,50 EUR (82 %)\n"));
  EXPECT_THAT(other.text, Not(HasSubstr("http")));
  budget.project = budget.cluster = "<script>x</script>\x1b]0;\r\nBcc: eve";
  const Letter hostile = budget_letter("lea", budget, some_options());
  EXPECT_THAT(hostile.html, Not(HasSubstr("<script>")));
  EXPECT_THAT(hostile.text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(hostile.text, Not(HasSubstr("\r")));
  EXPECT_THAT(hostile.subject, Not(HasSubstr("\n")));
}

TEST(Letter, KeepsLinesApart) {
  JobNames job = some_job();
  job.name = "a\nb<i>\nc";
  const Letter letter = job_letter(job, nullptr, true, some_options());
  EXPECT_THAT(letter.text, HasSubstr(" 4711 a\nb<i>\nc: COMPLETED\n\n"));
  EXPECT_THAT(letter.html, HasSubstr(" 4711 a<br>b&lt;i&gt;<br>c: COMPLETED</p>\n"));
}

TEST(Letter, EscapesHostileNames) {
  auto report = some_report();
  report.job.name = "<script>alert(1)</script></main>\x1b]0;x\x07\r\nBcc: eve";
  JobNames job = some_job();
  job.name = report.job.name;
  job.state = "<img src=x>";
  job.array = "1";
  for (const Letter& letter :
       {job_letter(job, &report, true, some_options()), job_letter(job, nullptr, true, {}),
        array_letter(job, {.states = {{"<b>", 1}}}, &report, {})}) {
    EXPECT_THAT(letter.html, Not(HasSubstr("<script>")));
    EXPECT_THAT(letter.html, Not(HasSubstr("<img")));
    EXPECT_THAT(letter.html, Not(HasSubstr("<b>")));
    EXPECT_THAT(letter.html, Not(HasSubstr("\x1b")));
    EXPECT_THAT(letter.text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(letter.text, Not(HasSubstr("\r")));
    EXPECT_EQ(letter.html.find("</html>"), letter.html.size() - 8);
  }
}

}  // namespace
}  // namespace ceems::mail
