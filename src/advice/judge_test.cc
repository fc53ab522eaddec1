#include "advice/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/test_runs.h"

namespace ceems::advice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Facts narrow_run() {
  Facts facts = gpu_run();
  facts.set("gpu.busy", 0.9);
  facts.set("gpu.sm", 0.15);
  return facts;
}

Finding only_finding(const Case& run) {
  const auto findings = judge(core_rules(), run);
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(Judge, IsSureAfterFiveOfEightRuns) {
  Case run{.facts = narrow_run(), .earlier = {}};
  EXPECT_EQ(only_finding(run).confidence, Confidence::kMaybe);
  EXPECT_EQ(only_finding(run).severity, Severity::kInfo);  // one run, by a small margin
  run.earlier.assign(3, narrow_run());
  EXPECT_EQ(only_finding(run).confidence, Confidence::kMaybe);
  run.earlier.push_back(narrow_run());
  EXPECT_EQ(only_finding(run).confidence, Confidence::kSure);
  EXPECT_EQ(only_finding(run).severity, Severity::kSuggest);
  EXPECT_EQ(only_finding(run).runs, 5U);
  // Only the last eight count.
  run.earlier.insert(run.earlier.begin(), 4, gpu_run());
  EXPECT_EQ(only_finding(run).runs, 4U);
  EXPECT_EQ(only_finding(run).confidence, Confidence::kMaybe);
  run.facts.set("gpu.sm", 0.09);
  EXPECT_EQ(only_finding(run).confidence, Confidence::kLikely);
}

TEST(Judge, NeedsTheCoverageOfTheBasis) {
  const auto rules =
      add_rules(core_rules(),
                "rules:\n"
                "- {id: of-use, basis: measured, when: 'true', text: {en: a}}\n"
                "- {id: of-account, basis: accounting, when: 'true', text: {en: b}}\n"
                "- {id: of-loss, basis: node-lost, when: 'true', text: {en: c}}\n",
                "site.yml");
  ASSERT_TRUE(rules) << rules.error().message;
  const auto new_rules = [&](const Facts& facts) {
    auto ids = rules_found(facts, *rules);
    std::erase_if(ids, [](const std::string& id) { return !id.starts_with("of-"); });
    return ids;
  };
  Facts facts = cpu_run();
  facts.set("coverage", 0.9);
  EXPECT_THAT(new_rules(facts), UnorderedElementsAre("of-use", "of-account"));
  facts.set("coverage", 0.89);
  EXPECT_THAT(new_rules(facts), ElementsAre("of-loss"));
  facts.clear("coverage");
  EXPECT_THAT(new_rules(facts), ElementsAre("of-account"));
}

TEST(Judge, PutsTheMostUsefulFirst) {
  Facts facts = first_run(gpu_run());
  facts.set("gpu.unused", 1);
  facts.set("gpu.unused_per_node", 1);
  facts.set("mem.peak_node_max", 7 * kGiB);
  facts.set("family.mem_max", 7 * kGiB);
  facts.set("family.mem_p95", 7 * kGiB);
  facts.set("mem.alloc_node", 250 * kGiB);
  facts.set("alloc.mem_per_cpu", 15 * kGiB);
  facts.set("gpu.sm", 0.05);
  std::vector<std::string> ids;
  for (const Finding& finding : judge(core_rules(), {.facts = facts})) {
    ids.push_back(finding.rule);
  }
  EXPECT_THAT(ids, ElementsAre("gpu-unused", "gpu-narrow", "mem-excess"));
}

TEST(Judge, WritesEachLanguageWithItsNumbers) {
  Facts facts = first_run(cpu_run());
  facts.set("mem.peak_node_max", 7.9 * kGiB);
  facts = first_run(facts);
  const Finding finding = only_finding({.facts = facts});
  EXPECT_EQ(
      finding.text.at("en"),
      "Memory: 7.9 GiB a node at most, 128 GiB reserved. Asking for 10 GiB keeps 20 % to spare "
      "and starts sooner.");
  EXPECT_EQ(
      finding.text.at("de"),
      "Speicher: höchstens 7,9 GiB je Knoten, 128 GiB reserviert. Mit 10 GiB bleiben 20 % Reserve, "
      "und der Job startet früher.");
  EXPECT_EQ(
      finding.text.at("fr"),
      "Mémoire : au plus 7,9 GiB par nœud, 128 GiB réservés. Demander 10 GiB garde 20 % de marge "
      "et permet de démarrer plus tôt.");
  EXPECT_EQ(finding.values.at("want"), 10 * kGiB);
}

TEST(Judge, SavesOnlyWhatWasReservedAndNotUsed) {
  const auto saved = [](const Facts& facts) { return only_finding({.facts = facts}).saves_kwh; };
  Facts facts = gpu_run();
  facts.set("gpu.unused", 1);
  // A quarter of the idle power of four GPUs, although the others were not always busy.
  EXPECT_DOUBLE_EQ(saved(facts).value_or(0), 0.1);
  facts.set("gpu.unused", 3);
  facts.set("not_used.kwh_gpu", 0.25);
  EXPECT_DOUBLE_EQ(saved(facts).value_or(0), 0.25) << "never more than was not used";
  facts.set("gpu.unused", 4);
  EXPECT_DOUBLE_EQ(saved(facts).value_or(0), 0.25) << "none of the GPUs was used";
  facts.set("not_used.kwh_gpu", 0);
  EXPECT_FALSE(saved(facts).has_value());
  facts.clear("not_used.kwh_gpu");
  EXPECT_FALSE(saved(facts).has_value()) << "unknown, although the idle power is known";
  // A job that did nothing for three quarters of its time.
  facts = changed(cpu_run(), {{"idle.seconds", 5400}, {"idle.kwh", 0.2}, {"not_used.kwh", 0.18}});
  EXPECT_DOUBLE_EQ(saved(facts).value_or(0), 0.2 * 0.75);
  facts.set("not_used.kwh", 0.1);
  EXPECT_DOUBLE_EQ(saved(facts).value_or(0), 0.1);
  facts.clear("not_used.kwh");
  EXPECT_FALSE(saved(facts).has_value());
}

TEST(Judge, PraisesOnlyIfThereIsNothingElse) {
  EXPECT_EQ(only_finding({.facts = cpu_run()}).rule, "good");
  Facts facts = cpu_run();
  facts.set("idle.seconds", 7000);
  EXPECT_EQ(only_finding({.facts = facts}).rule, "idle");
  facts.set("runtime", 299);
  EXPECT_THAT(judge(core_rules(), {.facts = facts}), IsEmpty());
  facts.clear("runtime");
  EXPECT_THAT(judge(core_rules(), {.facts = facts}), IsEmpty());
  EXPECT_THAT(judge(core_rules(), {}), IsEmpty());
}

TEST(Judge, SaysAgainInTheFormOfARequest) {
  const Rule& rule = *core_rules().find("gpu-unused");
  // `asked` was worked out of how the earlier run was asked for.
  const NumbersByName found{{"unused", 2}, {"of", 4}, {"keep", 2}, {"left", 2}, {"asked", 99}};
  Facts request;
  request.set("alloc.nodes", 1);
  request.set("alloc.gpus", 4);
  request.set("gpu.per_node", 4);
  request.set("slurm.gpus_by", "node");
  request.set("slurm.gpus_option", "--gres=gpu:a100:");
  request.set("slurm.gpus_asked", 4);
  request.set("slurm.gpus_more", "");
  const Finding said = say_again(rule, found, request, "slurm");
  EXPECT_EQ(said.rule, "gpu-unused");
  EXPECT_TRUE(said.text.at("en").starts_with("2 of 4 GPUs never ran a kernel."))
      << said.text.at("en");
  EXPECT_THAT(said.lines, ElementsAre(Line{"#SBATCH --gres=gpu:a100:2", "--gres=gpu:a100:4"}));
  request.set("slurm.gpus_by", "job");
  request.set("slurm.gpus_option", "--gpus=");
  EXPECT_THAT(say_again(rule, found, request, "slurm").lines,
              ElementsAre(Line{"#SBATCH --gpus=2", "--gpus=4"}));
  EXPECT_THAT(say_again(rule, found, request, "lsf").lines,
              ElementsAre(Line{"#BSUB -gpu \"num=2/host\"", "-gpu \"num=4/host\""}));
  // Without a form that can be changed, there is no line; without values, no text.
  request.clear("slurm.gpus_by");
  EXPECT_THAT(say_again(rule, found, request, "slurm").lines, IsEmpty());
  EXPECT_THAT(say_again(rule, {}, request, "slurm").text, IsEmpty());
}

TEST(Judge, SaysAgainWithTheNumbersOfTheRequest) {
  const Rule& rule = *core_rules().find("mem-excess");
  Facts request;
  request.set("alloc.nodes", 1);
  request.set("mem.alloc_node", 64 * kGiB);
  request.set("slurm.mem", "node");
  const NumbersByName found{{"peak", 8 * kGiB}, {"reserved", 128 * kGiB}, {"want", 10 * kGiB}};
  const Finding said = say_again(rule, found, request, "slurm");
  EXPECT_THAT(said.lines, ElementsAre(Line{"#SBATCH --mem=10G", "--mem=64G"}));
  EXPECT_EQ(said.values.at("reserved"), 64 * kGiB);
}

}  // namespace
}  // namespace ceems::advice
