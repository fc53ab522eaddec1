// Each rule on both sides of each of its limits, and jobs that look wrong but are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/rule_cases.h"

namespace ceems::advice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Facts of_state(Facts facts, const char* state) {
  facts.set("state", state);
  return facts;
}

TEST(CoreRules, SpeakOnOneSideOfEachLimitOnly) {
  for (const RuleCase& one : rule_cases()) {
    expect_case(one, core_rules());
  }
}

TEST(CoreRules, AreSilentWithoutWhatTheyNeed) {
  for (const RuleCase& one : rule_cases()) {
    const Rule& rule = *core_rules().find(one.rule);
    ASSERT_FALSE(rule.needs.empty()) << rule.id;
    for (const std::string& need : rule.needs) {
      Facts facts = one.said;
      facts.clear(need);
      EXPECT_THAT(rules_found(facts), Not(Contains(rule.id))) << "without " << need;
    }
  }
}

TEST(CoreRules, SayNothingOfAQosThatIsForTests) {
  for (const RuleCase& one : rule_cases()) {
    Facts facts = one.said;
    facts.set("qos", "debug");
    EXPECT_THAT(rules_found(facts), IsEmpty()) << one.rule;
  }
}

TEST(CoreRules, WithoutMeasurementsAccountingStillCounts) {
  for (const auto& [state, rule] : std::vector<std::pair<const char*, std::string>>{
           {"OUT_OF_MEMORY", "oom"}, {"TIMEOUT", "timeout"}}) {
    Facts facts;
    facts.set("state", state);
    facts.set("runtime", 3600);
    facts.set("limit", 3600);
    facts.set("mem.alloc_node", 4 * kGiB);
    EXPECT_THAT(said(facts), ElementsAre(rule));
  }
}

// ---- Jobs that look wrong and are not.

TEST(NoFalseAlarm, WhenFilesTakeTheTime) {
  const Facts job = first_run(changed(cpu_run(), {{"cpu.eff", 0.2}, {"io.bytes_per_s", 2e8}}));
  EXPECT_THAT(said(job), IsEmpty());
  // Nor where I/O is not counted, because it may be that.
  Facts uncounted = first_run(changed(cpu_run(), {{"cpu.eff", 0.2}}));
  EXPECT_THAT(said(uncounted), ElementsAre("cpu-low"));
  uncounted.clear("io.bytes_per_s");
  EXPECT_THAT(said(uncounted), IsEmpty());
}

TEST(NoFalseAlarm, WhenANotebookIsWritten) {
  Facts notebook = first_run(changed(gpu_run(), {{"gpu.busy", 0.05},
                                                 {"gpu.unused", 1},
                                                 {"gpu.unused_mem_peak", 8 * kGiB},
                                                 {"runtime", 3 * 3600},
                                                 {"limit", 8 * 3600},
                                                 {"idle.seconds", 2 * 3600}}));
  notebook.set("interactive", true);
  EXPECT_THAT(said(notebook), IsEmpty());
  notebook.set("interactive", false);  // the same as a batch job
  EXPECT_THAT(said(notebook), Contains("gpu-unused"));
}

TEST(NoFalseAlarm, WhenMpiSpins) {
  const Facts spinning = first_run(changed(cpu_run(), {{"alloc.nodes", 2},
                                                       {"alloc.cpus", 128},
                                                       {"alloc.cpus_per_node", 64},
                                                       {"alloc.exclusive", 1},
                                                       {"cpu.eff", 1.0},
                                                       {"cpu.used_max", 64},
                                                       {"cpu.busy_nodes", 2},
                                                       {"mem.peak_node_max", 2 * kGiB}}));
  Facts exclusive = spinning;
  exclusive.set("alloc.exclusive", true);
  EXPECT_THAT(said(exclusive), IsEmpty());
}

TEST(NoFalseAlarm, WhenOneTaskOfAnArrayIsShorter) {
  // The others need the limit and the memory.
  const Facts task = changed(cpu_run(), {{"runtime", 1000},
                                         {"limit", 36000},
                                         {"mem.peak_node_max", 10 * kGiB},
                                         {"family.n", 20},
                                         {"family.runtime_p95", 30000},
                                         {"family.runtime_max", 35000},
                                         {"family.mem_p95", 110 * kGiB},
                                         {"family.mem_max", 120 * kGiB}});
  EXPECT_THAT(said(task), IsEmpty());
}

TEST(NoFalseAlarm, WhenARunWasRequeuedOrCancelled) {
  for (const char* state : {"REQUEUED", "PREEMPTED", "CANCELLED", "FAILED", "NODE_FAIL"}) {
    // It ended early and not by itself, so its time says nothing about the limit.
    Facts run = changed(cpu_run(), {{"runtime", 1800}, {"limit", 86400}});
    run.set("state", state);
    EXPECT_THAT(said(run), IsEmpty()) << state;
  }
}

TEST(NoFalseAlarm, WhenMemoryRanOut) {
  // The last sample before the end is below the limit; only the rule oom speaks.
  const Facts killed =
      of_state(first_run(changed(cpu_run(), {{"mem.peak_node_max", 50 * kGiB}})), "OUT_OF_MEMORY");
  EXPECT_THAT(said(killed), ElementsAre("oom"));
  EXPECT_THAT(said(changed(cpu_run(), {{"mem.peak_node_max", 50 * kGiB}, {"family.oom", 1}})),
              IsEmpty());
}

TEST(NoFalseAlarm, WhenOnlyThisRunIsOdd) {
  // The usual run works well: gpu-low and cpu-low wait for the median.
  EXPECT_THAT(said(changed(gpu_run(), {{"gpu.busy", 0.02}})), IsEmpty());
  EXPECT_THAT(said(changed(cpu_run(), {{"cpu.eff", 0.3}})), IsEmpty());
}

TEST(NoFalseAlarm, WhenAModelNeedsTheMemoryOfItsGpus) {
  EXPECT_THAT(said(first_run(changed(gpu_run(), {{"gpu.busy", 0.1}, {"gpu.mem", 0.9}}))),
              IsEmpty());
}

TEST(NoFalseAlarm, WhenACoreHasTwoThreads) {
  // One CPU was asked for, and the manager gave both threads of its core.
  EXPECT_THAT(said(first_run(changed(cpu_run(), {{"alloc.cpus", 2},
                                                 {"req.cpus", 1},
                                                 {"alloc.cpus_per_node", 2},
                                                 {"cpu.eff", 0.5},
                                                 {"cpu.used", 1.0},
                                                 {"cpu.used_max", 1.0},
                                                 {"io.bytes_per_s", 1e9}}))),
              IsEmpty());
}

// ---- What a suggestion says.

/// The lines that the rule suggests to users of a manager, and what they were.
std::vector<Line> lines_for(const std::string& manager,
                            const std::string& rule,
                            const Facts& facts) {
  for (const Finding& finding :
       judge(core_rules(), {.facts = facts, .manager = manager, .earlier = {}})) {
    if (finding.rule == rule) {
      return finding.lines;
    }
  }
  return {{.type = "not said"}};
}

/// The lines of SLURM, without what precedes them, then the former values.
std::vector<std::string> lines_of(const std::string& rule, const Facts& facts) {
  constexpr std::string_view kPrefix = "#SBATCH ";
  std::vector<std::string> texts;
  const auto lines = lines_for("slurm", rule, facts);
  for (const Line& line : lines) {
    EXPECT_THAT(line.type, StartsWith(kPrefix));
    texts.push_back(line.type.substr(kPrefix.size()));
  }
  for (const Line& line : lines) {
    texts.push_back(line.was);
  }
  return texts;
}

/// What the rule says in all languages.
std::vector<std::string> texts_of(const std::string& rule, const Facts& facts) {
  std::vector<std::string> texts;
  for (const Finding& finding : judge(core_rules(), {.facts = facts})) {
    if (finding.rule == rule) {
      for (const auto& [language, text] : finding.text) {
        texts.push_back(text);
      }
    }
  }
  return texts;
}

TEST(Suggestions, CountOneAsOne) {
  const Facts one = changed(gpu_run(), {{"alloc.gpus", 1}, {"gpu.per_node", 1}});
  EXPECT_THAT(texts_of("gpu-none", changed(one, {{"gpu.unused", 1}})),
              ElementsAre(StartsWith("Die GPU führte keinen Kernel aus."),
                          StartsWith("The GPU ran no kernel."),
                          StartsWith("Le GPU n'a exécuté aucun noyau.")));
  EXPECT_THAT(texts_of("gpu-none", changed(gpu_run(), {{"gpu.unused", 4}})),
              ElementsAre(StartsWith("Keine der GPUs führte einen Kernel aus."),
                          StartsWith("None of the GPUs ran a kernel."),
                          StartsWith("Aucun des GPU n'a exécuté de noyau.")));
  EXPECT_THAT(texts_of("gpu-low", changed(one, {{"gpu.busy", 0.2}, {"family.gpu_median", 0.2}})),
              ElementsAre(StartsWith("Die GPU war 20 %"), StartsWith("The GPU was busy 20 %"),
                          StartsWith("Le GPU était actif 20 %")));
  EXPECT_THAT(texts_of("gpu-narrow", changed(one, {{"gpu.busy", 0.8}, {"gpu.sm", 0.1}})),
              ElementsAre(StartsWith("Die GPU war 80 % der Zeit beschäftigt, nutzte aber"),
                          StartsWith("The GPU was busy 80 % of the time, but used 10 % of its"),
                          HasSubstr("mais avec 10 % de ses cœurs")));
  EXPECT_THAT(
      texts_of("gpu-unused", changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}})),
      ElementsAre(StartsWith("1 von 4 GPUs führte nie"), StartsWith("1 of 4 GPUs never ran"),
                  StartsWith("1 GPU sur 4 n'a exécuté")));
}

TEST(Suggestions, NameTheNumbers) {
  EXPECT_THAT(
      lines_of("gpu-unused", changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}})),
      ElementsAre("--gres=gpu:3", "--gres=gpu:4"));
  // Another GPU on each node: no common number, so no line.
  EXPECT_THAT(
      lines_of("gpu-unused", changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 0}})),
      IsEmpty());
  const Facts small = first_run(changed(cpu_run(), {{"mem.peak_node_max", 7.9 * kGiB}}));
  EXPECT_THAT(lines_of("mem-excess", small), ElementsAre("--mem=10G", "--mem=128G"));
  EXPECT_THAT(lines_of("mem-excess", changed(small, {{"family.mem_max", 20 * kGiB}})),
              ElementsAre("--mem=24G", "--mem=128G"));
  EXPECT_THAT(lines_of("oom", of_state(cpu_run(), "OUT_OF_MEMORY")),
              ElementsAre("--mem=200G", "--mem=128G"));
  EXPECT_THAT(lines_of("mem-tight", changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB}})),
              ElementsAre("--mem=160G", "--mem=128G"));
  // More than a node has is not suggested.
  EXPECT_THAT(lines_of("mem-tight", changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB},
                                                        {"node.mem", 150 * kGiB}})),
              IsEmpty());
  const Facts early = changed(cpu_run(), {{"limit", 345600}});
  EXPECT_THAT(lines_of("time-limit", early), ElementsAre("--time=03:00:00", "--time=4-00:00:00"));
  EXPECT_THAT(
      lines_of("time-limit", changed(early, {{"family.n", 20}, {"family.runtime_p95", 68400}})),
      ElementsAre("--time=1-00:00:00", "--time=4-00:00:00"));
  EXPECT_THAT(lines_of("timeout", of_state(cpu_run(), "TIMEOUT")),
              ElementsAre("--time=05:00:00", "--time=03:00:00"));
}

TEST(Suggestions, StayWithinTheNodesAndThePartition) {
  // A node keeps a tenth for itself.
  const Facts full = of_state(changed(cpu_run(), {{"node.mem", 150 * kGiB}}), "OUT_OF_MEMORY");
  EXPECT_THAT(lines_of("oom", full), IsEmpty());
  EXPECT_THAT(texts_of("oom", full), Contains(HasSubstr("Its nodes have no more")));
  const Facts nearly = changed(full, {{"node.mem", 180 * kGiB}});
  EXPECT_THAT(lines_of("oom", nearly), ElementsAre("--mem=162G", "--mem=128G"));
  EXPECT_THAT(texts_of("oom", nearly), Contains(HasSubstr("Asking for more helps")));
  Facts unmeasured = full;
  unmeasured.clear("node.mem");
  EXPECT_THAT(lines_of("oom", unmeasured), ElementsAre("--mem=200G", "--mem=128G"));
  // What the partition allows is known exactly, and counts instead of the nodes of this run.
  const Facts partition = changed(full, {{"queue.mem", 160.5 * kGiB}});
  EXPECT_THAT(lines_of("oom", partition), ElementsAre("--mem=160G", "--mem=128G"));
  EXPECT_THAT(lines_of("oom", changed(full, {{"queue.mem", 400 * kGiB}})),
              ElementsAre("--mem=200G", "--mem=128G"));
  const Facts bound = changed(full, {{"queue.mem", 130 * kGiB}});
  EXPECT_THAT(lines_of("oom", bound), IsEmpty());
  EXPECT_THAT(texts_of("oom", bound),
              Contains(HasSubstr("No more is allowed for its nodes and CPUs")));
  const Facts tight = changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB}});
  EXPECT_THAT(lines_of("mem-tight", changed(tight, {{"queue.mem", 150 * kGiB}})), IsEmpty());
  EXPECT_THAT(texts_of("mem-tight", changed(tight, {{"queue.mem", 150 * kGiB}})),
              Contains(HasSubstr("No more is allowed here; another partition helps")));
  EXPECT_THAT(texts_of("mem-tight", tight), Contains(HasSubstr("Asking for 20 % more helps")));
  EXPECT_THAT(lines_of("mem-tight", changed(tight, {{"queue.mem", 160 * kGiB}})),
              ElementsAre("--mem=160G", "--mem=128G"));
  // Fewer nodes of less memory do not hold what the job needs.
  const Facts spread = changed(two_nodes_run(), {{"mem.peak_sum", 180 * kGiB}});
  EXPECT_THAT(lines_of("nodes-many", spread), Contains("--nodes=1"));
  EXPECT_THAT(texts_of("nodes-many", changed(spread, {{"queue.mem", 200 * kGiB}})), IsEmpty());
  EXPECT_THAT(lines_of("nodes-many", changed(spread, {{"queue.cpus", 32}})), Contains("--nodes=1"));
  EXPECT_THAT(texts_of("nodes-many", changed(spread, {{"queue.cpus", 31}})), IsEmpty());
  EXPECT_THAT(texts_of("nodes-many", changed(spread, {{"queue.min_nodes", 2}})), IsEmpty());
  // Memory by CPU stays with all CPUs on one node: 2 * 128 GiB on nodes of 256, or of fewer.
  Facts by_cpu = changed(spread, {{"slurm.tasks", 32}});
  by_cpu.set("slurm.mem", "cpu");
  by_cpu.set("slurm.by_tasks", true);
  by_cpu.set("slurm.by_cpus", false);
  EXPECT_THAT(lines_of("nodes-many", by_cpu), Contains("--nodes=1"));
  EXPECT_THAT(lines_of("nodes-many", changed(by_cpu, {{"queue.mem", 255 * kGiB}})), IsEmpty());
  // A partition for jobs of two nodes.
  const Facts unused = changed(
      two_nodes_run(), {{"cpu.unused_nodes", 1}, {"cpu.busy_nodes", 1}, {"slurm.tasks", 2}});
  EXPECT_THAT(lines_of("cpu-unused-node", unused), Contains("--nodes=1"));
  EXPECT_THAT(texts_of("cpu-unused-node", changed(unused, {{"queue.min_nodes", 2}})), IsEmpty());
  // Three GPUs on two nodes are two on one of them, with two thirds of the memory of all four.
  Facts by_gpu = changed(gpu_run(), {{"alloc.nodes", 2},
                                     {"gpu.per_node", 2},
                                     {"gpu.unused", 1},
                                     {"slurm.gpus_asked", 4},
                                     {"queue.mem", 200 * kGiB}});
  by_gpu.set("slurm.gpus_by", "job");
  by_gpu.set("slurm.gpus_option", "--gpus=");
  by_gpu.set("slurm.mem", "gpu");
  EXPECT_THAT(lines_of("gpu-unused", by_gpu), Contains("--gpus=3"));
  EXPECT_THAT(lines_of("gpu-unused", changed(by_gpu, {{"queue.mem", 150 * kGiB}})), IsEmpty());
  EXPECT_THAT(
      lines_of("gpu-unused", changed(by_gpu, {{"queue.mem", 150 * kGiB}, {"gpu.unused", 2}})),
      Contains("--gpus=2"));
  // Three hours are the longest of the partition, or four.
  const Facts longest = of_state(changed(cpu_run(), {{"queue.limit", 10800}}), "TIMEOUT");
  EXPECT_THAT(lines_of("timeout", longest), IsEmpty());
  EXPECT_THAT(texts_of("timeout", longest), Contains(HasSubstr("the longest that it may have")));
  EXPECT_THAT(lines_of("timeout", changed(longest, {{"queue.limit", 14400}})),
              ElementsAre("--time=04:00:00", "--time=03:00:00"));
}

TEST(Suggestions, DoNotContradictEachOther) {
  // A job that fits on fewer nodes, of which each would then need more memory than before.
  const Facts small = first_run(
      changed(two_nodes_run(), {{"mem.peak_node_max", 20 * kGiB}, {"mem.peak_sum", 40 * kGiB}}));
  std::vector<std::string> lines;
  for (const Finding& finding : judge(core_rules(), {.facts = small, .manager = "slurm"})) {
    for (const Line& line : finding.lines) {
      lines.push_back(line.type);
    }
  }
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("#SBATCH --mem"); });
  EXPECT_EQ(lines.size(), 1U);
}

TEST(Suggestions, OfSessionsAreNotThoseOfScripts) {
  Facts session = first_run(changed(cpu_run(), {{"limit", 28800}, {"runtime", 1800}}));
  EXPECT_THAT(said(session), Contains("time-limit"));
  session.set("interactive", true);
  EXPECT_THAT(said(session), IsEmpty());
  Facts idle = changed(gpu_run(),
                       {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}, {"gpu.unused_mem_peak", 0}});
  idle.set("interactive", true);
  EXPECT_THAT(said(idle), ElementsAre("gpu-unused"));
  EXPECT_THAT(lines_of("gpu-unused", idle), IsEmpty());
}

/// A run of OpenPBS whose chunks are known.
Facts pbs_run(Facts facts, const std::string& gpus) {
  facts.set("pbs.mem", ":mem=128gb");
  facts.set("pbs.gpus", gpus);
  facts.set("pbs.more", ":mpiprocs=16");
  return facts;
}

TEST(Lines, OfLsf) {
  const auto lsf = [](const std::string& rule, const Facts& facts) {
    return lines_for("lsf", rule, facts);
  };
  const Facts small = first_run(changed(cpu_run(), {{"mem.peak_node_max", 7.9 * kGiB}}));
  EXPECT_THAT(lsf("mem-excess", small),
              ElementsAre(Line{.type = R"(#BSUB -R "rusage[mem=10GB/host]")",
                               .was = R"(-R "rusage[mem=128GB/host]")"},
                          Line{.type = "#BSUB -M 10GB", .was = "-M 128GB"}));
  // On several nodes, -M might be meant for all of them together.
  EXPECT_THAT(lsf("oom", of_state(changed(cpu_run(), {{"alloc.nodes", 2}}), "OUT_OF_MEMORY")),
              ElementsAre(Line{.type = R"(#BSUB -R "rusage[mem=200GB/host]")",
                               .was = R"(-R "rusage[mem=128GB/host]")"}));
  EXPECT_THAT(lsf("mem-tight", changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB}})),
              ElementsAre(Line{.type = R"(#BSUB -R "rusage[mem=160GB/host]")",
                               .was = R"(-R "rusage[mem=128GB/host]")"},
                          Line{.type = "#BSUB -M 160GB", .was = "-M 128GB"}));
  EXPECT_THAT(lsf("time-limit", changed(cpu_run(), {{"limit", 345600}})),
              ElementsAre(Line{.type = "#BSUB -W 3:00", .was = "-W 96:00"}));
  EXPECT_THAT(lsf("timeout", of_state(cpu_run(), "TIMEOUT")),
              ElementsAre(Line{.type = "#BSUB -W 5:00", .was = "-W 3:00"}));
  EXPECT_THAT(
      lsf("gpu-unused", changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}})),
      ElementsAre(Line{.type = R"(#BSUB -gpu "num=3/host")", .was = R"(-gpu "num=4/host")"}));
  EXPECT_THAT(lsf("cpu-serial", changed(cpu_run(), {{"cpu.used", 1}, {"cpu.used_max", 1}})),
              ElementsAre(Line{.type = "#BSUB -n 1", .was = "-n 16"}));
  const Facts nodes = changed(cpu_run(), {{"alloc.nodes", 3}, {"alloc.cpus", 48}});
  EXPECT_THAT(
      lsf("cpu-unused-node", changed(nodes, {{"cpu.unused_nodes", 1}, {"cpu.busy_nodes", 2}})),
      ElementsAre(Line{.type = "#BSUB -n 32", .was = "-n 48"}));
  EXPECT_THAT(lsf("nodes-many", changed(nodes, {{"cpu.busy_nodes", 3}})),
              ElementsAre(Line{.type = R"(#BSUB -R "span[ptile=48]")"}));
}

TEST(Lines, OfOpenstack) {
  const auto lines = [](const Facts& facts) {
    return lines_for("openstack", "flavor-large", facts);
  };
  EXPECT_THAT(lines(server_run()),
              ElementsAre(Line{.type = "openstack server resize --flavor m1.medium 4f0e",
                               .was = "--flavor m1.large"}));
  // One that is gone can only be made anew, and then it need not have run for a week.
  Facts gone = changed(server_run(), {{"runtime", 300}});
  gone.clear("flavor.server");
  EXPECT_THAT(lines(gone), ElementsAre(Line{.type = "openstack server create --flavor m1.medium",
                                            .was = "--flavor m1.large"}));
  gone.clear("flavor.now");
  EXPECT_THAT(lines(gone), ElementsAre(Line{.type = "openstack server create --flavor m1.medium"}));
  EXPECT_THAT(lines_for("slurm", "flavor-large", server_run()), IsEmpty());
}

TEST(Suggestions, OfAFlavorAreLikelyByTwiceTheMargin) {
  const auto confidence = [](const Facts& facts) {
    for (const Finding& finding : judge(core_rules(), {.facts = facts, .manager = "openstack"})) {
      if (finding.rule == "flavor-large") {
        return std::string(to_string(finding.confidence)) + ", " +
               std::string(to_string(finding.severity)) + ": " + finding.text.at("en");
      }
    }
    return std::string("not said");
  };
  EXPECT_EQ(
      confidence(changed(server_run(), {{"cpu.used_max", 2.8}})),
      "likely, suggest: At most 20 GiB of 128 GiB of memory and 2.8 of 16 CPUs were used. Flavor "
      "m1.medium with 4 CPUs and 32 GiB keeps a fifth to spare and helps the budget.");
  EXPECT_THAT(confidence(changed(server_run(), {{"cpu.used_max", 2.9}})),
              StartsWith("maybe, info"));
  EXPECT_THAT(confidence(changed(server_run(), {{"mem.peak_node_max", 23 * kGiB}})),
              StartsWith("maybe, info"));
}

TEST(Lines, OfOpenPbs) {
  const auto pbs = [](const std::string& rule, const Facts& facts, const std::string& gpus = {}) {
    return lines_for("openpbs", rule, pbs_run(facts, gpus));
  };
  const Facts two = changed(cpu_run(), {{"alloc.nodes", 2}, {"alloc.cpus", 32}});
  const Facts small = first_run(changed(two, {{"mem.peak_node_max", 7.9 * kGiB}}));
  const Line memory{.type = "#PBS -l select=2:ncpus=16:mem=10gb:mpiprocs=16",
                    .was = "-l select=2:ncpus=16:mem=128gb:mpiprocs=16"};
  EXPECT_THAT(pbs("mem-excess", small), ElementsAre(memory));
  EXPECT_THAT(pbs("oom", of_state(cpu_run(), "OUT_OF_MEMORY"), ":ngpus=4"),
              ElementsAre(Line{.type = "#PBS -l select=1:ncpus=16:mem=200gb:ngpus=4:mpiprocs=16",
                               .was = "-l select=1:ncpus=16:mem=128gb:ngpus=4:mpiprocs=16"}));
  EXPECT_THAT(pbs("mem-tight", changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB}})),
              ElementsAre(Line{.type = "#PBS -l select=1:ncpus=16:mem=160gb:mpiprocs=16",
                               .was = "-l select=1:ncpus=16:mem=128gb:mpiprocs=16"}));
  EXPECT_THAT(
      pbs("time-limit", changed(cpu_run(), {{"limit", 345600}})),
      ElementsAre(Line{.type = "#PBS -l walltime=03:00:00", .was = "-l walltime=96:00:00"}));
  EXPECT_THAT(
      pbs("timeout", of_state(cpu_run(), "TIMEOUT")),
      ElementsAre(Line{.type = "#PBS -l walltime=05:00:00", .was = "-l walltime=03:00:00"}));
  EXPECT_THAT(pbs("gpu-unused", changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}}),
                  ":ngpus=4"),
              ElementsAre(Line{.type = "#PBS -l select=1:ncpus=16:mem=128gb:ngpus=3:mpiprocs=16",
                               .was = "-l select=1:ncpus=16:mem=128gb:ngpus=4:mpiprocs=16"}));
  EXPECT_THAT(pbs("cpu-serial", changed(cpu_run(), {{"cpu.used", 1}, {"cpu.used_max", 1}})),
              ElementsAre(Line{.type = "#PBS -l select=1:ncpus=1:mem=128gb",
                               .was = "-l select=1:ncpus=16:mem=128gb:mpiprocs=16"}));
  EXPECT_THAT(
      pbs("cpu-unused-node", changed(two, {{"cpu.unused_nodes", 1}, {"cpu.busy_nodes", 1}})),
      ElementsAre(Line{.type = "#PBS -l select=1:ncpus=16:mem=128gb:mpiprocs=16",
                       .was = "-l select=2:ncpus=16:mem=128gb:mpiprocs=16"}));
  // How ranks would be spread over fewer nodes is not known.
  EXPECT_THAT(pbs("nodes-many", changed(two, {{"mem.peak_sum", 10 * kGiB}})), IsEmpty());
  // Without the chunks of the job, a line would take something from it.
  EXPECT_THAT(lines_for("openpbs", "mem-excess", small), IsEmpty());
}

TEST(Lines, OfKubernetes) {
  const auto pod = [](const std::string& rule, const Facts& facts) {
    return lines_for("k8s", rule, facts);
  };
  const Facts small = first_run(changed(cpu_run(), {{"mem.peak_node_max", 7.9 * kGiB}}));
  const Line limit{.type = "resources.limits.memory: 10Gi",
                   .was = "resources.limits.memory: 128Gi"};
  EXPECT_THAT(pod("mem-excess", small), ElementsAre(limit));
  EXPECT_THAT(pod("mem-excess", changed(small, {{"req.mem", 64 * kGiB}})),
              ElementsAre(limit, Line{.type = "resources.requests.memory: 10Gi",
                                      .was = "resources.requests.memory: 64Gi"}));
  // Never more than was asked for.
  EXPECT_THAT(pod("mem-excess", changed(small, {{"req.mem", 2 * kGiB}})), ElementsAre(limit));
  EXPECT_THAT(pod("mem-tight", changed(cpu_run(), {{"mem.peak_node_max", 125 * kGiB}})),
              ElementsAre(Line{.type = "resources.limits.memory: 160Gi",
                               .was = "resources.limits.memory: 128Gi"}));
  const Facts low = first_run(changed(cpu_run(), {{"cpu.eff", 0.2}, {"cpu.used_max", 3.01}}));
  EXPECT_THAT(pod("cpu-low", changed(low, {{"req.cpus", 16}})),
              ElementsAre(Line{.type = "resources.requests.cpu: 3700m",
                               .was = "resources.requests.cpu: 16"}));
  EXPECT_THAT(pod("cpu-low", changed(low, {{"req.cpus", 3.7}})), IsEmpty());
  EXPECT_THAT(lines_for("slurm", "cpu-low", low), IsEmpty());
  EXPECT_THAT(
      pod("cpu-serial", changed(cpu_run(), {{"cpu.used", 1}, {"cpu.used_max", 1}})),
      ElementsAre(Line{.type = "resources.requests.cpu: 1", .was = "resources.requests.cpu: 16"}));
  // Nothing to type where it is not known which of several kinds of GPUs was not used.
  Facts gpus = changed(gpu_run(), {{"gpu.unused", 1}, {"gpu.unused_per_node", 1}});
  EXPECT_THAT(pod("gpu-unused", gpus), IsEmpty());
  gpus.set("k8s.gpu_resource", "amd.com/gpu");
  EXPECT_THAT(pod("gpu-unused", gpus), ElementsAre(Line{.type = "resources.limits.amd.com/gpu: 3",
                                                        .was = "resources.limits.amd.com/gpu: 4"}));
}

TEST(Lines, OfOtherManagersDoNotExist) {
  const Facts small = first_run(changed(cpu_run(), {{"mem.peak_node_max", 7.9 * kGiB}}));
  for (const char* manager : {"", "openstack", "local", "SLURM"}) {
    EXPECT_THAT(lines_for(manager, "mem-excess", small), IsEmpty()) << manager;
  }
}

/// From `first` up to below `end`, each `factor` times the one before.
std::vector<double> rising(double first, double end, double factor) {
  std::vector<double> all;
  while (first < end) {
    all.push_back(first);
    first *= factor;
  }
  return all;
}

/// After the suggestion is followed, the same use gives no suggestion of the rule.
TEST(Suggestions, AreSilentOnceFollowed) {
  for (const double peak : rising(0.1, 90, 1.13)) {
    Facts job = first_run(changed(cpu_run(), {{"mem.peak_node_max", peak * kGiB}}));
    const auto findings = judge(core_rules(), {.facts = job});
    const auto found = std::ranges::find(findings, "mem-excess", &Finding::rule);
    if (found != findings.end()) {
      const double want = found->values.at("want");
      EXPECT_LT(want, 128 * kGiB);
      EXPECT_GE(want, 1.2 * peak * kGiB);
      job.set("mem.alloc_node", want);
      job.set("alloc.mem_per_cpu", want / 16);
      EXPECT_THAT(said(job), Not(Contains("mem-excess"))) << peak;
      EXPECT_THAT(said(job), Not(Contains("mem-tight"))) << peak;
    }
  }
  for (const double known : {1.0, 20.0}) {
    for (const double runtime : rising(901, 2e6, 1.07)) {
      Facts job = first_run(changed(cpu_run(), {{"runtime", runtime}, {"family.n", known}}));
      job.set("limit", 30.0 * 86400);
      const auto findings = judge(core_rules(), {.facts = job});
      const auto found = std::ranges::find(findings, "time-limit", &Finding::rule);
      if (found != findings.end()) {
        EXPECT_GE(found->values.at("want"), 1.2 * runtime);
        job.set("limit", found->values.at("want"));
        EXPECT_THAT(said(job), Not(Contains("time-limit"))) << runtime;
      }
    }
  }
}

}  // namespace
}  // namespace ceems::advice
