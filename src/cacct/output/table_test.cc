#include "cacct/output/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cacct/output/box.h"

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Record unit(std::string uuid,
            std::string project,
            double use,
            Record::Numbers emissions,
            std::string name = {}) {
  Record record;
  record.texts = {{"uuid", std::move(uuid)}, {"project", std::move(project)}};
  if (!name.empty()) {
    record.texts["name"] = std::move(name);
  }
  record.metrics["avg_cpu_usage"] = {{"global", use}};
  if (!emissions.empty()) {
    record.metrics["total_cpu_emissions_gms"] = std::move(emissions);
  }
  return record;
}

Record usage(std::string project, int units, double use, double cpu_seconds, double grams) {
  Record record;
  record.texts = {{"num_units", std::to_string(units)}, {"project", std::move(project)}};
  record.metrics = {{"avg_cpu_usage", {{"global", use}}},
                    {"total_cpu_emissions_gms", {{"owid_total", grams}}},
                    {"total_time_seconds", {{"alloc_cputime", cpu_seconds}, {"walltime", 90000}}}};
  return record;
}

std::vector<Field> fields(std::string_view names) {
  return *parse_format(names, server_fields());
}

constexpr std::string_view kFew = "jobid,account,cpuusage,hostemissions";

Table illustration() {
  Record sums = usage("physics", 3, 61.2, 1, 9.75);
  sums.metrics["total_cpu_emissions_gms"] = {{"owid_total", 9.75}, {"rte_total", 8700.125}};
  return make_table(fields(kFew),
                    {unit("42", "physics", 73.5, {{"owid_total", 1.25}, {"rte_total", 1234.5}})},
                    {sums});
}

TEST(Box, LooksAsInTheReference) {
  EXPECT_EQ(draw_box(illustration()),
            "┌─────────┬─────────┬────────┬──────────────────────────┐\n"
            "│ JOB ID  │ ACCOUNT │ CPU US │       HOST EMISSIO       │\n"
            "│         │         │ AGE(%) │          NS(GMS)         │\n"
            "├─────────┼─────────┼────────┼────────────┬─────────────┤\n"
            "│         │         │        │ OWID_TOTAL │ RTE_TOTAL   │\n"
            "├─────────┼─────────┼────────┼────────────┼─────────────┤\n"
            "│ 42      │ physics │ 73.50  │ 1.250000   │ 1234.500000 │\n"
            "├─────────┼─────────┴────────┴────────────┴─────────────┤\n"
            "│ Summary │                                             │\n"
            "├─────────┼─────────┬────────┬────────────┬─────────────┤\n"
            "│ 3       │ physics │ 61.20  │ 9.750000   │ 8700.125000 │\n"
            "└─────────┴─────────┴────────┴────────────┴─────────────┘\n");
}

TEST(Box, KeepsTheFirstColumnWithoutUnits) {
  EXPECT_EQ(draw_box(make_table(fields(kFew), {}, {})),
            "┌─────────┐\n"
            "│ JOB ID  │\n"
            "├─────────┤\n"
            "│         │\n"
            "├─────────┤\n"
            "│ Summary │\n"
            "└─────────┘\n");
}

TEST(Box, CutsByColumnsOfTheTerminal) {
  EXPECT_EQ(display_width("naïve 名字"), 10U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_THAT(cut("abcdef", 3), ElementsAre("abc", "def"));
  EXPECT_THAT(cut("", 3), ElementsAre(""));
  EXPECT_THAT(cut("名字名", 4), ElementsAre("名字", "名"));
  EXPECT_THAT(cut("a名字", 2), ElementsAre("a", "名", "字"));
  EXPECT_THAT(cut("名", 1), ElementsAre("名"));
}

TEST(Box, MarksTitlesOnlyIfAsked) {
  EXPECT_EQ(draw_box(illustration()).find('\x1b'), std::string::npos);
  EXPECT_THAT(draw_box(illustration(), true), HasSubstr("│ \x1b[1mJOB ID\x1b[0m  │"));
}

TEST(Table, PutsEachNameOfAMetricInItsColumn) {
  // The second unit lacks the first name, so its value must not move to the left.
  const Table table =
      make_table(fields("jobid,hostemissions"),
                 {unit("1", "a", 1, {{"owid_total", 1}, {"rte_total", 2}}),
                  unit("2", "a", 1, {{"rte_total", 3}, {"zz_total", 4}}), unit("3", "a", 1, {})},
                 {});
  ASSERT_EQ(table.columns.size(), 4U);
  EXPECT_EQ(table.columns[1].sub, "owid_total");
  EXPECT_EQ(table.columns[3].sub, "zz_total");
  EXPECT_THAT(table.units[0], ElementsAre("1", "1.000000", "2.000000", ""));
  EXPECT_THAT(table.units[1], ElementsAre("2", "", "3.000000", "4.000000"));
  EXPECT_THAT(table.units[2], ElementsAre("3", "", "", ""));
}

TEST(Table, AddsUpAsTheServerDoes) {
  const Table table =
      make_table(fields("jobid,account,elapsed,cpuusage,hostemissions"),
                 {unit("1", "a", 1, {{"owid_total", 1}})},
                 {usage("a", 2, 50, 300, 10), usage("b", 1, 10, 100, 0.5)}, {.totals = true});
  ASSERT_EQ(table.footers.size(), 3U);
  EXPECT_THAT(table.footers[0], ElementsAre("2", "a", "1-01:00:00", "50.00", "10.000000"));
  EXPECT_THAT(table.footers[2], ElementsAre("3 total", "", "2-02:00:00", "40.00", "10.500000"));
}

TEST(Table, LeastAndGreatestValuesOfCustomMetricsAreNotAddedUp) {
  Record a = usage("a", 1, 50, 300, 10);
  Record b = usage("b", 1, 10, 100, 0.5);
  a.metrics["min_custom_stats"] = {{"temp", 41}};
  b.metrics["min_custom_stats"] = {{"temp", 38}};
  a.metrics["max_custom_stats"] = {{"temp", 78}};
  b.metrics["max_custom_stats"] = {{"temp", 70}};
  a.metrics["avg_custom_stats"] = {{"temp", 60}};
  b.metrics["avg_custom_stats"] = {{"temp", 50}};  // weighted by running time, which is equal
  a.metrics["total_custom_stats"] = {{"misses", 5}};
  b.metrics["total_custom_stats"] = {{"misses", 7}};
  Record one = unit("1", "a", 1, {});
  one.metrics["min_custom_stats"] = one.metrics["max_custom_stats"] = {{"temp", 41}};
  one.metrics["avg_custom_stats"] = {{"temp", 41}};
  one.metrics["total_custom_stats"] = {{"misses", 5}};
  const Table table = make_table(fields("jobid,customtotal,customavg,custommin,custommax"), {one},
                                 {a, b}, {.totals = true});
  ASSERT_EQ(table.footers.size(), 3U);
  EXPECT_THAT(table.footers[2], ElementsAre("2 total", "12.00", "55.00", "38.00", "78.00"));
}

/// Found by fuzzing: an answer with a wall time of 1e81.
TEST(Table, BoundsWhatTheServerClaims) {
  Record sum = usage("a", 1, 50, 300, 10);
  sum.texts["num_units"] = "9223372036854775807";
  sum.metrics["total_time_seconds"] = {{"walltime", 1e81}};
  const Table table =
      make_table(fields("jobid,elapsed"), {unit("1", "a", 1, {})}, {sum, sum}, {.totals = true});
  ASSERT_EQ(table.footers.size(), 3U);
  EXPECT_EQ(table.footers[0][1], "11574074074-01:46:40");
  EXPECT_EQ(table.footers[2][0], "2000000000000000 total");
}

TEST(Table, ShowsUnitsThatFit) {
  const auto shown = [](const char* name, double value) {
    return fitting_text(fields(name).front(), "mem", value);
  };
  EXPECT_EQ(shown("hostenergy", 0.0000005), "0.50 mWh");
  EXPECT_EQ(shown("hostenergy", 0.00125), "1.25 Wh");
  EXPECT_EQ(shown("hostenergy", 0.9996), "1.00 kWh");
  EXPECT_EQ(shown("hostenergy", 21.22149), "21.2 kWh");
  EXPECT_EQ(shown("hostenergy", 999.4), "999 kWh");
  EXPECT_EQ(shown("hostenergy", 1234.5), "1.23 MWh");
  EXPECT_EQ(shown("hostenergy", 0), "0 mWh");
  EXPECT_EQ(shown("hostemissions", 0.02), "20.0 mg");
  EXPECT_EQ(shown("hostemissions", 2.5e6), "2.50 t");
  EXPECT_EQ(shown("allocation", 17179869184.0), "16.0 GiB");
  EXPECT_EQ(shown("cpuusage", 3.14159), "3.14");
  const Table table =
      make_table(fields("jobid,hostemissions"), {unit("1", "a", 1, {{"owid_total", 1500}})}, {},
                 {.fitting_units = true});
  EXPECT_EQ(table.columns[1].title, "Host Emissions");
  EXPECT_THAT(table.units[0], ElementsAre("1", "1.50 kg"));
}

TEST(Formats, WriteCsv) {
  const Table table = make_table(fields("jobid,name,cpuusage"),
                                 {unit("1", "a", 1.5, {}, "x,\"y\"")}, {usage("a", 2, 50, 1, 1)});
  EXPECT_EQ(to_csv(table),
            "Job ID,Name,CPU Usage(%)\n,,\n1,\"x,\"\"y\"\"\",1.50\nSummary,,\n2,,50.00\n");
}

TEST(Formats, LetNoNameBeMarkupOrAFormula) {
  Record job = unit("1", "a", -1.5, {}, "=HYPERLINK(\"x\")");
  Table table = make_table(fields("jobid,name,cpuusage"), {job}, {});
  EXPECT_THAT(to_csv(table), HasSubstr("\n1,\"'=HYPERLINK(\"\"x\"\")\",-1.50\n"))
      << "numbers stay numbers";
  job.texts["name"] = "[a](b)<i>|c";
  table = make_table(fields("jobid,name"), {job}, {});
  EXPECT_THAT(to_markdown(table), HasSubstr("| 1 | \\[a\\]\\(b\\)&lt;i&gt;\\|c |\n"));
}

TEST(Table, SumsWhatIsListed) {
  const auto job = [](std::string uuid, std::string user, double use, double cpus, double grams) {
    Record record = unit(std::move(uuid), "a", use, {{"owid_total", grams}});
    record.texts["username"] = std::move(user);
    record.metrics["total_time_seconds"] = {{"alloc_cputime", 100 * cpus}, {"walltime", 100}};
    record.metrics["allocation"] = {{"cpus", cpus}};
    return record;
  };
  std::vector<Record> jobs{job("1", "bob", 10, 1, 1), job("2", "ada", 10, 3, 2),
                           job("3", "ada", 50, 1, 3)};
  const auto sums = sums_of(jobs);
  ASSERT_TRUE(sums);
  const Table table =
      make_table(fields("jobid,user,account,elapsed,cpuusage,hostemissions,allocation"), jobs,
                 *sums, {.totals = true});
  ASSERT_EQ(table.footers.size(), 3U);
  EXPECT_THAT(table.footers[0], ElementsAre("2", "ada", "a", "00:03:20", "20.00", "5.000000", ""));
  EXPECT_THAT(table.footers[1], ElementsAre("1", "bob", "a", "00:01:40", "10.00", "1.000000", ""));
  EXPECT_THAT(table.footers[2][0], "3 total");
  EXPECT_TRUE(sums_of({})->empty());
  jobs[1].metrics.erase("total_time_seconds");
  EXPECT_FALSE(sums_of(jobs)) << "averages cannot be weighed";
}

TEST(Table, ShowsIdsAsSlurmDoes) {
  std::vector<Record> jobs{unit("7101", "a", 1, {}), unit("8201", "a", 1, {}),
                           unit("9000", "a", 1, {})};
  jobs[0].metrics["allocation"] = {{"array_job", 7100}, {"array_task", 4}};
  jobs[1].metrics["allocation"] = {{"het_job", 8200}, {"het_offset", 1}};
  jobs[2].metrics["allocation"] = {{"cpus", 4}};
  add_slurm_ids(jobs);
  const Table table = make_table(fields("jobid,slurmid"), jobs, {});
  EXPECT_THAT(table.units, ElementsAre(ElementsAre("7101", "7100_4"), ElementsAre("8201", "8200+1"),
                                       ElementsAre("9000", "")));
}

TEST(Formats, WriteMarkdown) {
  const Table table = make_table(fields("jobid,name"), {unit("1", "a", 1, {}, "x|y")}, {});
  EXPECT_EQ(to_markdown(table),
            "| Job ID | Name |\n| --- | --- |\n|  |  |\n| 1 | x\\|y |\n| Summary |  |\n");
}

TEST(Formats, WriteHtml) {
  const Table table = make_table(fields("jobid,name"), {unit("1", "a", 1, {}, "<b>&")}, {});
  const std::string html = to_html(table);
  EXPECT_THAT(html,
              StartsWith("<table class=\"go-pretty-table\">\n  <thead>\n  <tr>\n    <th>Job ID"));
  EXPECT_THAT(html, HasSubstr("<td>&lt;b&gt;&amp;</td>"));
  EXPECT_THAT(html, HasSubstr("  <tfoot>\n  <tr>\n    <td>Summary</td>\n    <td>&nbsp;</td>"));
}

TEST(Formats, WriteLinesForScripts) {
  // The order is the one given, and empty columns stay.
  const Table table = make_table(fields("hostemissions,state,name,jobid"),
                                 {unit("1", "a", 1, {{"a", 1}, {"b", 2}}, "x|y\\")}, {});
  EXPECT_EQ(to_parsable(table, true),
            "hostEmissions.a|hostEmissions.b|state|Name|jobID\n"
            "1.000000|2.000000||x\\|y\\\\|1\n");
  EXPECT_EQ(to_parsable(table, false), "1.000000|2.000000||x\\|y\\\\|1\n");
}

TEST(Formats, WriteJson) {
  Record job = unit("1", "a", 21.22149394, {}, "q\"\x01");
  job.texts["started_at_ts"] = "1645450627000";
  EXPECT_EQ(to_json(fields("jobid,name,cpuusage"), {job}, {usage("a", 2, 50, 1, 1)}),
            "{\"units\":[{\"uuid\":\"1\",\"name\":\"q\\\"\\u0001\",\"avg_cpu_usage\":{\"global\":"
            "21.22149394},\"started_at_ts\":1645450627000}],\"usage\":[{\"project\":\"a\","
            "\"num_units\":2,\"total_time_seconds\":{\"alloc_cputime\":1,\"walltime\":90000},"
            "\"avg_cpu_usage\":{\"global\":50}}]}\n");
}

TEST(Formats, ListFieldsAndSeries) {
  const std::string help = fields_help(server_fields(), {"cpu_usage", "power"});
  EXPECT_THAT(help, StartsWith("+----------------+-"));
  EXPECT_THAT(help, HasSubstr("| Account        | Account (project)"));
  EXPECT_LT(help.find("| Account "), help.find("| allocation "));
  EXPECT_THAT(help, HasSubstr("\nTime series for --ts and --ts.metrics:\n  cpu_usage\n  power\n"));
}

}  // namespace
}  // namespace ceems::cacct
