#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/rules/groups.h"
#include "tool/rules/rules_test_support.h"

namespace ceems::tool::rules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

GpuPlan plan_of(const Job& exporter, GpuKind kind) {
  return {.job = &exporter, .kind = kind, .cpu_jobs = {"cpu"}};
}

std::string at_host(const std::string& text) {
  return "label_replace(" + text + R"x(, "instancehost", "$1", "instance", "(.*?)(?::[0-9]+)?"))x";
}

/// A series of DCGM with the labels of units.
std::string nvidia(const std::string& text) {
  return "label_replace(label_replace(" + text +
         R"x(, "gpuuuid", "$1", "UUID", "(.+)"), "gpuiid", "$1", "GPU_I_ID", "(.+)"))x";
}

std::string max_by(std::string_view labels, const std::string& text) {
  return fmt::format("max by ({}) ({})", labels, text);
}

const std::string kFlag = R"(ceems_compute_unit_gpu_index_flag{job="cpu"})";
const std::string kHeld = max_by("gpuuuid, gpuiid", kFlag);
const std::string kSms = max_by("gpuuuid, gpuiid", R"(ceems_compute_unit_gpu_sm_count{job="cpu"})");

/// The part of each instance in its device, where that is known for all that units hold.
std::string known_share(const std::string& value) {
  return "(" + value + " / on (gpuuuid) group_left () (sum by (gpuuuid) (" + value +
         ") > 0) and on (gpuuuid) (count by (gpuuuid) (" + value + ") >= count by (gpuuuid) (" +
         kHeld + ")))";
}

TEST(NvidiaRules, SplitDevicesBySizeOrEqually) {
  const Job dcgm = job("gpu", {"DCGM_FI_DEV_POWER_USAGE"});
  const auto groups = gpu_groups(plan_of(dcgm, GpuKind::kNvidia), common(1.5));
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].name, "compute-unit-gpu-rules-gpu");
  EXPECT_EQ(groups[0].interval, "30s");
  EXPECT_THAT(records(groups[0]),
              ElementsAre("uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_memory_usage:ratio",
                          "dev:DCGM_FI_DEV_POWER_USAGE:pue", "uuid:ceems_gpu_power_watts:pue"));
  const auto of_units = [](const std::string& value) {
    return kFlag + "\n  * on (gpuuuid, gpuiid) group_left ()\n" +
           max_by("gpuuuid, gpuiid", nvidia(value));
  };
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_usage:ratio"),
            of_units(R"(DCGM_FI_DEV_GPU_UTIL{job="gpu"})"));
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_memory_usage:ratio"),
            of_units(R"((100 * DCGM_FI_DEV_FB_USED{job="gpu"} / )"
                     R"((DCGM_FI_DEV_FB_USED{job="gpu"} + DCGM_FI_DEV_FB_FREE{job="gpu"})))"));
  EXPECT_EQ(expression(groups[0], "dev:DCGM_FI_DEV_POWER_USAGE:pue"),
            "1.5 * " + nvidia(R"(DCGM_FI_DEV_POWER_USAGE{job="gpu"})"));
  const std::string equal =
      "(" + kHeld + " * 0 + 1) / on (gpuuuid) group_left () count by (gpuuuid) (" + kHeld + ")";
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_power_watts:pue"),
            kFlag + "\n  * on (gpuuuid, gpuiid) group_left ()\n(\n(\n  " + known_share(kSms) +
                "\n  or\n  (" + equal + " unless on (gpuuuid) " + known_share(kSms) +
                ")\n)\n  * on (gpuuuid) group_left ()\n" +
                max_by("gpuuuid", R"(dev:DCGM_FI_DEV_POWER_USAGE:pue{job="gpu"})") + "\n)");

  EXPECT_EQ(groups[1].name, "host-agg-gpu-rules-gpu");
  EXPECT_EQ(groups[1].interval, "1m0s");
  EXPECT_THAT(records(groups[1]),
              ElementsAre("job:ceems_gpu_usage:avg", "job:ceems_gpu_memory_usage:avg_ratio",
                          "job:ceems_gpu_power_watts:pue"));
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_usage:avg"),
            R"(avg by (job) (DCGM_FI_DEV_GPU_UTIL{job="gpu"}))");
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_power_watts:pue"),
            "1.5 * label_replace(sum(sum by (instancehost) (max by (instancehost, gpuuuid) (" +
                at_host(nvidia(R"(DCGM_FI_DEV_POWER_USAGE{job="gpu"})")) +
                R"x())), "job", "gpu", "job", ".*"))x");
}

TEST(NvidiaRules, SplitDevicesByActivityWhereAllOfItIsKnown) {
  const std::string active =
      "(" + max_by("gpuuuid, gpuiid", nvidia(R"(DCGM_FI_PROF_SM_ACTIVE{job="gpu"})")) + " * " +
      max_by("gpuuuid, gpuiid", nvidia(R"(DCGM_FI_PROF_SM_OCCUPANCY{job="gpu"})")) + " * " + kSms +
      ")";
  const std::string best = "(\n    " + known_share(active) + "\n    or\n    (" + known_share(kSms) +
                           " unless on (gpuuuid) " + known_share(active) + ")\n  )";
  for (const Series& profiling :
       {Series{"DCGM_FI_PROF_SM_ACTIVE"}, Series{"DCGM_FI_PROF_SM_OCCUPANCY"},
        Series{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_OCCUPANCY"}}) {
    Job dcgm = job("gpu", profiling);
    dcgm.series.insert("DCGM_FI_DEV_POWER_USAGE");
    const auto groups = gpu_groups(plan_of(dcgm, GpuKind::kNvidia), common());
    const std::string power = expression(groups[0], "uuid:ceems_gpu_power_watts:pue");
    if (profiling.size() == 2) {
      EXPECT_THAT(power, StartsWith(kFlag + "\n  * on (gpuuuid, gpuiid) group_left ()\n(\n(\n  " +
                                    best + "\n  or\n  ((" + kHeld + " * 0 + 1)"));
    } else {
      EXPECT_THAT(power, Not(HasSubstr("DCGM_FI_PROF")));
    }
  }
}

TEST(NvidiaRules, NameProfilesLikeTheRelease) {
  const Job dcgm = job("gpu", {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT",
                               "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                               "DCGM_FI_PROF_PCIE_RX_BYTES", "gpu_prof_x"});
  const GpuPlan plan = plan_of(dcgm, GpuKind::kNvidia);
  const auto profiles = [&](RecordNames names) {
    auto all = records(gpu_groups(plan, common(1, names)).at(0));
    all.erase(all.begin(), all.begin() + 4);
    return all;
  };
  EXPECT_THAT(profiles(RecordNames::kOld), ElementsAre("uuid:ceems_gpu_gr_engine_active:ratio",
                                                       "uuid:ceems_gpu_dram_active:ratio",
                                                       "uuid:ceems_gpu_pcie_rx_bytes:ratio"));
  EXPECT_THAT(
      profiles(RecordNames::kLater),
      ElementsAre("uuid:ceems_gpu_prof_gr_engine_active:ratio",
                  "uuid:ceems_gpu_prof_dram_active:ratio", "uuid:ceems_gpu_prof_pcie_rx_bytes:sum",
                  "uuid:ceems_gpu_prof_pcie_rx_bytes:rate"));
  EXPECT_THAT(
      profiles(RecordNames::kBoth),
      ElementsAre("uuid:ceems_gpu_gr_engine_active:ratio",
                  "uuid:ceems_gpu_prof_gr_engine_active:ratio", "uuid:ceems_gpu_dram_active:ratio",
                  "uuid:ceems_gpu_prof_dram_active:ratio", "uuid:ceems_gpu_prof_pcie_rx_bytes:sum",
                  "uuid:ceems_gpu_prof_pcie_rx_bytes:rate"));
  const auto groups = gpu_groups(plan, common());
  EXPECT_THAT(expression(groups[0], "uuid:ceems_gpu_dram_active:ratio"),
              HasSubstr(nvidia(R"(100 * DCGM_FI_PROF_DRAM_ACTIVE{job="gpu"})")));
  EXPECT_THAT(expression(groups[0], "uuid:ceems_gpu_pcie_rx_bytes:ratio"),
              HasSubstr(nvidia(R"(DCGM_FI_PROF_PCIE_RX_BYTES{job="gpu"})")));
  EXPECT_EQ(expression(groups[0], "dev:DCGM_FI_DEV_POWER_USAGE_INSTANT:pue"),
            nvidia(R"((DCGM_FI_DEV_POWER_USAGE_INSTANT{job="gpu"} or )"
                   R"(DCGM_FI_DEV_POWER_USAGE{job="gpu"}))"));
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_usage:avg"),
            R"(avg by (job) ((100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE{job="gpu"} or )"
            R"(DCGM_FI_DEV_GPU_UTIL{job="gpu"})))");
}

TEST(NvidiaRules, LeaveOutHostsThatCountTheirGpus) {
  const Job dcgm = job("gpu", {"DCGM_FI_DEV_POWER_USAGE"});
  GpuPlan plan = plan_of(dcgm, GpuKind::kNvidia);
  plan.counted_elsewhere = true;
  EXPECT_THAT(expression(gpu_groups(plan, common()).at(1), "job:ceems_gpu_power_watts:pue"),
              HasSubstr(" unless on (instancehost) " +
                        at_host(R"(ceems_node_energy_joules_total{domain="gpu"})")));
}

TEST(NvidiaRules, ComputeEmissionsOfAllJobsOfTheHosts) {
  const Job dcgm = job("gpu", {"DCGM_FI_DEV_POWER_USAGE"});
  GpuPlan plan = plan_of(dcgm, GpuKind::kNvidia);
  plan.cpu_jobs = {"a.b", "c"};
  Common all = common();
  all.emissions.grams_per_kwh = 50;
  const auto groups = gpu_groups(plan, all);
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_emissions_g_s:pue"),
            R"x(label_replace((uuid:ceems_gpu_power_watts:pue{job=~"a[.]b|c"} / 3.6e6), )x"
            R"x("provider", "custom", "job", ".*") * 50)x");
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_emissions_g_s:pue"),
            R"x(label_replace((job:ceems_gpu_power_watts:pue{job="gpu"} / 3.6e6), )x"
            R"x("provider", "custom", "job", ".*") * 50)x");
}

TEST(AmdRules, JoinByHostAndIndex) {
  const Job smi = job("gpu", {"amd_gpu_power", "gpu_prof_x", "DCGM_FI_PROF_DRAM_ACTIVE"});
  const auto groups = gpu_groups(plan_of(smi, GpuKind::kAmdSmi), common(1, RecordNames::kLater));
  EXPECT_THAT(records(groups[0]),
              ElementsAre("uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_memory_usage:ratio",
                          "dev:amd_gpu_power_watts:pue", "uuid:ceems_gpu_power_watts:pue"));
  const auto labelled = [](const std::string& text) {
    return "label_replace(label_replace(label_replace(" + text +
           R"x(, "index", "$1", "gpu_power", "(.+)"), "index", "$1", "gpu_use_percent", "(.+)"), )x"
           R"x("index", "$1", "gpu_memory_use_percent", "(.+)"))x";
  };
  const auto shared = [&](const std::string& value) {
    const std::string joinable = at_host(labelled(value));
    return "sum without (instancehost) (\n" + at_host(kFlag) +
           "\n  * on (instancehost, index, gpuiid) group_left ()\n" +
           max_by("instancehost, index, gpuiid", joinable) + "\nor\n" + at_host(kFlag) +
           "\n  * on (instancehost, index) group_left ()\n" +
           max_by("instancehost, index", joinable) + "\n)";
  };
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_usage:ratio"),
            shared(R"(amd_gpu_use_percent{job="gpu"})"));
  EXPECT_EQ(expression(groups[0], "uuid:ceems_gpu_memory_usage:ratio"),
            shared(R"(amd_gpu_memory_use_percent{job="gpu"})"));
  EXPECT_EQ(expression(groups[0], "dev:amd_gpu_power_watts:pue"),
            labelled(R"((amd_gpu_power{job="gpu"} / 1e6))"));  // it exports microwatts
  const std::string power = expression(groups[0], "uuid:ceems_gpu_power_watts:pue");
  EXPECT_THAT(power, StartsWith("sum without (instancehost) (\n" + at_host(kFlag) +
                                "\n  * on (instancehost, index, gpuiid) group_left ()\n"));
  EXPECT_THAT(power, HasSubstr(max_by("instancehost, index",
                                      at_host(R"(dev:amd_gpu_power_watts:pue{job="gpu"})"))));
  EXPECT_THAT(power, Not(HasSubstr("serial_number")));
}

TEST(AmdRules, JoinPartitionsByTheSerialNumber) {
  const Job device = job("gpu", {"gpu_power_usage"});
  const auto groups = gpu_groups(plan_of(device, GpuKind::kAmdDevice), common());
  EXPECT_EQ(expression(groups[0], "dev:gpu_power_usage_watts:pue"),
            R"x(label_replace(label_replace(gpu_power_usage{job="gpu"}, "index", "$1", "gpu_id", )x"
            R"x("(.+)"), "gpuiid", "$1", "gpu_partition_id", "(.+)"))x");
  const std::string power = expression(groups[0], "uuid:ceems_gpu_power_watts:pue");
  const std::string record = R"(dev:gpu_power_usage_watts:pue{job="gpu"})";
  const std::string partitions =
      at_host(R"(ceems_compute_unit_gpu_index_flag{job="cpu",gpuiid!="",gpuuuid!=""})");
  EXPECT_THAT(power, StartsWith("sum without (instancehost) (\n" + partitions +
                                "\n  * on (instancehost, gpuuuid, gpuiid) group_left ()\n"));
  const std::size_t serial = power.find(
      max_by("instancehost, gpuuuid", at_host("label_replace(" + record +
                                              R"x(, "gpuuuid", "$1", "serial_number", "(.+)"))x")) +
      "\n)\nor\n" + at_host(kFlag));
  const std::size_t index = power.find(max_by("instancehost, index", at_host(record)) + "\n)\n)");
  EXPECT_NE(serial, std::string::npos);
  EXPECT_NE(index, std::string::npos);
  EXPECT_LT(serial, index);
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_usage:avg"),
            R"(avg by (job) (gpu_gfx_activity{job="gpu"}))");
  EXPECT_EQ(expression(groups[1], "job:ceems_gpu_memory_usage:avg_ratio"),
            R"(avg by (job) ((100 * gpu_used_vram{job="gpu"} / gpu_total_vram{job="gpu"})))");
}

TEST(AmdRules, NameMemoryAndProfilesLikeTheRelease) {
  const Job device =
      job("gpu", {"gpu_power_usage", "gpu_prof_grbm_gui_active", "gpu_prof_occupancy_percent",
                  "gpu_prof_sq_waves", "other_gpu_prof_x"});
  const GpuPlan plan = plan_of(device, GpuKind::kAmdDevice);
  EXPECT_THAT(records(gpu_groups(plan, common()).at(0)),
              ElementsAre("uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_memory_usage:ratio",
                          "dev:gpu_power_usage_watts:pue", "uuid:ceems_gpu_power_watts:pue"));
  EXPECT_THAT(
      records(gpu_groups(plan, common(1, RecordNames::kBoth)).at(0)),
      ElementsAre("uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_memory_usage:ratio type=vram",
                  "dev:gpu_power_usage_watts:pue", "uuid:ceems_gpu_power_watts:pue",
                  "uuid:ceems_gpu_prof_grbm_gui_active:ratio",
                  "uuid:ceems_gpu_prof_occupancy_percent:ratio",
                  "uuid:ceems_gpu_prof_sq_waves:sum"));
  const auto later = gpu_groups(plan, common(1, RecordNames::kLater)).at(0);
  EXPECT_THAT(
      records(later),
      ElementsAre(
          "uuid:ceems_gpu_usage:ratio", "uuid:ceems_gpu_memory_usage:ratio type=vram",
          "uuid:ceems_gpu_memory_usage:ratio type=gtt",
          "uuid:ceems_gpu_memory_usage:ratio type=visiblevram", "dev:gpu_power_usage_watts:pue",
          "uuid:ceems_gpu_power_watts:pue", "uuid:ceems_gpu_prof_grbm_gui_active:ratio",
          "uuid:ceems_gpu_prof_occupancy_percent:ratio", "uuid:ceems_gpu_prof_sq_waves:sum"));
  EXPECT_THAT(
      later.rules[3].expression,
      HasSubstr(R"((100 * gpu_used_visible_vram{job="gpu"} / gpu_total_visible_vram{job="gpu"}))"));
}

}  // namespace
}  // namespace ceems::tool::rules
