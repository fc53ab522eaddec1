#include "advice/rule.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/test_runs.h"
#include "testing/temp_dir.h"

namespace ceems::advice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::string& text) {
  const auto rules = add_rules(core_rules(), text, "site.yml");
  return rules ? "accepted" : rules.error().message;
}

TEST(Rules, ReportMistakesWithTheirLine) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"rule: []", "site.yml:1: rule: unknown key"},
           {"rules:\n- {id: cpu-low, enable: false}", "site.yml:2: rules[0].enable: unknown key"},
           {"rules:\n- {id: cpu-low, bit: 3}", "site.yml:2: rules[0].bit: unknown key"},
           {"rules:\n- {id: cpu-low, cases: []}", "site.yml:2: rules[0].cases: unknown key"},
           {"rules:\n- {id: CPU}", "site.yml:2: rules[0].id: expected an id of small letters"},
           {"rules:\n- {enabled: false}", "site.yml:2: rules[0]: expected an id"},
           {"rules:\n- {id: cpu-low}\n- {id: cpu-low}", "site.yml:3: rules[1].id: the file names"},
           {"rules:\n- {id: cpu-low, limits: {shar: 0.5}}",
            "site.yml:2: rules[0].limits.shar: the rule has no limit 'shar'"},
           {"rules:\n- {id: cpu-low, limits: {share: much}}", "site.yml:2: rules[0].limits.share"},
           {"rules:\n- {id: cpu-low, severity: fatal}",
            "site.yml:2: rules[0].severity: expected one of good, info, suggest, important; got "
            "'fatal'"},
           {"rules:\n- {id: cpu-low, basis: hope}", "expected one of measured, accounting"},
           {"rules:\n- id: cpu-low\n  when: cpu.ef < 1",
            "site.yml:3: rules[0].when: unknown name 'cpu.ef', did you mean 'cpu.eff'?"},
           {"rules:\n- id: cpu-low\n  when: cpu.eff < limit.shre", "did you mean 'limit.share'?"},
           {"rules:\n- id: cpu-low\n  when: cpu.eff <",
            "site.yml:3: rules[0].when: column 10: expected a value"},
           {"rules:\n- id: cpu-low\n  needs: [cpu.eff, gpus]",
            "site.yml:3: rules[0].needs: unknown"},
           {"rules:\n- id: new\n  text: {en: It helps.}",
            "site.yml:2: rules[0]: a rule needs `when`"},
           {"rules:\n- id: new\n  when: cpu.eff < 1", "a rule needs `text` with the language en"},
           {"rules:\n- id: new\n  when: cpu.eff < 1\n  text: {tlh: Qapla}",
            "site.yml:4: rules[0].text.tlh: expected one of the languages en, de, fr"},
           {"rules:\n- id: new\n  when: cpu.eff < 1\n  text: {en: '{cpu.ef}'}",
            "site.yml:4: rules[0].text: unknown name"},
           {"rules:\n- id: new\n  when: cpu.eff < 1\n  text: {en: What a waste}",
            "site.yml:4: rules[0].text: the text in en is says 'waste'"},
           {"rules:\n- id: new\n  when: cpu.eff < 1\n  text: {en: a}\n  sbatch: ['--mem={want:G}']",
            "site.yml:5: rules[0].sbatch: unknown name 'want'"},
           {"rules:\n- id: cpu-low\n  bsubs: ['-n 1']",
            "site.yml:3: rules[0].bsubs: unknown key, did you mean 'bsub'?"},
           {"rules:\n- id: cpu-low\n  bsub_was:\n  - '-n {alloc.cpu}'",
            "rules[0].bsub_was: unknown name 'alloc.cpu', did you mean 'alloc.cpus'?"},
           {"rules:\n- id: cpu-low\n  pbs: ['-l walltime={limit:hh}']",
            "site.yml:3: rules[0].pbs: malformed placeholder '{limit:hh}'"},
           {"rules:\n- id: cpu-low\n  requests: {cpu: 1}", "site.yml:3: rules[0].requests"},
           {"rules:\n- id: new\n  let: {cpu.eff: 1}\n  when: 'true'",
            "site.yml:3: rules[0].let.cpu.eff: expected a name"},
           {"rules: 3", "site.yml:1: rules: expected a list"},
           {"rules:\n- 3", "site.yml:2: rules[0]: expected a mapping"}}) {
    EXPECT_THAT(error_of(text), HasSubstr(message)) << text;
  }
}

TEST(Rules, OfASiteChangeWhatTheyNameAndNothingElse) {
  const auto rules = add_rules(core_rules(),
                               "ignore_qos: [debug, quick]\n"
                               "sessions: [name=desk-*, submit=srun --pty]\n"
                               "rules:\n"
                               "- {id: cpu-serial, enabled: false}\n"
                               "- {id: cpu-low, limits: {share: 0.5}}\n",
                               "site.yml");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(rules->rules.size(), core_rules().rules.size());
  EXPECT_THAT(rules->ignore_qos, ElementsAre("debug", "quick"));
  EXPECT_THAT(rules->sessions, ElementsAre("name=desk-*", "submit=srun --pty"));
  EXPECT_THAT(error_of("sessions: [desk]"), HasSubstr("entries that begin with name="));
  Facts serial = cpu_run();
  serial.set("cpu.eff", 1.0 / 16);
  serial.set("cpu.used", 1.0);
  serial.set("cpu.used_max", 1.0);
  serial = first_run(serial);
  EXPECT_THAT(said(serial), ElementsAre("cpu-serial"));
  EXPECT_THAT(said(serial, *rules), ElementsAre("cpu-low"));
  Facts low = cpu_run();
  low.set("cpu.eff", 0.6);
  low = first_run(low);
  EXPECT_THAT(said(low), ElementsAre("cpu-low"));
  EXPECT_THAT(said(low, *rules), IsEmpty());
  EXPECT_DOUBLE_EQ(rules->find("cpu-low")->limits.at("low"), 0.65);
}

TEST(Rules, OfASiteMayBeNew) {
  const auto rules =
      add_rules(core_rules(),
                "rules:\n"
                "- id: big-memory\n"
                "  needs: [mem.alloc_node]\n"
                "  limits: {bytes: 1e11}\n"
                "  let: {reserved: mem.alloc_node}\n"
                "  when: mem.alloc_node > limit.bytes\n"
                "  clear: 'true'\n"
                "  text: {en: 'The nodes big-1 to big-8 help with {reserved:bytes}.'}\n",
                "site.yml");
  ASSERT_TRUE(rules) << rules.error().message;
  const auto findings = judge(*rules, {.facts = cpu_run()});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text.at("en"), "The nodes big-1 to big-8 help with 128 GiB.");
  EXPECT_FALSE(findings[0].text.contains("de"));
}

TEST(Rules, AreAtMostTwoHundred) {
  std::string text = "rules:\n";
  for (std::size_t i = core_rules().rules.size(); i < 200; ++i) {
    text += fmt::format("- {{id: r-{}, when: 'true', clear: 'true', text: {{en: Ask us.}}}}\n", i);
  }
  const auto most = add_rules(core_rules(), text, "site.yml");
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->rules.size(), 200U);
  const auto more = add_rules(
      *most, "rules:\n- {id: x, when: 'true', clear: 'true', text: {en: Ask us.}}\n", "b.yml");
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("there are more than 200 rules"));
}

TEST(Rules, HaveLinesForEachManager) {
  const auto rules =
      add_rules(core_rules(),
                "rules:\n"
                "- id: mem-tight\n"
                "  when: 'true'\n"
                "  clear: 'true'\n"
                "  sbatch: ['--a={want:G}', '--b={limit}', '--c={req.mem:G}', '--d']\n"
                "  was: ['--a=0', '--b=0', '--c=0']\n"
                "  requests: ['cpu: {alloc.cpus:m}', 'memory: {want:Gi}']\n"
                "  requests_was: ['cpu: {req.mem}', 'memory: {reserved:Gi}']\n",
                "site.yml");
  ASSERT_TRUE(rules) << rules.error().message;
  const auto lines = [&](const std::string& manager) {
    for (const Finding& finding :
         judge(*rules, {.facts = cpu_run(), .manager = manager, .earlier = {}})) {
      if (finding.rule == "mem-tight") {
        return finding.lines;
      }
    }
    return std::vector<Line>{{.type = "not said"}};
  };
  // What was before stays beside its line if one in front of it has an unknown value.
  EXPECT_THAT(lines("slurm"), ElementsAre(Line{.type = "#SBATCH --a=160G", .was = "--a=0"},
                                          Line{.type = "#SBATCH --b=10800", .was = "--b=0"},
                                          Line{.type = "#SBATCH --d", .was = ""}));
  EXPECT_THAT(lines("k8s"), ElementsAre(Line{.type = "cpu: 16", .was = ""},
                                        Line{.type = "memory: 160Gi", .was = "memory: 128Gi"}));
  // What the file does not name stays as it was.
  EXPECT_THAT(lines("lsf"), ElementsAre(Line{.type = R"(#BSUB -R "rusage[mem=160GB/host]")",
                                             .was = R"(-R "rusage[mem=128GB/host]")"},
                                        Line{.type = "#BSUB -M 160GB", .was = "-M 128GB"}));
  EXPECT_THAT(lines("local"), IsEmpty());
}

TEST(Rules, WithNamesOfTheirOwnKeepTheLinesThatTheyKnow) {
  const auto rules = add_rules(core_rules(),
                               "rules:\n"
                               "- id: oom\n"
                               "  let: {reserved: mem.alloc_node, want: 2 * mem.alloc_node}\n",
                               "site.yml");
  ASSERT_TRUE(rules) << rules.error().message;
  Facts facts = cpu_run();
  facts.set("state", "OUT_OF_MEMORY");
  const auto findings = judge(*rules, {.facts = facts, .manager = "lsf", .earlier = {}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].lines, ElementsAre(Line{.type = R"(#BSUB -R "rusage[mem=256GB/host]")",
                                                  .was = R"(-R "rusage[mem=128GB/host]")"}));
  EXPECT_THAT(error_of("rules:\n- {id: oom, let: {more: '1'}}"),
              HasSubstr("rules[0]: unknown name 'reserved'"));
}

TEST(Rules, AreReadFromADirectoryInTheOrderOfTheNames) {
  const testing::TempDir directory;
  const std::string path = directory.path() / "rules.d";
  EXPECT_EQ(load_rules(path)->rules.size(), core_rules().rules.size());  // none
  std::filesystem::create_directory(path);
  std::ofstream(path + "/20-b.yml") << "rules:\n- {id: cpu-low, limits: {share: 0.4}}\n";
  std::ofstream(path + "/10-a.yml") << "rules:\n- {id: cpu-low, limits: {share: 0.3, low: 0.1}}\n";
  std::ofstream(path + "/README") << "not yaml: [";
  const auto rules = load_rules(path);
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_DOUBLE_EQ(rules->find("cpu-low")->limits.at("share"), 0.4);
  EXPECT_DOUBLE_EQ(rules->find("cpu-low")->limits.at("low"), 0.1);
  std::ofstream(path + "/30-c.yml") << "rules:\n- {id: cpu-low, on: true}\n";
  const auto wrong = load_rules(path);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("30-c.yml:2: rules[0].on: unknown key"));
}

TEST(Rules, NoTextOfAFileMakesReadingFailHard) {
  // Pieces of rule files in wrong places.
  const std::vector<std::string> pieces{
      "rules:", "\n- ", "id: a",         "when: 1 <",      "[", "{", "}", "let:",
      "\n  ",   "'",    "text: {en: b}", "limits: {a: 1}", ": "};
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      state = state * 1664525U + 1013904223U;
      text += pieces[(state >> 16U) % pieces.size()];
    }
    const auto rules = add_rules({}, text, "f.yml");
    EXPECT_TRUE(rules || !rules.error().message.empty());
  }
}

/// The page says of each fact and each rule what it means.
TEST(Rules, AreDocumented) {
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/../docs/report.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const std::string_view fact : fact_names()) {
    EXPECT_THAT(page.str(), HasSubstr(fmt::format("`{}`", fact)));
  }
  for (const Rule& rule : core_rules().rules) {
    EXPECT_THAT(page.str(), HasSubstr(fmt::format("| [`{0}`](advice.md#{0}) |", rule.id)));
    for (const auto& [name, value] : rule.limits) {
      EXPECT_THAT(page.str(), HasSubstr(fmt::format("`{}` {:.12g}", name, value))) << rule.id;
    }
  }
}

}  // namespace
}  // namespace ceems::advice
