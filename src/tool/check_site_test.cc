#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "tool/site/energies.h"
#include "tool/site/examine.h"
#include "tsdb/fake_transport.h"

namespace ceems::tool {
namespace {

using tsdb::FakeTransport;

/// The states and texts of the findings about a TSDB with these answers to questions for labels.
std::string said_about(const FakeTransport::Answer& answer_labels) {
  ceems::testing::FakeClock clock;
  auto transport = std::make_unique<FakeTransport>(
      [&](const FakeTransport::Request& request) -> Result<net::ClientResponse> {
        if (request.path.contains("/label")) {
          EXPECT_EQ(request.first("match[]"), R"({uuid="ceems_tool asks whether matchers count"})");
          EXPECT_NE(request.first("start"), "");
          return answer_labels(request);
        }
        return FakeTransport::ok(
            R"({"status":"success","data":{"resultType":"vector","result":[]}})");
      });
  tsdb::Client client("http://prometheus", std::move(transport), clock);
  std::string said;
  for (const Finding& finding : examine_site({.tsdb = &client,
                                              .tsdb_url = "http://prometheus",
                                              .api_url = "",
                                              .lb_url = "",
                                              .now_ms = clock.now_ms()})) {
    if (finding.text.contains("match[]")) {
      said += std::string(to_string(finding.state)) + ": " + finding.text + "\n";
    }
  }
  return said;
}

TEST(CheckSite, SaysThatATsdbIgnoresMatchers) {
  const std::string ignores =
      "problem: it ignores match[] of labels and their values: ceems_lb refuses them to users\n";
  EXPECT_EQ(said_about(
                [](const auto&) { return FakeTransport::ok(R"({"status":"success","data":[]})"); }),
            "");
  EXPECT_EQ(said_about([](const auto&) {
              return FakeTransport::ok(R"({"status":"success","data":["up"]})");
            }),
            ignores);
  for (const std::string path : {"/labels", "/values"}) {
    EXPECT_EQ(said_about([&](const auto& request) {
                return FakeTransport::ok(request.path.ends_with(path)
                                             ? R"({"status":"success","data":["up"]})"
                                             : R"({"status":"success","data":[]})");
              }),
              ignores);
  }
  EXPECT_EQ(said_about([](const auto&) { return FakeTransport::status(404, "no such page"); }),
            "warning: cannot find out whether it honours match[] of labels: TSDB: HTTP status "
            "404: 'no such page'\n");
}

/// `count` jobs of cluster "a" that SLURM charged with 1 kWh and we with `kwh`.
std::string jobs(int count, double kwh) {
  std::string text;
  for (int job = 0; job < count; ++job) {
    text += fmt::format(
        R"({}{{"cluster_id":"a","allocation":{{"consumed_energy":3600000}},)"
        R"("total_cpu_energy_usage_kwh":{{"total":{}}},"total_gpu_energy_usage_kwh":{{"total":0.1}}}})",
        job == 0 ? "" : ",", kwh - 0.1);
  }
  return text;
}

std::string compared(const std::string& units) {
  std::string said;
  for (const Finding& finding :
       compare_with_slurm(R"({"status":"success","data":[)" + units + "]}")) {
    said += fmt::format("{}: {}", to_string(finding.state), finding.text);
  }
  return said;
}

TEST(CheckSite, ComparesEnergiesWithThoseOfSlurm) {
  EXPECT_EQ(compared(jobs(20, 1.2)), "ok: 20 jobs of cluster a: 1.20 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(20, 1.3)),
            "warning: 20 jobs of cluster a: 1.30 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(20, 0.75)),
            "warning: 20 jobs of cluster a: 0.75 times SLURM's ConsumedEnergy");
  EXPECT_EQ(compared(jobs(19, 9)), "") << "too few";
  EXPECT_EQ(compared(jobs(19, 9) + "," + jobs(21, 1)),
            "ok: 40 jobs of cluster a: 1.00 times SLURM's ConsumedEnergy")
      << "the median, since SLURM charges whole nodes";
}

TEST(CheckSite, LeavesOutUnitsWithoutBothEnergies) {
  for (const char* odd : {"null", "{}", R"({"cluster_id":"a","allocation":{"consumed_energy":35999},
                          "total_cpu_energy_usage_kwh":{"total":9}})",
                          R"({"cluster_id":"a","allocation":{"consumed_energy":"x"},
            "total_cpu_energy_usage_kwh":{"total":9}})",
                          R"({"cluster_id":"a","allocation":{"consumed_energy":3600000},
            "total_cpu_energy_usage_kwh":{"total":0}})",
                          R"({"cluster_id":7,"allocation":{"consumed_energy":3600000},
            "total_cpu_energy_usage_kwh":{"total":9}})"}) {
    EXPECT_EQ(compared(jobs(19, 1) + "," + odd), "") << odd;
  }
  for (const char* answer : {"", "<html>", "[]", R"({"data":{}})"}) {
    const auto findings = compare_with_slurm(answer);
    ASSERT_EQ(findings.size(), 1U) << answer;
    EXPECT_EQ(findings[0].text, "its answer to units/admin has no list of units");
  }
}

}  // namespace
}  // namespace ceems::tool
