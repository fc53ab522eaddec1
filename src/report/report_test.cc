#include "report/report.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/catalogue.h"
#include "base/json_reader.h"
#include "report/plain_text.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr double kGiB = 1024.0 * 1024 * 1024;

/// The job of the example in the documentation.
Report gpu_report() {
  Report report{.cluster_id = "hpc-a",
                .uuid = "4711",
                .started_ms = 1'794'903'120'000,
                .ended_ms = 1'794'970'436'000,
                .started_text = "2026-11-17T09:12:00+0100",
                .state = State::kFinal,
                .coverage = 0.9987};
  report.job = {.name = "cp2k-water",
                .user = "user1",
                .project = "fluids",
                .partition = "gpu",
                .state = "COMPLETED",
                .manager = "slurm",
                .nodes = 2,
                .cpus = 64,
                .gpus = 8,
                .elapsed = 67316,
                .limit = 345600,
                .waited = 7800};
  report.use = {.cpu = 0.14321,
                .mem_peak_node = 7.9 * kGiB,
                .mem_alloc_node = 128 * kGiB,
                .gpu_busy = 0.5291,
                .gpu_sm = 0.2449,
                .gpu_mem = 0.5};
  report.nodes = {{.node = "g14",
                   .cpus = 32,
                   .cpu_seconds = 323000.53,
                   .mem_peak = 7.9 * kGiB,
                   .mem_alloc = 128 * kGiB,
                   .gpus = {{.index = "0",
                             .uuid = "GPU-0",
                             .busy = 0.66,
                             .sm = 0.33,
                             .mem_peak = 26.5 * kGiB,
                             .mem_total = 80 * kGiB},
                            {.index = "3", .uuid = "GPU-3", .busy = 0.0, .sm = 0.0}}},
                  {.node = "g15",
                   .cpus = 32,
                   .cpu_seconds = 280000.0,
                   .mem_peak = 7.8 * kGiB,
                   .mem_alloc = 128 * kGiB,
                   .gpus = {{.index = "0", .uuid = "GPU-4", .busy = 0.73, .sm = 0.31},
                            {.index = "3", .uuid = "GPU-7", .busy = 0.0, .sm = 0.0}}}};
  report.energy = {.kwh = 41.3123,
                   .idle_kwh = 6.2345,
                   .not_used_kwh = 2.0789,
                   .domains = {{"gpu", 33.04}, {"package", 5.1}, {"dram", 0.9}, {"other", 2.26}},
                   .method = "measured"};
  report.co2 = {.grams = 1823.4, .provider = "rte_total"};
  report.cost = {.amount = 9.8851, .currency = "EUR"};
  report.compared = {.runs = 20,
                     .median_kwh = 42.6,
                     .cpu_low = 0.12,
                     .cpu_high = 0.15,
                     .mem_median = 0.06,
                     .gpu_low = 0.5,
                     .gpu_high = 0.54,
                     .project_month_share = 0.01397};
  report.findings = {
      {.rule = "gpu-unused",
       .severity = advice::Severity::kImportant,
       .confidence = advice::Confidence::kSure,
       .runs = 8,
       .say = "gpu-unused",
       .values = {{"unused", 2}, {"of", 8}},
       .text = {{"en", "2 of 8 GPUs never ran a kernel. Asking for fewer starts sooner."},
                {"de", "2 von 8 GPUs führten nie einen Kernel aus."}},
       .lines = {{.type = "#SBATCH --gres=gpu:3", .was = "--gres=gpu:4"}},
       .saves_kwh = 2.5789},
      {.rule = "time-limit",
       .confidence = advice::Confidence::kLikely,
       .text = {{"en", "Time: runs like this one end within 19 h, 4 d reserved."}},
       .lines = {{.type = "#SBATCH --time=1-00:00:00"}}},
  };
  round_report(report);
  return report;
}

/// The same job with marks.
Report marked_report() {
  Report report = gpu_report();
  report.findings.clear();
  report.phases = {{.region = "solve",
                    .count = 1250,
                    .nodes = 2,
                    .seconds = 58'822.4,
                    .share = 0.8738,
                    .kwh = 36.0214,
                    .self_kwh = 35.5,
                    .watts = 1102.4,
                    .slowest = "g15",
                    .longer = 0.0912},
                   {.region = "read",
                    .count = 1,
                    .nodes = 2,
                    .seconds = 370,
                    .share = 0.0055,
                    .slowest = "g14",
                    .longer = 0.004}};
  report.results = {{.result = "step", .n = 1250, .joules = 25'978, .family_joules = 27'100},
                    {.result = "simulated", .unit = "ns", .n = 0.25, .family_joules = 1}};
  for (int i = 0; i < 19; ++i) {
    report.results[0].family.push_back(
        {.uuid = std::to_string(4710 - i), .started_ms = 1'794'000'000'000, .joules = 27'123});
  }
  report.merits = {{.fom = "speed", .unit = "ns/day", .last = 83.2, .mean = 81.4444},
                   {.fom = "loss", .last = -0.5, .mean = -0.5}};
  round_report(report);
  return report;
}

/// A job of which next to nothing is known.
Report bare_report() {
  Report report{.cluster_id = "hpc-a", .uuid = "12", .started_ms = 1, .started_text = "2026-11-17"};
  report.job = {.user = "user1", .state = "FAILED", .manager = "slurm", .elapsed = 12};
  report.compared.runs = 1;
  round_report(report);
  return report;
}

/// Compares with a file below tests/golden/report; CEEMS_GOLDEN_WRITE=1 writes it.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(CEEMS_TEST_ROOT) + "/golden/report/" + name;
  if (std::getenv("CEEMS_GOLDEN_WRITE") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path;
}

void expect_all_forms(const std::string& name, const Report& report) {
  const View view{.help_url = "hpc-support@example.org"};
  expect_golden(name + ".txt", to_text(report, view));
  expect_golden(name + ".md", to_markdown(report, view));
  expect_golden(name + ".html", to_html(report, view));
  expect_golden(name + ".json", to_json(report, view) + "\n");
}

TEST(Report, LooksLikeThis) {
  expect_all_forms("gpu", gpu_report());
  expect_all_forms("bare", bare_report());
  Report partial = gpu_report();
  partial.coverage = 0.7;
  partial.state = State::kPartial;
  partial.findings.clear();
  expect_all_forms("partial", partial);
  Report running = gpu_report();
  running.state = State::kSoFar;
  running.ended_ms = 0;
  running.findings.clear();
  expect_all_forms("running", running);
  expect_all_forms("marked", marked_report());
  expect_golden("gpu_de.txt", to_text(gpu_report(), {.language = "de"}));
  expect_golden("gpu_fr_ascii_60.txt",
                to_text(gpu_report(), {.language = "fr", .width = 60, .ascii = true}));
}

TEST(Report, IsTheExampleOfThePage) {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/../docs/report.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_THAT(page.str(),
              HasSubstr(to_text(gpu_report(), {.help_url = "hpc-support@example.org"})));
}

/// The page reads the same table (web/src/text/format.test.ts).
TEST(Amounts, AreWrittenAsOnThePage) {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/formats.json");
  std::stringstream table;
  table << file.rdbuf();
  for (const auto& value : boost::json::parse(table.str()).as_array()) {
    const boost::json::object& one = value.as_object();
    const std::string what(one.at("what").as_string());
    const auto number = one.at("value").to_number<double>();
    for (const char* language : {"en", "de", "fr"}) {
      const advice::Catalogue& words = advice::catalogue(language);
      const std::string currency =
          what == "money" ? std::string(one.at("currency").as_string()) : std::string();
      const std::string text = what == "energy"      ? energy_text(number, words)
                               : what == "emissions" ? grams_text(number, words)
                               : what == "bytes"     ? bytes_text(number, words)
                               : what == "duration"  ? duration_text(number, words)
                               : what == "percent"
                                   ? percent_text(number / 100, words)
                                   : money_text({.amount = number, .currency = currency}, words);
      EXPECT_EQ(text, one.at(language).as_string()) << value << ' ' << language;
    }
  }
}

TEST(Report, ComparesTwo) {
  Report other = gpu_report();
  other.uuid = "4712";
  other.energy.kwh = 30.0;
  other.use.gpu_busy = 0.8;
  other.use.gpu_sm = std::nullopt;
  other.job.elapsed = 60000;
  expect_golden("compared.txt", compare_text(gpu_report(), other, {}));
  EXPECT_THAT(compare_text(gpu_report(), other, {.language = "de"}), HasSubstr("41,3 kWh"));
}

TEST(Report, ShowsWhatTheJobHasMarked) {
  const std::string text = to_text(marked_report(), {});
  EXPECT_THAT(text, HasSubstr("\nPhases\n"
                              "  Phase         Time      Share  Energy  W per node  Slowest node\n"
                              "  solve × 1250  16:20:22  87 %   36 kWh  1100        g15 +9 %\n"
                              "  read          00:06:10  1 %    –       –\n"
                              "\nResults\n"));
  EXPECT_THAT(
      text,
      HasSubstr("  step       1250 · 26 kJ each · 4 % less than the median of 19 earlier runs\n"
                "  simulated  0.25 ns\n"
                "  speed      83.2 ns/day · 81.4 ns/day on average\n"
                "  loss       -0.5\n"));
  EXPECT_THAT(to_text(gpu_report(), {}), Not(HasSubstr("Phases")));
  EXPECT_THAT(to_text(gpu_report(), {}), Not(HasSubstr("Results")));
  const std::string json = to_json(marked_report(), {});
  EXPECT_THAT(json, HasSubstr(R"("phases":[{"region":"solve","count":1250,"nodes":2,)"
                              R"("seconds":58822,"share":0.87,"kwh":36,"self_kwh":35.5,)"
                              R"("watts":1100,"slowest":"g15","longer":0.09},)"));
  EXPECT_THAT(json,
              HasSubstr(R"("results":[{"result":"step","unit":null,"n":1250,)"
                        R"("joules_per":26000,"family_joules_per":27100,"family":[{"uuid":"4710",)"
                        R"("started_at_ts":1794000000000,"joules_per":27100},)"));
  EXPECT_THAT(json, HasSubstr(R"("fom":[{"fom":"speed","unit":"ns/day","last":83.2,)"
                              R"("mean":81.4444},)"));
}

TEST(Report, ComparesResultsThatBothHave) {
  Report other = marked_report();
  other.results = {{.result = "step", .n = 10, .joules = 28'600},
                   {.result = "simulated", .unit = "ps", .n = 1, .joules = 1}};
  const std::string text = compare_text(marked_report(), other, {});
  EXPECT_THAT(text, HasSubstr("  Energy per step  26 kJ "));
  EXPECT_THAT(text, HasSubstr("  28.6 kJ      +10 %\n"));
  EXPECT_THAT(text, Not(HasSubstr("simulated")));
}

/// JSON has the same digits as the text.
TEST(Report, ShowsTheSameDigitsInEveryForm) {
  const Report report = gpu_report();
  const std::string json = to_json(report, {});
  for (const char* member : {R"("cpu":0.14)", R"("gpu_busy":0.53)", R"("gpu_sm":0.24)",
                             R"("kwh":41.3)", R"("idle_kwh":6.23)", R"("not_used_kwh":2.08)",
                             R"("gpu":33)", R"("other":2.26)", R"("g":1820)", R"("coverage":0.998)",
                             R"("project_month_share":0.014)", R"("saves":{"kwh":2.6})"}) {
    EXPECT_THAT(json, HasSubstr(member));
  }
  for (const std::string& text :
       {to_text(report, {.width = 200}), to_markdown(report, {}), to_html(report, {})}) {
    for (const char* digits : {"14 %", "53 %", "24 %", "41.3 kWh", "6.23 kWh", "33 kWh", "2.26 kWh",
                               "1.82 kg", "99.8 %", "1.4 %", "2.6 kWh"}) {
      EXPECT_THAT(text, HasSubstr(digits));
    }
  }
}

TEST(Report, SaysNotMeasuredAndNever0) {
  const std::string json = to_json(bare_report(), {});
  for (const char* member : {R"("coverage":null)", R"("cpu":null)", R"("kwh":null)", R"("g":null)",
                             R"("gpus":null)", R"("family_median_kwh":null)"}) {
    EXPECT_THAT(json, HasSubstr(member));
  }
  EXPECT_THAT(json, Not(HasSubstr(":0,")));
  for (const std::string& text :
       {to_text(bare_report(), {}), to_markdown(bare_report(), {}), to_html(bare_report(), {})}) {
    EXPECT_THAT(text, HasSubstr("not measured"));
    EXPECT_THAT(text, Not(HasSubstr("0 %")));
    EXPECT_THAT(text, Not(HasSubstr("0 kWh")));
  }
}

TEST(Report, TextStaysWithinItsWidth) {
  Report report = gpu_report();
  report.job.name = std::string(300, 'n');
  report.nodes[0].node = "a-node-with-a-long-name.cluster.example.org";
  for (const std::size_t width : {0, 60, 80, 100, 240, 10'000}) {
    for (const char* language : {"en", "de", "fr"}) {
      std::istringstream text(to_text(report, {.language = language, .width = width}));
      const std::size_t limit = std::clamp<std::size_t>(width, 60, 240);
      for (std::string line; std::getline(text, line);) {
        EXPECT_LE(columns_of(line), limit) << line;
      }
    }
  }
}

TEST(Report, ComparesFromFiveRunsOn) {
  Report report = gpu_report();
  const auto text = [&] { return to_text(report, {.width = 200}); };
  report.compared.runs = 5;
  EXPECT_THAT(text(), HasSubstr("3 % less than the median of the last 5 such jobs"));
  EXPECT_THAT(text(), HasSubstr("usual for this kind of job (5 runs)"));
  report.energy.kwh = report.compared.median_kwh;
  EXPECT_THAT(text(), Not(AnyOf(HasSubstr("less than the med"), HasSubstr("more than the med"))));
  report.compared.median_kwh = 0;
  EXPECT_THAT(text(), Not(HasSubstr("such jobs")));
  report = gpu_report();
  report.compared.runs = 4;
  EXPECT_THAT(text(), Not(AnyOf(HasSubstr("such jobs"), HasSubstr("usual for this kind"))));
}

TEST(Report, SaysThatMoreCpusWereUsedThanAllocatedOnlyIfSo) {
  Report report = gpu_report();
  report.use.cpu = 1;
  EXPECT_THAT(to_text(report, {.width = 200}), Not(HasSubstr("hyper-threads")));
  report.use.cpu = 1.01;
  EXPECT_THAT(to_text(report, {.width = 200}), HasSubstr("hyper-threads"));
}

TEST(Report, IsAsciiOnRequest) {
  Report report = gpu_report();
  report.job.name = "größe✓";
  for (const char* language : {"en", "de", "fr"}) {
    for (const char c : to_text(report, {.language = language, .ascii = true})) {
      ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
    }
  }
}

TEST(Report, EscapesWhatUsersWrite) {
  Report report = gpu_report();
  const std::string hostile =
      "<script>alert(1)</script>\"'\x1b]0;x\x07\u202E|[a](javascript:b)\n# h";
  for (std::string* text :
       {&report.uuid, &report.job.name, &report.job.user, &report.job.project,
        &report.job.partition, &report.job.state, &report.cluster_id, &report.started_text,
        &report.nodes[0].node, &report.nodes[0].gpus[1].index, &report.co2.provider,
        &report.cost.currency}) {
    *text = hostile;
  }
  const std::string html = to_html(report, {});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;"));
  EXPECT_THAT(html, Not(HasSubstr("style=")));  // the policy would ignore it
  const std::string markdown = to_markdown(report, {});
  EXPECT_THAT(markdown, Not(HasSubstr("<script")));
  EXPECT_THAT(markdown, Not(HasSubstr("\n# h")));
  EXPECT_THAT(markdown, HasSubstr("\\|\\[a\\]\\(javascript:b\\)"));
  for (const std::string& text : {to_text(report, {}), html, markdown}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\u202E"), std::string::npos);
  }
  std::string parsed;
  EXPECT_TRUE(append_json_object(parsed, to_json(report, {})));
}

TEST(Report, ShowsTheIdThatSlurmShows) {
  Report report = gpu_report();
  report.uuid = "7101";
  EXPECT_THAT(to_text(report, {}), StartsWith("Job 7101 ·"));
  report.job.array = "7100_4";
  EXPECT_THAT(to_text(report, {}), StartsWith("Job 7101 (7100_4) ·"));
  EXPECT_THAT(to_markdown(report, {}), StartsWith("# Job 7101 \\(7100\\_4\\)\n"));
  EXPECT_THAT(to_html(report, {}), HasSubstr("<h1>Job 7101 (7100_4)</h1>"));
  Report part = report;
  part.uuid = "8201";
  part.job.array = "8200+1";
  EXPECT_THAT(compare_text(report, part, {}), HasSubstr(" 7101 (7100_4)  8201 (8200+1)  "));
}

TEST(Report, ShowsTheLinesOfEachManager) {
  Report report = gpu_report();
  report.job.manager = "openpbs";
  report.findings[0].lines = {{.type = "#PBS -l select=2:ncpus=32:mem=128gb:ngpus=3:mpiprocs=32",
                               .was = "-l select=2:ncpus=32:mem=128gb:ngpus=4:mpiprocs=32"}};
  report.findings[1].lines = {{.type = "#BSUB -W 24:00", .was = "-W 96:00"},
                              {.type = "resources.limits.memory: 10Gi"}};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text,
              HasSubstr("\n       #PBS -l select=2:ncpus=32:mem=128gb:ngpus=3:mpiprocs=32\n"
                        "         (was -l select=2:ncpus=32:mem=128gb:ngpus=4:mpiprocs=32)\n"));
  EXPECT_THAT(text, HasSubstr("\n       #BSUB -W 24:00                (was -W 96:00)\n"
                              "       resources.limits.memory: 10Gi\n"));
  EXPECT_THAT(to_markdown(report, {}), HasSubstr("       #BSUB -W 24:00   # was -W 96:00\n"));
  EXPECT_THAT(to_html(report, {}),
              HasSubstr("<pre><code>#BSUB -W 24:00</code></pre><p class=\"remark\">was -W 96:00</p>"
                        "<pre><code>resources.limits.memory: 10Gi</code></pre>"));
  // The options of sbatch are SLURM's only.
  EXPECT_THAT(to_json(report, {}),
              HasSubstr(R"("lines":[{"type":"#BSUB -W 24:00","was":"-W 96:00"},)"
                        R"({"type":"resources.limits.memory: 10Gi","was":null}],)"
                        R"("sbatch":[],"was":[])"));
  // A line is one line, whatever a damaged database holds.
  report.findings[0].lines = {{.type = "#PBS -l x=1\n#PBS\x1b[2J <b>", .was = "\u202Ea\nb"}};
  for (const std::string& form :
       {to_text(report, {}), to_markdown(report, {}), to_html(report, {})}) {
    EXPECT_THAT(form, HasSubstr("#PBS -l x=1\uFFFD#PBS\uFFFD[2J "));
    EXPECT_THAT(form, HasSubstr("\uFFFDa\uFFFDb"));
  }
  EXPECT_THAT(to_html(report, {}), HasSubstr("[2J &lt;b&gt;</code>"));
}

TEST(Report, WithholdsWhatPeopleWrote) {
  Report report = gpu_report();
  report.job.name = "secret name";
  report.job.partition = "site-part";
  report.job.array = "4711_5";
  report.job.qos = "secret qos";
  report.findings[0].lines = {{.type = "#SBATCH --secret", .was = "--secret"}};
  report.phases = {{.region = "secret-phase"}};
  report.results = {{.result = "secret-result"}};
  report.merits = {{.fom = "secret-fom"}};
  withhold_written(report);
  for (const std::string& text : {to_text(report, {}), to_json(report, {}), to_html(report, {})}) {
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    EXPECT_THAT(text, HasSubstr("2 of 8 GPUs"));
    EXPECT_THAT(text, HasSubstr("site-part"));  // as in lists
  }
  EXPECT_THAT(to_json(report, {}), HasSubstr("4711_5"));
}

TEST(Report, CountsOneAsOne) {
  Report report = gpu_report();
  report.job.nodes = 1;
  report.job.cpus = 1;
  report.job.gpus = 1;
  report.findings.front().runs = 1;  // "likely", without a number of runs
  const auto texts_of = [&](const std::string& language) {
    const View view{.language = language, .width = 200};
    return std::vector{to_text(report, view), to_markdown(report, view), to_html(report, view)};
  };
  const std::map<std::string, std::array<const char*, 3>> one{
      {"en", {"1 node", "1 CPU", "1 GPU"}},
      {"de", {"1 Knoten", "1 CPU", "1 GPU"}},
      {"fr", {"1 nœud", "1 CPU", "1 GPU"}}};
  for (const auto& [language, words] : one) {
    for (const std::string& text : texts_of(language)) {
      for (const char* word : words) {
        EXPECT_THAT(text, HasSubstr(word)) << language;
      }
      for (const char* word : {"1 nodes", "1 CPUs", "1 GPUs", "1 nœuds", "1 runs"}) {
        EXPECT_THAT(text, Not(HasSubstr(word))) << language;
      }
    }
  }
  report.job.cpus = 0.4;  // of a pod: less than is shown
  EXPECT_THAT(texts_of("en")[0], Not(HasSubstr("0 CPU")));
}

TEST(Report, ShowsThreeFindingsUnlessAllAreWanted) {
  Report report = gpu_report();
  report.findings.resize(2);
  report.findings.push_back(report.findings[1]);
  report.findings.push_back(report.findings[1]);
  EXPECT_THAT(to_text(report, {}), HasSubstr("1 more with --all"));
  EXPECT_THAT(to_text(report, {.all_findings = true}), Not(HasSubstr("--all")));
  EXPECT_THAT(to_text(report, {.all_findings = true}), HasSubstr("\n  4. Time"));
}

}  // namespace
}  // namespace ceems::report
