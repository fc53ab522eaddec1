// Reports by the server: what they hold, who gets them, and in which forms.
#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/endpoints/units_report_test_support.h"
#include "report/stored.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Reports, TakeWhatJobstatsKeptWhereTheTsdbHasNothing) {
  report::Report kept;
  kept.job.elapsed = 7200;
  kept.nodes = {{.node = "n1", .cpus = 4, .cpu_seconds = 14400, .mem_peak = 3 * kGiB}};
  model::Unit unit = wide_job("500", kNow + store::kMinute);
  unit.metric(model::Metric::kAvgCpuUsage).clear();
  unit.tags = R"({"partition":"cpu","js1":"JS1:)" + report::to_js1(kept) + "\"}";
  model::Unit damaged = wide_job("501", kNow + store::kMinute);
  damaged.tags = R"({"js1":"JS1:H4sIAAAA"})";
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.units = {unit, damaged};
  write(update);
  const std::string old = "units/report?cluster_id=hpc-a&uuid=500";
  // Own measurements come first.
  EXPECT_FALSE(report_of(old, "ada").contains("source"));
  measurements_.unit = {};
  const json::object report = report_of(old, "ada");
  EXPECT_EQ(report.at("source"), "js1");
  EXPECT_EQ(report.at("state"), "partial");
  EXPECT_EQ(report.at("use").at("cpu").to_number<double>(), 0.5);
  EXPECT_EQ(report.at("use").at("mem_peak_node_bytes").to_number<double>(), 3 * kGiB);
  EXPECT_EQ(report.at("nodes").at(0).at("node"), "n1");
  for (const json::value& finding : report.at("findings").as_array()) {
    EXPECT_EQ(finding.at("rule"), "time-limit") << "only what the accounting shows";
  }
  EXPECT_THAT(get("/api/v1/" + old + "&format=text", "ada").body,
              HasSubstr("use of the nodes from jobstats"));
  EXPECT_EQ(get("/api/v1/" + old + "&format=js1", "ada").body, report::to_js1(kept) + "\n");
  const json::object none = report_of("units/report?cluster_id=hpc-a&uuid=501", "ada");
  EXPECT_TRUE(none.at("nodes").as_array().empty());
  EXPECT_FALSE(none.contains("source"));
}

TEST_F(Reports, HoldWhatDatabaseAndTsdbKnow) {
  const json::object report = report_of(kLast, "ada");
  EXPECT_EQ(report.at("state"), "final");
  EXPECT_EQ(report.at("coverage").to_number<double>(), 1);
  EXPECT_EQ(report.at("job").at("name"), "relax-105");
  EXPECT_EQ(report.at("job").at("partition"), "cpu");
  EXPECT_EQ(report.at("job").at("elapsed_s").to_number<double>(), 7200);
  EXPECT_EQ(report.at("job").at("limit_s").to_number<double>(), 86400);
  EXPECT_EQ(report.at("job").at("waited_s").to_number<double>(), 90);
  EXPECT_EQ(report.at("use").at("cpu").to_number<double>(), 0.96);
  EXPECT_EQ(report.at("use").at("mem_peak_node_bytes").to_number<double>(), 2 * kGiB);
  EXPECT_EQ(report.at("use").at("mem_alloc_node_bytes").to_number<double>(), 32 * kGiB);
  EXPECT_TRUE(report.at("use").at("gpu_busy").is_null());
  EXPECT_EQ(report.at("nodes").at(0).at("cpu_seconds").to_number<double>(), 27504);
  EXPECT_EQ(report.at("energy").at("kwh").to_number<double>(), 0.5);
  EXPECT_EQ(report.at("energy").at("idle_kwh").to_number<double>(), 0.1);
  EXPECT_EQ(report.at("energy").at("domains").at("other").to_number<double>(), 0.1);
  EXPECT_EQ(report.at("energy").at("method"), "measured");
  EXPECT_EQ(report.at("co2").at("provider"), "rte_total");
  EXPECT_EQ(report.at("co2").at("g").to_number<double>(), 20);
  EXPECT_EQ(report.at("compared").at("family_n").as_int64(), 6);
  EXPECT_EQ(measurements_.earlier_asked, 5U);
  // Samples are read for a scrape after the end.
  EXPECT_EQ(measurements_.asked.front(), fmt::format("hpc-a 105 {} {} {}", -store::kMinute - kRun,
                                                     -store::kMinute, -store::kMinute + 90'000));
}

TEST_F(Reports, CostWhatTheListSays) {
  EXPECT_TRUE(report_of(kLast, "ada").at("cost").at("amount").is_null()) << "without a price";
  EXPECT_THAT(body(std::string(kLast) + "&format=text", "ada"), Not(HasSubstr("Cost")));
  ApiOptions options;
  options.measurements = &measurements_;
  options.site.currency = "EUR";
  options.site.prices = {.kwh = 0.2468, .core_hour = 0.01};
  make(std::move(options));
  // 0.5 kWh and 8 core-hours.
  const json::object report = report_of(kLast, "ada");
  EXPECT_EQ(report.at("cost").at("amount").to_number<double>(), 0.2);
  EXPECT_EQ(report.at("cost").at("currency"), "EUR");
  const auto list = body("units/list?cluster_id=hpc-a&columns=uuid,cost&q=105", "ada");
  EXPECT_THAT(list, HasSubstr(R"(["105",0.2034])"));
  EXPECT_THAT(body(std::string(kLast) + "&format=text", "ada"), HasSubstr("Cost      EUR 0.20\n"));
  EXPECT_THAT(body(std::string(kLast) + "&format=text&lang=de", "ada"), HasSubstr("0,20 EUR\n"));
  EXPECT_THAT(body("units/compare?cluster_id=hpc-a&uuid=104&uuid=105&format=text", "ada"),
              HasSubstr("Cost    EUR 0.20  EUR 0.20  +0 %"));
}

TEST_F(Reports, SuggestWhatTheNumbersShow) {
  const json::object report = report_of(kLast, "ada");
  const json::array& findings = report.at("findings").as_array();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].at("rule"), "time-limit");
  EXPECT_EQ(findings[0].at("severity"), "important");
  EXPECT_EQ(findings[0].at("sbatch").at(0), "--time=03:00:00");
  EXPECT_EQ(findings[0].at("confidence"), "sure");
  EXPECT_EQ(findings[1].at("rule"), "mem-excess");
  EXPECT_EQ(findings[1].at("confidence"), "sure");
  EXPECT_EQ(findings[1].at("runs").as_int64(), 6);
  EXPECT_EQ(findings[1].at("sbatch").at(0), "--mem=3G");
  EXPECT_EQ(findings[1].at("was").at(0), "--mem=32G");
}

TEST_F(Reports, OfJobsThatAreNotBoundToCpusHaveAdvice) {
  measurements_.unit.nodes[0].cpus = 64;  // the cgroup has all CPUs of the node, the job 4
  EXPECT_EQ(report_of(kLast, "ada").at("findings").at(1).at("rule"), "mem-excess");
}

TEST_F(Reports, AreSilentIfLittleIsMeasured) {
  measurements_.unit.nodes[0].covered_seconds = 0.89 * 7200;
  const json::object report = report_of(kLast, "ada");
  EXPECT_EQ(report.at("state"), "partial");
  EXPECT_EQ(report.at("coverage").to_number<double>(), 0.89);
  EXPECT_TRUE(report.at("findings").as_array().empty());
  EXPECT_THAT(body(std::string(kLast) + "&format=text", "ada"),
              HasSubstr("partly measured: 89 % of the time"));
}

TEST_F(Reports, OfARunWithAMissingNodeArePartial) {
  measurements_.unit.nodes.push_back(node("n2"));
  measurements_.unit.nodes[1].covered_seconds = 0;
  EXPECT_EQ(report_of(kLast, "ada").at("coverage").to_number<double>(), 0.5);
}

TEST_F(Reports, WithoutTsdbHaveWhatTheDatabaseKnows) {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kUnavailable}) {
    measurements_.failure = Error{code, "secret:9090"};
    const json::object report = report_of(kLast, "ada");
    EXPECT_EQ(report.at("state"), "partial");
    EXPECT_TRUE(report.at("coverage").is_null());
    EXPECT_TRUE(report.at("nodes").as_array().empty());
    EXPECT_TRUE(report.at("use").at("mem_peak_node_bytes").is_null());
    EXPECT_EQ(report.at("energy").at("kwh").to_number<double>(), 0.5);
    ASSERT_EQ(report.at("findings").as_array().size(), 1U);  // from the accounting
    EXPECT_EQ(report.at("findings").at(0).at("rule"), "time-limit");
  }
  EXPECT_THAT(body(std::string(kLast) + "&format=text", "ada"), HasSubstr("Memory not measured"));
}

TEST_F(Reports, OfAnIdGivenAgainEndBeforeTheNextRun) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  model::Unit again = job("105", "eve", "optics");
  again.started_at = "again";
  again.started_at_ts = kNow - store::kMinute + 30'000;
  again.ended_at_ts = kNow + kHour + 1;
  update.units = {again};
  write(update);
  EXPECT_EQ(get(std::string("/api/v1/") + kLast, "ada").status, 200);
  EXPECT_THAT(measurements_.asked.back(),
              HasSubstr(fmt::format(" {}", -store::kMinute + 30'000 - 1)));
}

TEST_F(Reports, OfSeveralRunsAreChosenByTheirStart) {
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  model::Unit requeued = wide_job("105", kNow + kHour + 1000);
  requeued.started_at = "requeued";
  update.units = {requeued};
  write(update);
  const auto start = [&](const std::string& more) {
    return report_of(kLast + more, "ada").at("started_at_ts").as_int64() - kNow;
  };
  EXPECT_EQ(start(""), kHour + 1000 - kRun);  // the last
  EXPECT_EQ(start(fmt::format("&start={}", kNow - store::kMinute - kRun)), -store::kMinute - kRun);
  EXPECT_EQ(get(fmt::format("/api/v1/{}&start=1", kLast), "ada").status, 404);
}

TEST_F(Reports, HaveNoPartsThatAreMoreThanTheWhole) {
  // The job has gone on since the database was written: it has 0.5 kWh, the counters 1 kWh.
  for (auto* joules :
       {&measurements_.unit.nodes[0].joules, &measurements_.unit.nodes[0].idle_joules}) {
    for (auto& [domain, value] : *joules) {
      value *= 2;
    }
  }
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  model::Unit running = wide_job("200", kNow + kHour);
  running.ended_at = "Unknown";
  running.ended_at_ts = 0;
  running.state = "RUNNING";
  update.units = {running};
  write(update);
  for (const std::string target : {"units/report?cluster_id=hpc-a&uuid=200&so_far", kLast}) {
    const json::object energy = report_of(target, "ada").at("energy").as_object();
    EXPECT_EQ(energy.at("kwh").to_number<double>(), 0.5) << target;
    EXPECT_EQ(energy.at("domains").at("package").to_number<double>(), 0.3);
    EXPECT_EQ(energy.at("domains").at("dram").to_number<double>(), 0.1);
    EXPECT_EQ(energy.at("domains").at("other").to_number<double>(), 0.1);
    EXPECT_EQ(energy.at("idle_kwh").to_number<double>(), 0.1);
  }
  // Less than the whole is left as it is, and so is what has no whole.
  measurements_.unit.nodes[0].joules = {{"package", 0.36e6}};
  EXPECT_EQ(report_of(kLast, "ada").at("energy").at("domains").at("package").to_number<double>(),
            0.1);
  measurements_.unit.nodes[0].joules = {};
  measurements_.unit.nodes[0].idle_joules = {{"node", 7.2e6}};
  EXPECT_EQ(report_of(kLast, "ada").at("energy").at("idle_kwh").to_number<double>(), 0.5);
}

TEST_F(Reports, SayWhatWasNotUsedOnlyWhereTheDatabaseKnowsIt) {
  measurements_.unit.nodes[0].idle_joules = {{"node", 0.72e6}};
  EXPECT_TRUE(report_of(kLast, "ada").at("energy").at("not_used_kwh").is_null());
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  model::Unit running = wide_job("200", kNow + kHour);
  running.ended_at = "Unknown";
  running.ended_at_ts = 0;
  running.state = "RUNNING";
  running.not_used_kwh = 0.05;
  running.idle_kwh = 0.1;
  update.units = {running};
  write(update);
  const std::string target = "units/report?cluster_id=hpc-a&uuid=200&so_far";
  const auto not_used = [&] {
    return report_of(target, "ada").at("energy").at("not_used_kwh").to_number<double>();
  };
  EXPECT_EQ(not_used(), 0.05);
  measurements_.unit.nodes[0].idle_joules = {{"node", 0.072e6}};
  EXPECT_EQ(not_used(), 0.02) << "a part of the idle power";
}

TEST_F(Reports, SayWhatASuggestionSavesOfWhatWasNotUsed) {
  // Two GPUs, one of which was never used. The idle power of both has 0.05 kWh.
  NodeMeasurements& measured = measurements_.unit.nodes[0];
  measured.idle_joules = {{"node", 0.36e6}, {"gpu", 0.18e6}};
  measured.gpus = {{.index = "0", .uuid = "GPU-0", .busy_seconds = 7000},
                   {.index = "1", .uuid = "GPU-1", .busy_seconds = 0}};
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  for (const std::string uuid : {"200", "201"}) {
    model::Unit unit = wide_job(uuid, kNow + kHour + 1);
    unit.allocation.replace(unit.allocation.find(R"("gpus":0)"), 8, R"("gpus":2)");
    unit.idle_kwh = 0.1;
    update.units.push_back(unit);
  }
  update.units[0].not_used_kwh = 0.06;  // of the other, the run began before it was counted
  write(update);
  const auto saves = [this](const std::string& uuid) {
    const json::object report = report_of("units/report?cluster_id=hpc-a&uuid=" + uuid, "ada");
    for (const json::value& finding : report.at("findings").as_array()) {
      if (finding.at("rule") == "gpu-unused") {
        return finding.at("saves");
      }
    }
    return json::value("no finding");
  };
  EXPECT_EQ(saves("200"), json::object()) << "the node did not count it";
  measured.not_used_joules = {{"gpu", 0.108e6}};
  EXPECT_EQ(saves("200"), json::parse(R"({"kwh":0.025})")) << "one of two GPUs";
  measured.not_used_joules = {{"gpu", 0.072e6}};
  EXPECT_EQ(saves("200"), json::parse(R"({"kwh":0.02})")) << "never more than was not used";
  EXPECT_EQ(saves("201"), json::object());
}

TEST_F(Reports, OfRunningUnitsNeedSoFar) {
  const std::string target = "units/report?cluster_id=hpc-a&uuid=10";
  const auto refused = get("/api/v1/" + target, "ada");
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr(R"("errorType":"conflict","error":"not ended")"));
  const json::object report = report_of(target + "&so_far=true", "ada");
  EXPECT_EQ(report.at("state"), "so_far");
  EXPECT_TRUE(report.at("ended_at_ts").is_null());
  EXPECT_EQ(report.at("job").at("elapsed_s").to_number<double>(), 2 * 3600);
  EXPECT_TRUE(report.at("findings").as_array().empty());
}

TEST_F(Reports, RefuseWhatTheyCannotAnswer) {
  for (const auto& [query, status, message] :
       std::vector<std::tuple<std::string, int, std::string>>{
           {"cluster_id=hpc-a", 400, "one cluster_id and one uuid are needed"},
           {"uuid=105", 400, "one cluster_id and one uuid are needed"},
           {"cluster_id=hpc-a&uuid=105&uuid=104", 400, "one cluster_id and one uuid are needed"},
           {"cluster_id=hpc-a&uuid=105&format=pdf", 400, "'format': expected json, text"},
           {"cluster_id=hpc-a&uuid=105&width=59", 400, "'width': expected a whole number from 60"},
           {"cluster_id=hpc-a&uuid=105&width=241", 400, "'width'"},
           {"cluster_id=hpc-a&uuid=105&width=x", 400, "'width'"},
           {"cluster_id=hpc-a&uuid=105&start=-1", 400, "'start': expected milliseconds"},
           {"cluster_id=hpc-a&uuid=nobody", 404, "no such unit"},
           {"cluster_id=hpc-x&uuid=105", 404, "no such unit"},
           {"cluster_id=hpc-a&uuid=2", 404, "no such unit"}}) {  // bob's
    const auto response = get("/api/v1/units/report?" + query, "ada");
    EXPECT_EQ(response.status, status) << query;
    EXPECT_THAT(response.body, HasSubstr(message)) << query;
  }
  EXPECT_EQ(get(std::string("/api/v1/") + kLast).status, 401);
  EXPECT_EQ(get("/api/v1/units/report/admin?cluster_id=hpc-a&uuid=105", "ada").status, 403);
}

TEST_F(Reports, HaveTheirForms) {
  for (const auto& [format, type, text] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"text", "text/plain; charset=utf-8", "Job 105 · relax-105 · ada / fluids"},
           {"ascii", "text/plain; charset=us-ascii", "Job 105 - relax-105 - ada / fluids"},
           {"markdown", "text/markdown; charset=utf-8", "# Job 105\n"},
           {"html", "text/html; charset=utf-8", "<h1>Job 105</h1>"},
           {"json", "application/json", "\"uuid\":\"105\""}}) {
    const auto response = get(fmt::format("/api/v1/{}&format={}", kLast, format), "ada");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(header(response, "Content-Type"), type);
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_THAT(response.body, HasSubstr(text));
    EXPECT_EQ(response.body.find("help@example.org") != std::string::npos, format != "json");
  }
  const auto page = get(std::string("/api/v1/") + kLast + "&format=html", "ada");
  EXPECT_THAT(header(page, "Content-Security-Policy"),
              HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(body(std::string(kLast) + "&format=text&lang=de", "ada"),
              HasSubstr("Wie die Ressourcen genutzt wurden"));
}

TEST_F(Reports, ForSupportHaveNumbersButNotWhatPeopleWrote) {
  const std::string target = "units/report/admin?cluster_id=hpc-a&uuid=105";
  for (const char* format : {"json", "text", "markdown", "html"}) {
    const std::string text = body(fmt::format("{}&format={}", target, format), "sue");
    EXPECT_THAT(text, Not(HasSubstr("relax")));
    EXPECT_THAT(text, Not(HasSubstr("--mem=3G")));
    EXPECT_THAT(text, HasSubstr("Memory: 2 GiB a node at most"));
  }
  const json::object report = report_of(target, "sue");
  EXPECT_EQ(report.at("job").at("user"), "ada");
  EXPECT_EQ(report.at("job").at("partition"), "cpu");  // as in lists
  EXPECT_EQ(report_of(target, "root").at("job").at("name"), "relax-105");
}

TEST_F(Reports, OfTwoUnitsAreCompared) {
  const std::string target = "units/compare?cluster_id=hpc-a&uuid=104&uuid=105";
  EXPECT_EQ(json::parse(body(target, "ada")).at("data").as_array().size(), 2U);
  EXPECT_THAT(body(target + "&format=text", "ada"), HasSubstr("Energy  0.5 kWh  0.5 kWh  +0 %"));
  for (const auto& [query, status] :
       std::vector<std::pair<std::string, int>>{{"uuid=104", 400},
                                                {"uuid=104&uuid=104", 400},
                                                {"uuid=104&uuid=105&format=html", 400},
                                                {"uuid=104&uuid=2", 404},
                                                {"uuid=104&uuid=10", 409}}) {
    EXPECT_EQ(get("/api/v1/units/compare?cluster_id=hpc-a&" + query, "ada").status, status)
        << query;
  }
}

}  // namespace
}  // namespace ceems::api
