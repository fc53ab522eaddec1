// Reports that are stored, and the findings in them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/endpoints/units_report_test_support.h"
#include "report/stored.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Stores the final report of unit 105, with another name than the unit has.
report::Report stored_report(store::Writer& writer) {
  const std::int64_t ended_ms = kNow - store::kMinute;
  report::Report report{.cluster_id = "hpc-a",
                        .uuid = "105",
                        .started_ms = ended_ms - kRun,
                        .ended_ms = ended_ms,
                        .started_text = "2025-12-31T21:59:00+0000",
                        .state = report::State::kFinal,
                        .coverage = 0.998};
  report.job = {.name = "as-it-was",
                .user = "ada",
                .project = "fluids",
                .partition = "cpu",
                .state = "COMPLETED",
                .manager = "slurm",
                .elapsed = 7200};
  report.energy.kwh = 0.5;
  report.compared = {.runs = 6, .project_month_share = 0.17};
  report.findings = {{.rule = "mem-excess",
                      .severity = advice::Severity::kSuggest,
                      .confidence = advice::Confidence::kSure,
                      .runs = 6,
                      .text = {{"en", "Memory: less."}, {"de", "Speicher: weniger."}},
                      .lines = {{.type = "#SBATCH --mem=3G"}}}};
  const store::ReportRow row{
      .key = {.cluster_id = "hpc-a", .uuid = "105", .started_at_ts = report.started_ms},
      .ended_at_ts = ended_ms,
      .final = true,
      .made_ms = kNow,
      .version = report::kStoredVersion,
      .body = report::to_stored(report),
      .findings = {{.rule = "mem-excess",
                    .severity = 2,
                    .confidence = 2,
                    .runs = 6,
                    .saves_kwh = 0.4,
                    .numbers = R"({"want":3221225472})"},
                   {.rule = "good", .severity = 0, .numbers = "{}"}}};
  EXPECT_EQ(writer.store_reports({row}).value(), 1U);
  return report;
}

TEST_F(Reports, ThatAreStoredAreShownWithoutTheTsdb) {
  const report::Report report = stored_report(db_->writer());
  measurements_.failure = Error{ErrorCode::kUnavailable, "down"};
  EXPECT_EQ(json::parse(body(kLast, "ada")).at("data").at(0),
            json::parse(report::to_json(report, {})));
  for (const auto& [format, text] : std::vector<std::pair<std::string, std::string>>{
           {"text", report::to_text(report, {.help_url = "help@example.org"})},
           {"text&lang=de",
            report::to_text(report, {.language = "de", .help_url = "help@example.org"})},
           {"markdown", report::to_markdown(report, {.help_url = "help@example.org"})},
           {"html", report::to_html(report, {.help_url = "help@example.org"})},
           {"js1", report::to_js1(report) + "\n"}}) {
    EXPECT_EQ(body(fmt::format("{}&format={}", kLast, format), "ada"), text) << format;
  }
  EXPECT_THAT(measurements_.asked, IsEmpty());
  EXPECT_THAT(body("units/compare?cluster_id=hpc-a&uuid=104&uuid=105&format=text", "ada"),
              HasSubstr("CPU     96 %     not measured"));
}

TEST_F(Reports, ThatWereStoredBeforeThereWerePricesHaveACost) {
  stored_report(db_->writer());
  EXPECT_TRUE(report_of(kLast, "ada").at("cost").at("amount").is_null());
  ApiOptions options;
  options.measurements = &measurements_;
  options.site.currency = "EUR";
  options.site.prices = {.core_hour = 0.5};
  make(std::move(options));
  const json::object report = report_of(kLast, "ada");
  EXPECT_EQ(report.at("cost").at("amount").to_number<double>(), 4);  // of 8 core-hours
  EXPECT_EQ(report.at("cost").at("currency"), "EUR");
}

TEST_F(Reports, ThatAreStoredHaveAnEntityTag) {
  EXPECT_EQ(header(get(std::string("/api/v1/") + kLast, "ada"), "ETag"), "(none)");
  stored_report(db_->writer());
  const auto ask = [this](const std::string& target, const std::string& user,
                          const std::string& tag) {
    return request("GET", "/api/v1/" + target, {{"X-Grafana-User", user}, {"If-None-Match", tag}});
  };
  const auto first = get(std::string("/api/v1/") + kLast, "ada");
  const std::string tag = header(first, "ETag");
  EXPECT_THAT(tag, ::testing::StartsWith("W/"));
  EXPECT_EQ(header(first, "Cache-Control"), "private, no-cache");
  const auto second = ask(kLast, "ada", tag);
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(header(second, "ETag"), tag);
  // Commits do not matter to it, but other questions and callers do.
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  write(update);
  EXPECT_EQ(ask(kLast, "ada", tag).status, 304);
  EXPECT_EQ(ask(std::string(kLast) + "&lang=de", "ada", tag).status, 200);
  EXPECT_EQ(ask("units/report/admin?cluster_id=hpc-a&uuid=105", "root", tag).status, 200);
  EXPECT_EQ(ask(kLast, "bob", tag).status, 404);
  EXPECT_EQ(ask("units/report?cluster_id=hpc-a&uuid=104", "ada", tag).status, 200);
}

TEST_F(Reports, ThatAreStoredShowTheMonthToThoseWhoSeeTheProject) {
  stored_report(db_->writer());
  const auto share = [this](const std::string& target, const std::string& user) {
    return report_of(target, user).at("compared").at("project_month_share");
  };
  EXPECT_EQ(share(kLast, "ada").to_number<double>(), 0.17);
  EXPECT_EQ(share("units/report/admin?cluster_id=hpc-a&uuid=105", "root").to_number<double>(),
            0.17);
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(update);
  EXPECT_TRUE(share(kLast, "ada").is_null());
}

TEST_F(Reports, ThatAreStoredAreMadeAnewIfTheyCannotBeRead) {
  stored_report(db_->writer());
  EXPECT_EQ(report_of(kLast, "ada").at("job").at("name"), "as-it-was");
  execute("UPDATE ceems_unit_reports SET body = 'x' WHERE uuid = '105'");
  EXPECT_EQ(report_of(kLast, "ada").at("job").at("name"), "relax-105");
}

TEST_F(Reports, HaveFindingsInLists) {
  stored_report(db_->writer());
  const auto findings = [this](const std::string& query, const std::string& user) {
    return json::parse(body("units/findings" + query, user)).at("data").at("findings").as_array();
  };
  const json::array all = findings("", "ada");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0], json::parse(fmt::format(
                        R"({{"cluster_id":"hpc-a","uuid":"105","started_at_ts":{},)"
                        R"("ended_at_ts":{},"name":"relax-105","user":"ada","project":"fluids",)"
                        R"("rule":"mem-excess","severity":"suggest","confidence":"sure","runs":6,)"
                        R"("values":{{"want":3221225472}},"saves":{{"kwh":0.4}}}})",
                        kNow - store::kMinute - kRun, kNow - store::kMinute)));
  execute("UPDATE ceems_unit_facts SET array_id = '100_5' WHERE uuid = '105'");
  EXPECT_EQ(findings("", "ada").at(0).at("array"), "100_5") << "as SLURM shows it";
  EXPECT_EQ(findings("?severity=good", "ada").size(), 2U);
  EXPECT_EQ(findings("?rule=good&severity=good", "ada").size(), 1U);
  EXPECT_EQ(findings("?rule=mem-excess,idle", "ada").size(), 1U);
  for (const char* none : {"?severity=important", "?rule=idle", "?rule=unknown", "?project=optics",
                           "?cluster_id=hpc-b", "?from=1&to=2"}) {
    EXPECT_TRUE(findings(none, "ada").empty()) << none;
  }
  EXPECT_TRUE(findings("", "eve").empty());
  EXPECT_EQ(findings("/admin?user=ada", "root").size(), 1U);
  EXPECT_TRUE(findings("/admin", "sue").at(0).at("name").is_null());
  EXPECT_EQ(get("/api/v1/units/findings?severity=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/findings/admin", "ada").status, 403);
  const json::value list = json::parse(body("units/list?advice=mem-excess&columns=uuid", "ada"));
  EXPECT_EQ(list.at("data").at("rows"), json::parse(R"([["105"]])"));
}

TEST_F(Reports, SuggestSomethingForEachKind) {
  stored_report(db_->writer());
  const auto kinds = [this](const std::string& query, const std::string& user) {
    return json::parse(body("units/kinds" + query, user)).at("data").at("kinds").as_array();
  };
  const json::array all = kinds("", "ada");
  const auto found = std::ranges::find_if(
      all, [](const json::value& kind) { return kind.at("name") == "relax-#"; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->at("user"), "ada");
  EXPECT_EQ(found->at("project"), "fluids");
  EXPECT_GT(found->at("units").as_int64(), 1);
  EXPECT_TRUE(found->at("not_used").is_null());
  EXPECT_EQ(found->at("not_used_of"), 0);
  EXPECT_EQ(kinds("?sort=not_used", "ada"), all) << "the default";
  const json::value& finding = found->at("finding");
  EXPECT_EQ(finding.at("uuid"), "105");
  EXPECT_EQ(finding.at("rule"), "mem-excess");
  EXPECT_EQ(finding.at("runs"), 6);
  EXPECT_EQ(finding.at("saves_kwh").to_number<double>(), 0.4);
  for (const json::value& kind : kinds("", "eve")) {
    EXPECT_EQ(kind.at("user"), "eve");
  }
  EXPECT_EQ(kinds("/admin?user=ada&sort=units&top=1", "root").size(), 1U);
  EXPECT_TRUE(kinds("/admin", "sue").at(0).at("name").is_null());
  for (const char* wrong : {"?sort=name", "?top=0", "?top=101", "?top=x", "?state="}) {
    EXPECT_EQ(get(std::string("/api/v1/units/kinds") + wrong, "ada").status,
              std::string_view(wrong) == "?state=" ? 200 : 400)
        << wrong;
  }
  EXPECT_EQ(get("/api/v1/units/kinds/admin", "ada").status, 403);
}

}  // namespace
}  // namespace ceems::api
