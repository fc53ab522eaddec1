#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/rules/groups.h"
#include "tool/rules/rules_test_support.h"

namespace ceems::tool::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The text with {job="cpu"} for each "@".
std::string of_cpu(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c == '@' ? R"({job="cpu"})" : std::string(1, c);
  }
  return out;
}

HostPlan host(const Job& exporter, Family family) {
  return {.job = &exporter, .family = family, .chassis = {}, .chip = {}, .gpus = {}};
}

const std::string kUnitCpu =
    "(irate(ceems_compute_unit_cpu_user_seconds_total@[1m0s]) + "
    "irate(ceems_compute_unit_cpu_system_seconds_total@[1m0s]))";
const std::string kOfCpu =
    kUnitCpu +
    "\n  / on (instance) group_left () sum by (instance) "
    "(irate(ceems_cpu_seconds_total{job=\"cpu\",mode!~\"idle|iowait|steal\"}[1m0s]))\n  * on "
    "(instance) group_left () ";
const std::string kOfMemory =
    "ceems_compute_unit_memory_used_bytes@\n  / on (instance) group_left () sum by (instance) "
    "(ceems_meminfo_MemTotal_bytes@ - ceems_meminfo_MemAvailable_bytes@)\n  * on (instance) "
    "group_left () ";
const std::string kEqually =
    "(ceems_compute_unit_memory_used_bytes@ * 0 + 1)\n  / on (instance) group_left () sum by "
    "(instance) (ceems_compute_units@)\n  * on (instance) group_left () ";
const std::string kPackage = "sum by (instance) (irate(ceems_rapl_package_joules_total@[1m0s]))";
const std::string kDram =
    "(sum by (instance) (irate(ceems_rapl_dram_joules_total@[1m0s])) or " + kPackage + " * 0)";

TEST(HostRules, SplitPackagesByCpuTimeAndDramByMemory) {
  const Job one = job("cpu", {"ceems_rapl_package_joules_total"});
  const auto groups = host_groups(host(one, Family::kRapl), common(1.5));
  ASSERT_THAT(groups, SizeIs(2));  // no traffic, no emissions
  EXPECT_EQ(groups[0].name, "compute-unit-rules-cpu");
  EXPECT_EQ(groups[0].interval, "30s");
  EXPECT_THAT(
      records(groups[0]),
      ElementsAre("uuid:ceems_cpu_usage:ratio_irate", "uuid:ceems_cpu_memory_usage:ratio",
                  "instance:ceems_rapl_package_joules_total:pue",
                  "instance:ceems_rapl_dram_joules_total:pue", "uuid:ceems_host_power_watts:pue"));
  EXPECT_EQ(expression(groups[0], "uuid:ceems_cpu_usage:ratio_irate"),
            of_cpu("100 * " + kUnitCpu + "\n  /\n(ceems_compute_unit_cpus@ > 0)"));
  EXPECT_EQ(expression(groups[0], "uuid:ceems_cpu_memory_usage:ratio"),
            of_cpu("100 * ceems_compute_unit_memory_used_bytes@\n  /\n"
                   "(ceems_compute_unit_memory_total_bytes@ > 0)"));
  EXPECT_EQ(expression(groups[0], "instance:ceems_rapl_dram_joules_total:pue"),
            of_cpu("1.5 * ceems_rapl_dram_joules_total@"));
  EXPECT_EQ(expression(groups[0], "uuid:ceems_host_power_watts:pue"),
            of_cpu(kOfCpu + "(1.5 * " + kPackage + ")\n+\n" + kOfMemory + "(1.5 * " + kDram + ")"));

  EXPECT_EQ(groups[1].name, "host-agg-rules-cpu");
  EXPECT_EQ(groups[1].interval, "1m0s");
  EXPECT_THAT(records(groups[1]), ElementsAre("job:ceems_cpu_usage:avg_ratio_irate",
                                              "job:ceems_cpu_memory_usage:avg_ratio",
                                              "job:ceems_host_power_watts:pue"));
  EXPECT_EQ(expression(groups[1], "job:ceems_cpu_usage:avg_ratio_irate"),
            of_cpu("avg by (job) (\n  100 * sum by (job, instance) "
                   "(irate(ceems_cpu_seconds_total{job=\"cpu\",mode!~\"idle|iowait|steal\"}[1m0s]))"
                   "\n    /\n  (sum by (job, instance) (ceems_cpu_count@) > 0)\n)"));
  EXPECT_EQ(expression(groups[1], "job:ceems_cpu_memory_usage:avg_ratio"),
            of_cpu("100 * avg by (job) (1 - ceems_meminfo_MemAvailable_bytes@ / "
                   "ceems_meminfo_MemTotal_bytes@)"));
  EXPECT_EQ(expression(groups[1], "job:ceems_host_power_watts:pue"),
            of_cpu("1.5 * sum by (job) (sum by (job, instance) "
                   "(irate(ceems_rapl_package_joules_total@[1m0s])) + (sum by (job, instance) "
                   "(irate(ceems_rapl_dram_joules_total@[1m0s])) or sum by (job, instance) "
                   "(irate(ceems_rapl_package_joules_total@[1m0s])) * 0))"));
}

TEST(HostRules, SplitTheRestOfACrayNodeEqually) {
  const Job one = job("cpu", {"ceems_cray_pm_counters_power_watts"});
  const auto groups = host_groups(host(one, Family::kCray), common());
  EXPECT_EQ(expression(groups[0], "instance:ceems_cray_pm_counters_power_watts:pue"),
            of_cpu("ceems_cray_pm_counters_power_watts@"));
  const auto domain = [](std::string_view matcher) {
    return fmt::format(
        "sum by (instance) (instance:ceems_cray_pm_counters_power_watts:pue{{job=\"cpu\",{}}})",
        matcher);
  };
  const std::string node = domain("domain=\"node\"");
  EXPECT_EQ(
      expression(groups[0], "uuid:ceems_host_power_watts:pue"),
      of_cpu(kOfCpu + "(" + domain("domain=\"cpu\"") + " or " + node + " * 0)\n+\n" + kOfMemory +
             "(" + domain("domain=\"memory\"") + " or " + node + " * 0)\n+\n" + kEqually + "(" +
             node + " - (" + domain("domain!=\"node\"") + " or " + node + " * 0))"));
  EXPECT_EQ(expression(groups[1], "job:ceems_host_power_watts:pue"),
            "sum by (job) (sum by (job, instance) "
            "(ceems_cray_pm_counters_power_watts{job=\"cpu\",domain=\"node\"}) - (sum by (job, "
            "instance) (ceems_cray_pm_counters_power_watts{job=\"cpu\",domain=~\"accel.*\"}) or "
            "sum by (job, instance) "
            "(ceems_cray_pm_counters_power_watts{job=\"cpu\",domain=\"node\"}) * 0))");
}

TEST(HostRules, SplitTheMetersPowerByCpuTimeWithoutDram) {
  for (const bool package : {false, true}) {
    Job one = job("cpu", {"ceems_ipmi_dcmi_current_watts", "ceems_redfish_current_watts"});
    if (package) {
      one.series.insert("ceems_rapl_package_joules_total");
    }
    const auto groups = host_groups(host(one, Family::kIpmi), common());
    EXPECT_EQ(expression(groups[0], "instance:ceems_ipmi_dcmi_current_watts:pue"),
              of_cpu("ceems_ipmi_dcmi_current_watts@"));
    const std::string watts = "sum by (instance) (instance:ceems_ipmi_dcmi_current_watts:pue@)";
    EXPECT_EQ(expression(groups[0], "uuid:ceems_host_power_watts:pue"),
              of_cpu("0.9 * " + kOfCpu + watts + "\n+\n0.1 * " + kEqually + watts));
    EXPECT_EQ(expression(groups[1], "job:ceems_host_power_watts:pue"),
              of_cpu("sum by (job) (ceems_ipmi_dcmi_current_watts@)"));
  }
}

TEST(HostRules, SplitTheMetersPowerAsRaplSays) {
  const Job one =
      job("cpu", {"ceems_ipmi_dcmi_current_watts", "ceems_ipmi_dcmi_power_current_watts",
                  "ceems_rapl_package_joules_total", "ceems_rapl_dram_joules_total"});
  const auto groups = host_groups(host(one, Family::kIpmi), common(2));
  EXPECT_EQ(expression(groups[0], "instance:ceems_ipmi_dcmi_power_current_watts:pue"),
            of_cpu("2 * (ceems_ipmi_dcmi_power_current_watts@ or ceems_ipmi_dcmi_current_watts@)"));
  const std::string watts = "sum by (instance) (instance:ceems_ipmi_dcmi_power_current_watts:pue@)";
  const std::string both = "(" + kPackage + " + " + kDram + " > 0)";
  EXPECT_EQ(expression(groups[0], "uuid:ceems_host_power_watts:pue"),
            of_cpu("0.9 * " + kOfCpu + "(" + watts + " * " + kPackage + " / " + both + " or " +
                   watts + ")\n+\n0.9 * " + kOfMemory + "(" + watts + " * " + kDram + " / " + both +
                   " or " + watts + " * 0)\n+\n0.1 * " + kEqually + watts));
}

TEST(HostRules, SelectTheChassisAndTheChip) {
  const Job one = job("cpu", {"ceems_redfish_current_watts", "ceems_hwmon_power_current_watts"});
  HostPlan plan = host(one, Family::kRedfish);
  plan.chassis = "A\"1";
  EXPECT_EQ(expression(host_groups(plan, common())[0], "instance:ceems_redfish_current_watts:pue"),
            R"(ceems_redfish_current_watts{job="cpu",chassis="A\"1"})");
  plan = host(one, Family::kHwmon);
  plan.chip = "acpi";
  EXPECT_EQ(
      expression(host_groups(plan, common())[0], "instance:ceems_hwmon_power_current_watts:pue"),
      R"(sum by (instance, hostname, job) (ceems_hwmon_power_current_watts{job="cpu",chip="acpi"}))");
}

TEST(HostRules, SubtractGpusThatTheMeterSees) {
  const Job one = job("cpu", {"ceems_ipmi_dcmi_current_watts"});
  const Job smi = job("smi", {"amd_gpu_power"});
  const Job device = job("device", {"gpu_power_usage"});
  const GpuPlan first{.job = &smi, .kind = GpuKind::kAmdSmi, .cpu_jobs = {"cpu"}};
  const GpuPlan second{.job = &device, .kind = GpuKind::kAmdDevice, .cpu_jobs = {"cpu"}};
  HostPlan plan = host(one, Family::kIpmi);
  plan.gpus = {&first, &second};
  plan.gpus_included = true;
  const auto at_host = [](const std::string& text) {
    return R"(label_replace()" + text +
           R"(, "instancehost", "$1", "instance", "(.*?)(?::[0-9]+)?"))";
  };
  const std::string host_watts = at_host(R"(ceems_ipmi_dcmi_current_watts{job="cpu"})");
  const std::string smi_watts =
      R"x(label_replace(label_replace(label_replace((amd_gpu_power{job="smi"} / 1e6), "index", )x"
      R"x("$1", "gpu_power", "(.+)"), "index", "$1", "gpu_use_percent", "(.+)"), "index", "$1", )x"
      R"x("gpu_memory_use_percent", "(.+)"))x";
  const std::string device_watts =
      R"x(label_replace(label_replace(gpu_power_usage{job="device"}, "index", "$1", "gpu_id", )x"
      R"x("(.+)"), "gpuiid", "$1", "gpu_partition_id", "(.+)"))x";
  const auto by_host = [&](const std::string& watts) {
    return "sum by (instancehost) (max by (instancehost, index) (" + at_host(watts) + "))";
  };
  const std::string minus = host_watts + " - on (instancehost) group_left () (" +
                            by_host(smi_watts) + " or " + by_host(device_watts) + ")";
  EXPECT_EQ(host_minus_gpu_watts(plan), minus);
  const auto groups = host_groups(plan, common(1.5));
  EXPECT_EQ(expression(groups[0], "instance:ceems_ipmi_dcmi_current_watts:pue"),
            "(1.5 * (\n  " + minus + "\n  or\n  (" + host_watts + " unless on (instancehost) (" +
                at_host(R"(last_over_time(amd_gpu_power{job="smi"}[1h]))") + " or " +
                at_host(R"(last_over_time(gpu_power_usage{job="device"}[1h]))") + "))\n) > 0)");
}

TEST(HostRules, RecordTheTrafficThatIsExported) {
  const Job one = job("cpu", {"ceems_rapl_package_joules_total", "ceems_ebpf_read_bytes_total",
                              "ceems_ebpf_write_errors_total", "ceems_ebpf_egress_packets_total"});
  const auto groups = host_groups(host(one, Family::kRapl), common());
  ASSERT_THAT(groups, SizeIs(6));
  EXPECT_EQ(groups[2].name, "compute-unit-io-rules-cpu");
  EXPECT_EQ(groups[2].interval, "30s");
  EXPECT_THAT(records(groups[2]),
              ElementsAre("uuid:ceems_io_read_bytes:irate", "uuid:ceems_io_write_errors:irate"));
  EXPECT_EQ(groups[2].rules[0].expression,
            R"(irate(ceems_ebpf_read_bytes_total{job="cpu"}[1m0s]))");
  EXPECT_EQ(groups[3].name, "host-agg-io-rules-cpu");
  EXPECT_EQ(groups[3].interval, "1m0s");
  EXPECT_EQ(expression(groups[3], "job:ceems_io_write_errors:sum_irate"),
            R"(sum by (job, mountpoint) (irate(ceems_ebpf_write_errors_total{job="cpu"}[1m0s])))");
  EXPECT_THAT(records(groups[4]), ElementsAre("uuid:ceems_net_egress_packets:irate"));
  EXPECT_EQ(
      expression(groups[5], "job:ceems_net_egress_packets:sum_irate"),
      R"(sum by (job, family, proto) (irate(ceems_ebpf_egress_packets_total{job="cpu"}[1m0s])))");
}

TEST(EmissionRules, TakeAConstantFactorOnlyWithoutLiveOnes) {
  Emissions emissions{
      .providers = {}, .country_code = "FR", .provider = "own", .grams_per_kwh = 50};
  const auto constant = unit_emissions("u", "p", emissions);
  ASSERT_THAT(constant, SizeIs(1));
  EXPECT_EQ(constant[0].record, "u");
  EXPECT_EQ(constant[0].expression,
            R"(label_replace((p / 3.6e6), "provider", "own", "job", ".*") * 50)");
  EXPECT_THAT(constant[0].labels, IsEmpty());
  auto of_job = job_emissions("j", "p", "cpu", emissions);
  ASSERT_THAT(of_job, SizeIs(1));
  EXPECT_EQ(of_job[0].record, "j");
  EXPECT_EQ(of_job[0].expression,
            R"(label_replace(label_replace((p / 3.6e6), "provider", "own", "job", ".*"), )"
            R"("country_code", "FR", "job", ".*") * 50)");
  emissions.country_code.clear();
  EXPECT_EQ(job_emissions("j", "p", "cpu", emissions).at(0).expression,
            R"(label_replace((p / 3.6e6), "provider", "own", "job", ".*") * 50)");

  emissions.country_code = "FR";
  emissions.providers = {"owid", "rte"};
  const auto live = unit_emissions("u", "p", emissions);
  ASSERT_THAT(live, SizeIs(2));
  EXPECT_EQ(live[1].expression,
            "(p / 3.6e6)\n  * on () group_left ()\nmax "
            "(ceems_emissions_gCo2_kWh{country_code=\"FR\",provider=\"rte\"})");
  EXPECT_THAT(live[1].labels, ElementsAre(std::pair("provider", "rte")));
  of_job = job_emissions("j", "p", "cpu", emissions);
  ASSERT_THAT(of_job, SizeIs(1));
  EXPECT_EQ(of_job[0].expression,
            "label_replace(max by (provider, country_code, country) (ceems_emissions_gCo2_kWh), "
            "\"job\", \"cpu\", \"job\", \".*\")\n  * on (job) group_left ()\n(p / 3.6e6)");

  EXPECT_THAT(unit_emissions("u", "p", {}), IsEmpty());
  EXPECT_THAT(job_emissions("j", "p", "cpu", {}), IsEmpty());
}

}  // namespace
}  // namespace ceems::tool::rules
