#include "tool/rules/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/rules/discovery.h"
#include "tool/rules/promql.h"
#include "tool/rules/render.h"
#include "tool/rules/rules_test_support.h"

namespace ceems::tool::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<std::size_t> no_answer(std::string_view /*question*/,
                              const std::vector<std::string>& /*options*/) {
  return fail(ErrorCode::kInvalidArgument, "nobody to ask");
}

Family family_of(std::set<std::string, std::less<>> series) {
  Job one = job("j", std::move(series));
  one.chassis = {"c"};
  one.chips = {{"acpi", "power_meter"}};
  if (!one.has("ceems_hwmon_power_current_watts")) {
    one.chips.clear();
  }
  const Site site{.jobs = {one}, .evaluation_interval = {}, .providers = {}};
  const Plan plan = make_plan(site, {}, no_answer);
  return plan.hosts.at(0).family;
}

TEST(Plan, PrefersTheMeterThatSeesMost) {
  EXPECT_EQ(family_of({"ceems_cray_pm_counters_power_watts", "ceems_redfish_current_watts"}),
            Family::kCray);
  EXPECT_EQ(family_of({"ceems_redfish_power_current_watts", "ceems_ipmi_dcmi_current_watts"}),
            Family::kRedfish);
  EXPECT_EQ(family_of({"ceems_ipmi_dcmi_power_current_watts", "ceems_hwmon_power_current_watts",
                       "ceems_rapl_package_joules_total"}),
            Family::kIpmi);
  EXPECT_EQ(family_of({"ceems_hwmon_power_current_watts", "ceems_rapl_package_joules_total"}),
            Family::kHwmon);
  EXPECT_EQ(family_of({"ceems_rapl_package_joules_total"}), Family::kRapl);
}

TEST(Plan, TakesRaplWhereItIsUnclearWhatAChipMeasures) {
  Job one = job("j", {"ceems_hwmon_power_current_watts", "ceems_rapl_package_joules_total"});
  one.chips = {{"pci-0000:01:00.0", "amdgpu"}};
  const Site site{.jobs = {one}, .evaluation_interval = {}, .providers = {}};
  const Plan plan = make_plan(site, {}, no_answer);
  EXPECT_EQ(plan.hosts.at(0).family, Family::kRapl);
  EXPECT_THAT(plan.remarks, ElementsAre(HasSubstr("--hwmon.chip: pci-0000:01:00.0")));
  Choices choices;
  choices.chips = {"j=pci-0000:01:00.0"};
  const Plan chosen = make_plan(site, choices, no_answer);
  EXPECT_EQ(chosen.hosts.at(0).family, Family::kHwmon);
  EXPECT_EQ(chosen.hosts.at(0).chip, "pci-0000:01:00.0");
}

TEST(Plan, AsksWhichChipMeasuresTheNodeOnlyWithoutRapl) {
  Job one = job("j", {"ceems_hwmon_power_current_watts"});
  one.chips = {{"a", "power_meter"}, {"b", "power_meter"}};
  Site site{.jobs = {one}, .evaluation_interval = {}, .providers = {}};
  std::string asked;
  const Ask second = [&](std::string_view question, const auto& options) -> Result<std::size_t> {
    asked = question;
    EXPECT_THAT(options, ElementsAre("a", "b"));
    return 1;
  };
  EXPECT_EQ(make_plan(site, {}, second).hosts.at(0).chip, "b");
  EXPECT_EQ(asked, "job 'j' has several values of chip; which one is the power of the whole node?");
  EXPECT_THAT(make_plan(site, {}, no_answer).errors, ElementsAre("job 'j': nobody to ask"));
  Choices choices;
  choices.chips = {"j=c"};
  EXPECT_THAT(make_plan(site, choices, no_answer).errors,
              ElementsAre("job 'j' has no chip 'c', but a, b"));
  site.jobs[0].series.insert("ceems_rapl_package_joules_total");
  EXPECT_EQ(make_plan(site, {}, no_answer).hosts.at(0).family, Family::kRapl);
  site.jobs[0].chips = {{"a", "power_meter"}, {"b", "amdgpu"}};
  EXPECT_EQ(make_plan(site, {}, no_answer).hosts.at(0).chip, "a");
}

TEST(Plan, TakesTheLastChassisWithoutAJobThatExists) {
  Job one = job("j", {"ceems_redfish_power_current_watts"});
  one.chassis = {"A", "B", "C"};
  const Site site{.jobs = {one}, .evaluation_interval = {}, .providers = {}};
  Choices choices;
  choices.chassis = {"A", "B", "D"};
  EXPECT_EQ(make_plan(site, choices, no_answer).hosts.at(0).chassis, "B");
}

TEST(Plan, LooksForGpusOnlyWhereUnitsHaveSome) {
  const Site site{
      .jobs = {job("cpu", {"ceems_rapl_package_joules_total"}), job("smi", {"amd_gpu_power"})},
      .evaluation_interval = {},
      .providers = {}};
  EXPECT_THAT(make_plan(site, {}, no_answer).gpus, IsEmpty());
}

TEST(Plan, KnowsLaterNames) {
  const auto has = [](std::string series) {
    return has_later_names({.jobs = {job("none", {}), job("j", {std::move(series)})},
                            .evaluation_interval = {},
                            .providers = {}});
  };
  EXPECT_TRUE(has("ceems_ipmi_dcmi_power_current_watts"));
  EXPECT_TRUE(has("ceems_redfish_power_current_watts"));
  EXPECT_FALSE(has("ceems_redfish_current_watts"));
  EXPECT_FALSE(has("ceems_ipmi_dcmi_current_watts"));
}

TEST(Plan, NamesTheFamilies) {
  std::vector<std::string_view> names;
  for (const Family family :
       {Family::kCray, Family::kRedfish, Family::kIpmi, Family::kHwmon, Family::kRapl}) {
    names.push_back(to_string(family));
  }
  EXPECT_THAT(names, ElementsAre("Cray PM counters", "Redfish", "IPMI", "hwmon", "RAPL"));
}

TEST(Plan, SelectsAChassis) {
  Job one = job("j", {"ceems_redfish_current_watts"});
  Site site{.jobs = {one}, .evaluation_interval = {}, .providers = {}};
  EXPECT_THAT(make_plan(site, {}, no_answer).errors,
              ElementsAre("no chassis found for ceems_redfish_current_watts"));
  site.jobs[0].chassis = {"A", "B"};
  EXPECT_THAT(make_plan(site, {}, no_answer).errors, ElementsAre("job 'j': nobody to ask"));
  const auto second = [](auto, const auto& options) -> Result<std::size_t> {
    return options.size() - 1;
  };
  EXPECT_EQ(make_plan(site, {}, second).hosts.at(0).chassis, "B");
  Choices choices;
  choices.chassis = {"B", "j=A", "other=C"};
  EXPECT_EQ(make_plan(site, choices, no_answer).hosts.at(0).chassis, "A");
  choices.chassis = {"j=C"};
  EXPECT_THAT(make_plan(site, choices, no_answer).errors,
              ElementsAre("job 'j' has no chassis 'C', but A, B"));
}

TEST(Plan, PairsJobsThatShareHosts) {
  const std::set<std::string, std::less<>> host{"ceems_rapl_package_joules_total",
                                                "ceems_compute_unit_gpu_index_flag"};
  const Site site{.jobs = {job("cpu-a", host, {"n1", "n2", "n3"}), job("cpu-b", host, {"n3"}),
                           job("dcgm-1", {"DCGM_FI_DEV_POWER_USAGE"}, {"n1", "n2"}),
                           job("dcgm-2", {"DCGM_FI_DEV_POWER_USAGE_INSTANT"}, {"n2"}),
                           job("elsewhere", {"DCGM_FI_DEV_POWER_USAGE_INSTANT"}, {"n9"}),
                           job("smi", {"amd_gpu_power"}, {"n3"}),
                           job("zz-device", {"gpu_power_usage"}, {"n3"})},
                  .evaluation_interval = {},
                  .providers = {}};
  const Plan plan = make_plan(site, {}, no_answer);
  std::vector<std::string> first;
  for (const GpuPlan* gpus : plan.hosts.at(0).gpus) {
    first.push_back(gpus->job->name);
  }
  // Each for hosts that a better one does not have: device metrics, then the later job of DCGM.
  EXPECT_THAT(first, ElementsAre("zz-device", "dcgm-2", "dcgm-1"));
  ASSERT_EQ(plan.hosts.at(1).gpus.size(), 1U);
  EXPECT_EQ(plan.hosts.at(1).gpus[0], plan.hosts.at(0).gpus[0]);
  EXPECT_THAT(plan.gpus.at(0).cpu_jobs, ElementsAre("cpu-a", "cpu-b"));
  EXPECT_EQ(plan.gpus.at(0).kind, GpuKind::kAmdDevice);
}

TEST(Plan, LeavesOutJobsThatCountEnergy) {
  const Site site{.jobs = {job("new", {"ceems_rapl_package_joules_total",
                                       "ceems_compute_unit_energy_joules_total"}),
                           job("none", {"ceems_compute_units"}), job("other", {"amd_gpu_power"})},
                  .evaluation_interval = {},
                  .providers = {}};
  const Plan plan = make_plan(site, {}, no_answer);
  EXPECT_TRUE(plan.hosts.empty());
  EXPECT_THAT(plan.remarks, ElementsAre(HasSubstr("'new' is skipped: its exporters count"),
                                        HasSubstr("'none' is skipped: its exporters export no")));
  Choices choices;
  choices.skip_counted = false;
  EXPECT_EQ(make_plan(site, choices, no_answer).hosts.size(), 1U);
}

TEST(Plan, LeavesOutJobsOfWhichSomeNodesCountEnergy) {
  Job mixed = job("mixed", {"ceems_rapl_package_joules_total", "ceems_node_energy_joules_total"},
                  {"n1", "n2", "n3"});
  mixed.counting_hosts = {"n1", "n2"};
  Job idle = job("idle", {"ceems_node_energy_joules_total"}, {"n4"});  // has no units now
  idle.counting_hosts = {"n4"};
  const std::set<std::string, std::less<>> host{"ceems_rapl_package_joules_total",
                                                "ceems_compute_unit_gpu_index_flag"};
  const Site site{.jobs = {mixed, idle, job("old", host, {"n5"}), job("older", host, {"n6"}),
                           job("dcgm", {"DCGM_FI_DEV_POWER_USAGE"}, {"n1", "n5"}),
                           job("dcgm-old", {"DCGM_FI_DEV_POWER_USAGE"}, {"n6"})},
                  .evaluation_interval = {},
                  .providers = {}};
  const Plan plan = make_plan(site, {}, no_answer);
  EXPECT_EQ(plan.hosts.size(), 2U);
  EXPECT_THAT(plan.remarks, ElementsAre(HasSubstr("'mixed' is skipped: the exporters on 2 of its 3 "
                                                  "hosts count"),
                                        HasSubstr("'idle' is skipped: its exporters count")));
  ASSERT_EQ(plan.gpus.size(), 2U);
  EXPECT_TRUE(plan.gpus[0].counted_elsewhere);
  EXPECT_FALSE(plan.gpus[1].counted_elsewhere);
}

TEST(HostOf, RemovesThePort) {
  EXPECT_EQ(host_of("n1:9010"), "n1");
  EXPECT_EQ(host_of("n1"), "n1");
  EXPECT_EQ(host_of("[2001:db8::1]:9010"), "[2001:db8::1]");
  EXPECT_EQ(host_of("n1:"), "n1:");
  EXPECT_EQ(host_of("n1:http"), "n1:http");
}

TEST(FileNames, AreSafeAndDifferent) {
  FileNames names;
  EXPECT_EQ(names.name("cpu", ".rules"), "cpu.rules");
  EXPECT_EQ(names.name("../etc/x", ".rules"), "_.._etc_x.rules");
  EXPECT_EQ(names.name("a/b", ".rules"), "a_b.rules");
  EXPECT_EQ(names.name("a b", ".rules"), "a_b-2.rules");
  EXPECT_EQ(names.name("a+b", ".rules"), "a_b-3.rules");
  EXPECT_EQ(names.name("", ".rules"), "_.rules");
  EXPECT_EQ(names.name(std::string(5000, 'x'), "-gpu.rules").size(), 210U);
}

TEST(RuleFile, QuotesNamesThatYamlWouldMisread) {
  EXPECT_EQ(yaml_scalar("cpu-nodes"), "cpu-nodes");
  EXPECT_EQ(yaml_scalar("yes"), "\"yes\"");
  for (const char* word : {"TRUE", "False", "no", "On", "off", "null", "y", "N", ".inf", ".NaN"}) {
    EXPECT_EQ(yaml_scalar(word), "\"" + std::string(word) + "\"");
  }
  for (const char* plain : {"a1", "zZ", "A", "Z-a", "Ab", "_", "a:b/c.d_e-f"}) {
    EXPECT_EQ(yaml_scalar(plain), plain);
  }
  for (const char* quoted : {"", "1", "1a", "-a", ":a", "@a", "[a", "`a", "{a", "/a", ".a"}) {
    EXPECT_EQ(yaml_scalar(quoted), "\"" + std::string(quoted) + "\"");
  }
  EXPECT_EQ(yaml_scalar("a: b"), "\"a: b\"");
  EXPECT_EQ(yaml_scalar("a\n- b"), "\"a\\n- b\"");
  EXPECT_EQ(yaml_scalar("a:"), "\"a:\"");
  EXPECT_EQ(rule_file({{.name = "g #1",
                        .interval = "1s",
                        .rules = {{.record = "a:b", .expression = "x\n  + y"},
                                  {.record = "c:d", .expression = "x", .labels = {{"e", "1"}}}}}}),
            "---\ngroups:\n  - name: \"g #1\"\n    interval: 1s\n    rules:\n"
            "      - record: a:b\n        expr: |-\n          x\n            + y\n"
            "      - record: c:d\n        expr: |-\n          x\n        labels:\n"
            "          e: \"1\"\n");
}

TEST(Expressions, QuoteTheNameOfTheJob) {
  EXPECT_EQ(job_matcher({"a\"b"}), R"(job="a\"b")");
  EXPECT_EQ(job_matcher({"a.b", "c"}), R"(job=~"a[.]b|c")");
  EXPECT_EQ(with_label("x", "job", "a$1"), R"x(label_replace(x, "job", "a$$1", "job", ".*"))x");
  EXPECT_EQ(escaped("a\"\\\n\x01\x7f\u0085\u2028é\xff"),
            "a\\\"\\\\\\n\\u0001\\u007f\\u0085\\u2028é\uFFFD");
  EXPECT_EQ(escaped(" ~\x1f\xc2\x80\xc2\x9f\xc2\xa0\u2029\ufeff\u2030"),
            " ~\\u001f\\u0080\\u009f\xc2\xa0\\u2029\\ufeff\u2030");
  EXPECT_EQ(scaled(1, "x"), "x");
  EXPECT_EQ(scaled(1.3, "x"), "1.3 * x");
}

TEST(RateWindow, IsFourScrapesInWhatPrometheusReads) {
  Job one = job("cpu", {});
  EXPECT_EQ(rate_window(one), "1m0s");
  one.scrape_interval = std::chrono::milliseconds(375);
  EXPECT_EQ(rate_window(one), "1500ms");
}

}  // namespace
}  // namespace ceems::tool::rules
