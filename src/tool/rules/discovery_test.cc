#include "tool/rules/discovery.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "tool/rules/queries.h"
#include "tool/rules/relabel.h"
#include "tsdb/fake_transport.h"

namespace ceems::tool::rules {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using tsdb::FakeTransport;

constexpr TimeRange kRange{.start_ms = 1000, .end_ms = 2500};

std::string success(const std::string& data) {
  return R"({"status":"success","data":)" + data + "}";
}

struct Prometheus {
  explicit Prometheus(FakeTransport::Answer answer) {
    auto owned = std::make_unique<FakeTransport>(std::move(answer));
    transport = owned.get();
    client = std::make_unique<tsdb::Client>("http://tsdb", std::move(owned), real_clock());
  }
  FakeTransport* transport = nullptr;
  std::unique_ptr<tsdb::Client> client;
};

/// A site of two jobs of CEEMS exporters and one of GPUs.
Result<net::ClientResponse> answer_of_site(const FakeTransport::Request& request) {
  const std::string match = request.first("match[]");
  if (request.path == "http://tsdb/api/v1/series") {
    return FakeTransport::ok(success(R"([
      {"__name__":"ceems_redfish_current_watts","job":"cpu","instance":"n1:9010","chassis":"B"},
      {"__name__":"ceems_redfish_current_watts","job":"cpu","instance":"n2:9010","chassis":"A"},
      {"__name__":"ceems_redfish_power_current_watts","job":"cpu","instance":"n2:9010",
       "chassis":"B"},
      {"__name__":"ceems_hwmon_power_current_watts","job":"cpu","instance":"n3:9010",
       "chip":"acpi","chip_name":"power_meter"},
      {"__name__":"ceems_node_energy_joules_total","job":"cpu","instance":"n4:9010"},
      {"__name__":"ceems_rapl_package_joules_total","job":"bad","instance":"n5"},
      {"__name__":"gpu_power_usage","job":"g\"pu","instance":"n1:5000"}])"));
  }
  if (request.path == "http://tsdb/api/v1/label/job/values") {
    const bool of_cpu =
        match == "ceems_compute_unit_gpu_index_flag" || match == "ceems_ebpf_egress_packets_total";
    return FakeTransport::ok(success(of_cpu                              ? R"(["cpu"])"
                                     : match == "DCGM_FI_PROF_SM_ACTIVE" ? R"(["new"])"
                                                                         : "[]"));
  }
  if (request.path == "http://tsdb/api/v1/label/__name__/values") {
    return FakeTransport::ok(success(
        match == R"({__name__=~"gpu_prof_.+",job="g\"pu"})" ? R"(["gpu_prof_sq_waves"])" : "[]"));
  }
  if (request.path == "http://tsdb/api/v1/label/provider/values") {
    return FakeTransport::ok(success(
        match == R"(ceems_emissions_gCo2_kWh{country_code="F\"R"})" ? R"(["rte","owid"])" : "[]"));
  }
  if (request.path == "http://tsdb/api/v1/targets") {
    return FakeTransport::ok(success(R"({"activeTargets":[
      {"discoveredLabels":{"job":"unknown","__scrape_interval__":"1s"}},
      {"discoveredLabels":{"job":"bad","__scrape_interval__":"soon"}},
      {"discoveredLabels":{"job":"bad"}},
      {"discoveredLabels":{"job":"g\"pu","__scrape_interval__":"0s"}},
      {"discoveredLabels":{"job":"cpu","__scrape_interval__":"30s"}}]})"));
  }
  if (request.path == "http://tsdb/api/v1/status/config") {
    return FakeTransport::ok(
        success(R"({"yaml":"global:\n  scrape_interval: 20s\n  evaluation_interval: 40s\n"})"));
  }
  return FakeTransport::status(404, "");
}

TEST(Discovery, FindsWhatJobsExport) {
  const Prometheus prometheus(answer_of_site);
  std::vector<std::string> remarks;
  const auto found = discover(*prometheus.client, kRange, "F\"R", remarks);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_THAT(found->jobs, SizeIs(4));
  const Job& bad = found->jobs[0];
  const Job& cpu = found->jobs[1];
  const Job& gpu = found->jobs[2];
  EXPECT_EQ(cpu.name, "cpu");
  EXPECT_THAT(cpu.series,
              ElementsAre("ceems_compute_unit_gpu_index_flag", "ceems_ebpf_egress_packets_total",
                          "ceems_hwmon_power_current_watts", "ceems_node_energy_joules_total",
                          "ceems_redfish_current_watts", "ceems_redfish_power_current_watts"));
  EXPECT_THAT(cpu.hosts, ElementsAre("n1", "n2", "n3", "n4"));
  EXPECT_THAT(cpu.counting_hosts, ElementsAre("n4"));
  EXPECT_THAT(cpu.chassis, ElementsAre("A", "B"));
  EXPECT_THAT(cpu.chips, ElementsAre(Pair("acpi", "power_meter")));
  EXPECT_EQ(cpu.scrape_interval, seconds(30));
  EXPECT_EQ(bad.name, "bad");
  EXPECT_THAT(bad.chassis, IsEmpty());
  EXPECT_EQ(bad.scrape_interval, seconds(20));
  EXPECT_EQ(gpu.name, "g\"pu");
  EXPECT_THAT(gpu.series, ElementsAre("gpu_power_usage", "gpu_prof_sq_waves"));
  EXPECT_EQ(gpu.scrape_interval, seconds(20));
  EXPECT_EQ(found->jobs[3].name, "new");
  EXPECT_THAT(found->jobs[3].series, ElementsAre("DCGM_FI_PROF_SM_ACTIVE"));
  EXPECT_EQ(found->evaluation_interval, seconds(40));
  EXPECT_THAT(found->providers, ElementsAre("owid", "rte"));
  EXPECT_THAT(remarks, ElementsAre("cannot parse scrape interval 'soon' of job 'bad'",
                                   "cannot parse scrape interval '0s' of job 'g\"pu'"));
  for (const auto& request : prometheus.transport->requests()) {
    if (request.path == "http://tsdb/api/v1/series") {
      EXPECT_EQ(request.first("start"), "1");
      EXPECT_EQ(request.first("end"), "2.5");
      EXPECT_THAT(request.first("match[]"), HasSubstr("|ceems_hwmon_power_current_watts|"));
    }
  }
}

TEST(Discovery, TakesTheGlobalIntervalWithoutTargets) {
  const Prometheus prometheus([](const FakeTransport::Request& request) {
    return request.path.ends_with("/targets") ? FakeTransport::status(404, "")
                                              : answer_of_site(request);
  });
  std::vector<std::string> remarks;
  const auto found = discover(*prometheus.client, kRange, "FR", remarks);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->jobs.at(1).scrape_interval, seconds(20));
  EXPECT_THAT(found->providers, IsEmpty());
  EXPECT_THAT(remarks, ElementsAre(AllOf(HasSubstr("error fetching scrape intervals: "),
                                         HasSubstr("; the global one is used"))));
}

TEST(Discovery, FailsIfAQuestionIsNotAnswered) {
  for (const char* path : {"/series", "/job/values", "/__name__/values", "/provider/values"}) {
    const Prometheus prometheus([path](const FakeTransport::Request& request) {
      return request.path.ends_with(path) ? FakeTransport::status(400, "no")
                                          : answer_of_site(request);
    });
    std::vector<std::string> remarks;
    const auto found = discover(*prometheus.client, kRange, "FR", remarks);
    ASSERT_FALSE(found) << path;
    EXPECT_THAT(found.error().message, HasSubstr("error fetching series"));
  }
}

TEST(UpdaterQueries, AskForRecordsThatExist) {
  const Prometheus prometheus([](const FakeTransport::Request& request) {
    const std::string match = request.first("match[]");
    if (request.path.ends_with("/label/provider/values")) {
      return FakeTransport::ok(success(match.contains("ceems_host_emissions_g_s:pue")
                                           ? R"(["owid","no,thing","","rte-1"])"
                                           : "[]"));
    }
    EXPECT_EQ(request.path, "http://tsdb/api/v1/label/__name__/values");
    const bool exists = match == R"({__name__="uuid:ceems_cpu_usage:ratio_irate"})" ||
                        match == R"({__name__="uuid:ceems_gpu_power_watts:pue"})";
    return FakeTransport::ok(success(exists ? R"(["x"])" : "[]"));
  });
  const auto queries = updater_queries(*prometheus.client, kRange);
  ASSERT_TRUE(queries) << queries.error().message;
  EXPECT_EQ(updater_queries_text(*queries),
            "---\n\nqueries:\n  avg_cpu_usage:\n    global: avg_over_time(avg by (uuid) "
            "(uuid:ceems_cpu_usage:ratio_irate{uuid=~`{{.UUIDs}}`} > 0 < inf)[{{.Range}}:])\n\n\n"
            "  total_cpu_emissions_gms:\n    owid_total: sum_over_time(sum by (uuid) "
            "(uuid:ceems_host_emissions_g_s:pue{uuid=~`{{.UUIDs}}`,provider=\"owid\"} > 0 < "
            "inf)[{{.Range}}:{{.ScrapeInterval}}]) * {{.ScrapeIntervalMilli}} / 1e3\n\n"
            "    rte-1_total: sum_over_time(sum by (uuid) "
            "(uuid:ceems_host_emissions_g_s:pue{uuid=~`{{.UUIDs}}`,provider=\"rte-1\"} > 0 < "
            "inf)[{{.Range}}:{{.ScrapeInterval}}]) * {{.ScrapeIntervalMilli}} / 1e3\n\n\n"
            "  total_gpu_energy_usage_kwh:\n    total: sum_over_time(sum by (uuid) "
            "(uuid:ceems_gpu_power_watts:pue{uuid=~`{{.UUIDs}}`} > 0 < "
            "inf)[{{.Range}}:{{.ScrapeInterval}}]) * {{.ScrapeIntervalMilli}} / 3.6e9\n\n\n\n");
  EXPECT_EQ(updater_queries_text({}), "---\n\nqueries:\n\n");
  const Prometheus broken([](const auto&) { return FakeTransport::status(400, "no"); });
  EXPECT_FALSE(updater_queries(*broken.client, kRange));
}

TEST(Relabelling, KnowsTheExporterByItsSeries) {
  const Prometheus prometheus([](const FakeTransport::Request& request) {
    EXPECT_EQ(request.first("match[]"),
              R"({__name__=~"DCGM_FI_DEV_POWER_USAGE_INSTANT|amd_gpu_power|gpu_power_usage"})");
    return FakeTransport::ok(success(R"([{"__name__":"gpu_power_usage","job":"z"},
      {"__name__":"amd_gpu_power","job":"smi"},{"__name__":"gpu_power_usage","job":"z"},
      {"__name__":"DCGM_FI_DEV_POWER_USAGE_INSTANT","job":"z"},{"__name__":"x","job":"none"},
      {"__name__":"gpu_power_usage","job":"device"}])"));
  });
  const auto jobs = gpu_exporter_jobs(*prometheus.client, kRange);
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_THAT(*jobs, SizeIs(3));
  EXPECT_EQ(jobs->at(0).name, "z");
  EXPECT_EQ(jobs->at(0).kind, GpuKind::kNvidia);
  EXPECT_EQ(jobs->at(1).name, "smi");
  EXPECT_EQ(jobs->at(1).kind, GpuKind::kAmdSmi);
  EXPECT_EQ(jobs->at(2).name, "device");
  EXPECT_EQ(jobs->at(2).kind, GpuKind::kAmdDevice);
}

TEST(Relabelling, IsTheSameInYamlAndJson) {
  EXPECT_EQ(relabel_text({}), "scrape_configs: []\n");
  EXPECT_EQ(relabel_json({}), R"({"scrape_configs":[]})");
  const std::vector<RelabelledJob> jobs{{.name = "a b", .kind = GpuKind::kNvidia}};
  EXPECT_EQ(relabel_text(jobs), R"(scrape_configs:
  - job: "a b"
    metric_relabel_configs:
      - source_labels:
          - modelName
          - UUID
        target_label: gpuuuid
        regex: NVIDIA(.*);(.*)
        replacement: $2
        action: replace
      - source_labels:
          - modelName
          - GPU_I_ID
        target_label: gpuiid
        regex: NVIDIA(.*);(.*)
        replacement: $2
        action: replace
      - regex: UUID
        action: labeldrop
      - regex: GPU_I_ID
        action: labeldrop
)");
  EXPECT_EQ(
      relabel_json(jobs),
      R"x({"scrape_configs":[{"job":"a b","metric_relabel_configs":[)x"
      R"x({"source_labels":["modelName","UUID"],"target_label":"gpuuuid",)x"
      R"x("regex":"NVIDIA(.*);(.*)","replacement":"$2","action":"replace"},)x"
      R"x({"source_labels":["modelName","GPU_I_ID"],"target_label":"gpuiid",)x"
      R"x("regex":"NVIDIA(.*);(.*)","replacement":"$2","action":"replace"},)x"
      R"x({"regex":"UUID","action":"labeldrop"},{"regex":"GPU_I_ID","action":"labeldrop"}]}]})x");
}

TEST(Relabelling, CopiesWhateverLabelNamesTheDevice) {
  EXPECT_THAT(relabel_text({{.name = "smi", .kind = GpuKind::kAmdSmi}}),
              HasSubstr("      - source_labels:\n          - index\n          - gpu_use_percent\n"
                        "        target_label: index\n        regex: ;(.+)\n"
                        "        replacement: $1\n        action: replace\n"));
  EXPECT_THAT(relabel_text({{.name = "device", .kind = GpuKind::kAmdDevice}}),
              HasSubstr("      - source_labels:\n          - gpu_partition_id\n"
                        "        target_label: gpuiid\n        regex: (.*)\n"
                        "        replacement: $1\n        action: replace\n"));
}

}  // namespace
}  // namespace ceems::tool::rules
