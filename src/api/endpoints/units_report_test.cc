// Reports by the server: what they hold, who gets them, and in which forms.
#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/report/measurements.h"
#include "api/server_test_support.h"
#include "report/stored.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::int64_t kRun = 2 * kHour;

/// A TSDB with what the tests put there.
class FakeMeasurements final : public MeasurementSource {
 public:
  Result<UnitMeasurements> measure(const std::string& cluster_id, const UnitRun& run) override {
    asked.push_back(fmt::format("{} {} {} {} {}", cluster_id, run.uuid, run.started_ms - kNow,
                                run.ended_ms - kNow, run.until_ms - kNow));
    return failure ? Result<UnitMeasurements>(fail(*failure)) : unit;
  }
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& /*cluster_id*/,
                                                    const std::vector<UnitRun>& runs) override {
    earlier_asked += runs.size();
    if (failure) {
      return fail(*failure);
    }
    return std::vector<RunMeasurements>(runs.size(), {.mem_peak = earlier_peak});
  }
  UnitMeasurements unit;
  Number earlier_peak = 2.0 * kGiB;
  std::optional<Error> failure;
  std::vector<std::string> asked;
  std::size_t earlier_asked = 0;
};

/// A run of two hours on one node that used 2 of its 32 GiB.
model::Unit wide_job(const std::string& uuid, std::int64_t end_ms) {
  model::Unit unit = job(uuid, "ada", "fluids");
  unit.name = "relax-" + uuid;
  unit.started_at_ts = end_ms - kRun;
  unit.started_at = "start " + uuid;
  unit.ended_at_ts = end_ms;
  unit.ended_at = "end " + uuid;
  unit.allocation = fmt::format(
      R"({{"cpus":4,"gpus":0,"nodes":1,"mem":34359738368,"time_limit":86400,"req_cpus":4,)"
      R"("eligible":{}}})",
      unit.started_at_ts - 90'000);
  unit.tags = R"({"partition":"cpu","qos":"normal"})";
  unit.total_time_seconds = {{"walltime", 7200}, {"alloc_cputime", 28800}};
  unit.metric(model::Metric::kAvgCpuUsage) = {{"global", 95.5}};
  unit.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"total", 0.5}};
  unit.metric(model::Metric::kTotalCpuEmissionsGms) = {{"owid_total", 25}, {"rte_total", 20.04}};
  unit.has_metric[0] = unit.has_metric[2] = unit.has_metric[3] = true;
  return unit;
}

NodeMeasurements node(const std::string& name) {
  return {.node = name,
          .cpus = 4,
          .cpu_seconds = 27504,
          .cpu_used_max = 4,
          .mem_peak = 2 * kGiB,
          .idle_seconds = 0,
          .joules = {{"node", 1.8e6}, {"package", 1.08e6}, {"dram", 0.36e6}},
          .idle_joules = {{"node", 0.36e6}},
          .node_cpus = 64,
          .node_mem = 256 * kGiB,
          .covered_seconds = 7200};
}

class Reports : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
    update.window = {kNow, kNow + kHour};
    for (int i = 0; i < 6; ++i) {
      update.units.push_back(wide_job(std::to_string(100 + i), kNow - (6 - i) * store::kMinute));
    }
    write(update);
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow + kHour)));
    measurements_.unit = {.nodes = {node("n1")}, .method = "measured"};
    ApiOptions options;
    options.measurements = &measurements_;
    options.roles.support = {"sue"};
    options.site.help_url = "help@example.org";
    make(std::move(options));
  }
  json::object report_of(const std::string& target, const std::string& user) {
    const auto response = get("/api/v1/" + target, user);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.status == 200
               ? json::parse(response.body).at("data").as_array().at(0).as_object()
               : json::object();
  }
  FakeMeasurements measurements_;
};

constexpr const char* kLast = "units/report?cluster_id=hpc-a&uuid=105";

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

/// Stores the final report of unit 105, with another name than the unit has.
report::Report stored_report(store::Writer& writer) {
  const std::int64_t ended_ms = kNow - store::kMinute;
  report::Report report{.cluster_id = "hpc-a",
                        .uuid = "105",
                        .started_ms = ended_ms - kRun,
                        .ended_ms = ended_ms,
                        .started_text = "2025-12-31T21:59:00+0000",
                        .state = report::State::kFinal,
                        .coverage = 0.998};
  report.job = {.name = "as-it-was",
                .user = "ada",
                .project = "fluids",
                .partition = "cpu",
                .state = "COMPLETED",
                .manager = "slurm",
                .elapsed = 7200};
  report.energy.kwh = 0.5;
  report.compared = {.runs = 6, .project_month_share = 0.17};
  report.findings = {{.rule = "mem-excess",
                      .severity = advice::Severity::kSuggest,
                      .confidence = advice::Confidence::kSure,
                      .runs = 6,
                      .text = {{"en", "Memory: less."}, {"de", "Speicher: weniger."}},
                      .lines = {{.type = "#SBATCH --mem=3G"}}}};
  const store::ReportRow row{
      .key = {.cluster_id = "hpc-a", .uuid = "105", .started_at_ts = report.started_ms},
      .ended_at_ts = ended_ms,
      .final = true,
      .made_ms = kNow,
      .version = report::kStoredVersion,
      .body = report::to_stored(report),
      .findings = {{.rule = "mem-excess",
                    .severity = 2,
                    .confidence = 2,
                    .runs = 6,
                    .saves_kwh = 0.4,
                    .numbers = R"({"want":3221225472})"},
                   {.rule = "good", .severity = 0, .numbers = "{}"}}};
  EXPECT_EQ(writer.store_reports({row}).value(), 1U);
  return report;
}

TEST_F(Reports, ThatAreStoredAreShownWithoutTheTsdb) {
  const report::Report report = stored_report(db_->writer());
  measurements_.failure = Error{ErrorCode::kUnavailable, "down"};
  EXPECT_EQ(json::parse(body(kLast, "ada")).at("data").at(0),
            json::parse(report::to_json(report, {})));
  for (const auto& [format, text] : std::vector<std::pair<std::string, std::string>>{
           {"text", report::to_text(report, {.help_url = "help@example.org"})},
           {"text&lang=de",
            report::to_text(report, {.language = "de", .help_url = "help@example.org"})},
           {"markdown", report::to_markdown(report, {.help_url = "help@example.org"})},
           {"html", report::to_html(report, {.help_url = "help@example.org"})},
           {"js1", report::to_js1(report) + "\n"}}) {
    EXPECT_EQ(body(fmt::format("{}&format={}", kLast, format), "ada"), text) << format;
  }
  EXPECT_THAT(measurements_.asked, IsEmpty());
  EXPECT_THAT(body("units/compare?cluster_id=hpc-a&uuid=104&uuid=105&format=text", "ada"),
              HasSubstr("CPU     96 %     not measured"));
}

TEST_F(Reports, ThatWereStoredBeforeThereWerePricesHaveACost) {
  stored_report(db_->writer());
  EXPECT_TRUE(report_of(kLast, "ada").at("cost").at("amount").is_null());
  ApiOptions options;
  options.measurements = &measurements_;
  options.site.currency = "EUR";
  options.site.prices = {.core_hour = 0.5};
  make(std::move(options));
  const json::object report = report_of(kLast, "ada");
  EXPECT_EQ(report.at("cost").at("amount").to_number<double>(), 4);  // of 8 core-hours
  EXPECT_EQ(report.at("cost").at("currency"), "EUR");
}

TEST_F(Reports, ThatAreStoredHaveAnEntityTag) {
  EXPECT_EQ(header(get(std::string("/api/v1/") + kLast, "ada"), "ETag"), "(none)");
  stored_report(db_->writer());
  const auto ask = [this](const std::string& target, const std::string& user,
                          const std::string& tag) {
    return request("GET", "/api/v1/" + target, {{"X-Grafana-User", user}, {"If-None-Match", tag}});
  };
  const auto first = get(std::string("/api/v1/") + kLast, "ada");
  const std::string tag = header(first, "ETag");
  EXPECT_THAT(tag, ::testing::StartsWith("W/"));
  EXPECT_EQ(header(first, "Cache-Control"), "private, no-cache");
  const auto second = ask(kLast, "ada", tag);
  EXPECT_EQ(second.status, 304);
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(header(second, "ETag"), tag);
  // Commits do not matter to it, but other questions and callers do.
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  write(update);
  EXPECT_EQ(ask(kLast, "ada", tag).status, 304);
  EXPECT_EQ(ask(std::string(kLast) + "&lang=de", "ada", tag).status, 200);
  EXPECT_EQ(ask("units/report/admin?cluster_id=hpc-a&uuid=105", "root", tag).status, 200);
  EXPECT_EQ(ask(kLast, "bob", tag).status, 404);
  EXPECT_EQ(ask("units/report?cluster_id=hpc-a&uuid=104", "ada", tag).status, 200);
}

TEST_F(Reports, ThatAreStoredShowTheMonthToThoseWhoSeeTheProject) {
  stored_report(db_->writer());
  const auto share = [this](const std::string& target, const std::string& user) {
    return report_of(target, user).at("compared").at("project_month_share");
  };
  EXPECT_EQ(share(kLast, "ada").to_number<double>(), 0.17);
  EXPECT_EQ(share("units/report/admin?cluster_id=hpc-a&uuid=105", "root").to_number<double>(),
            0.17);
  store::ClusterUpdate update;
  update.cluster = {.id = "hpc-a", .manager = "slurm", .updaters = {}};
  update.window = {kNow + kHour, kNow + 2 * kHour};
  update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(update);
  EXPECT_TRUE(share(kLast, "ada").is_null());
}

TEST_F(Reports, ThatAreStoredAreMadeAnewIfTheyCannotBeRead) {
  stored_report(db_->writer());
  EXPECT_EQ(report_of(kLast, "ada").at("job").at("name"), "as-it-was");
  execute("UPDATE ceems_unit_reports SET body = 'x' WHERE uuid = '105'");
  EXPECT_EQ(report_of(kLast, "ada").at("job").at("name"), "relax-105");
}

TEST_F(Reports, HaveFindingsInLists) {
  stored_report(db_->writer());
  const auto findings = [this](const std::string& query, const std::string& user) {
    return json::parse(body("units/findings" + query, user)).at("data").at("findings").as_array();
  };
  const json::array all = findings("", "ada");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0], json::parse(fmt::format(
                        R"({{"cluster_id":"hpc-a","uuid":"105","started_at_ts":{},)"
                        R"("ended_at_ts":{},"name":"relax-105","user":"ada","project":"fluids",)"
                        R"("rule":"mem-excess","severity":"suggest","confidence":"sure","runs":6,)"
                        R"("values":{{"want":3221225472}},"saves":{{"kwh":0.4}}}})",
                        kNow - store::kMinute - kRun, kNow - store::kMinute)));
  execute("UPDATE ceems_unit_facts SET array_id = '100_5' WHERE uuid = '105'");
  EXPECT_EQ(findings("", "ada").at(0).at("array"), "100_5") << "as SLURM shows it";
  EXPECT_EQ(findings("?severity=good", "ada").size(), 2U);
  EXPECT_EQ(findings("?rule=good&severity=good", "ada").size(), 1U);
  EXPECT_EQ(findings("?rule=mem-excess,idle", "ada").size(), 1U);
  for (const char* none : {"?severity=important", "?rule=idle", "?rule=unknown", "?project=optics",
                           "?cluster_id=hpc-b", "?from=1&to=2"}) {
    EXPECT_TRUE(findings(none, "ada").empty()) << none;
  }
  EXPECT_TRUE(findings("", "eve").empty());
  EXPECT_EQ(findings("/admin?user=ada", "root").size(), 1U);
  EXPECT_TRUE(findings("/admin", "sue").at(0).at("name").is_null());
  EXPECT_EQ(get("/api/v1/units/findings?severity=x", "ada").status, 400);
  EXPECT_EQ(get("/api/v1/units/findings/admin", "ada").status, 403);
  const json::value list = json::parse(body("units/list?advice=mem-excess&columns=uuid", "ada"));
  EXPECT_EQ(list.at("data").at("rows"), json::parse(R"([["105"]])"));
}

TEST_F(Reports, SuggestSomethingForEachKind) {
  stored_report(db_->writer());
  const auto kinds = [this](const std::string& query, const std::string& user) {
    return json::parse(body("units/kinds" + query, user)).at("data").at("kinds").as_array();
  };
  const json::array all = kinds("", "ada");
  const auto found = std::ranges::find_if(
      all, [](const json::value& kind) { return kind.at("name") == "relax-#"; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->at("user"), "ada");
  EXPECT_EQ(found->at("project"), "fluids");
  EXPECT_GT(found->at("units").as_int64(), 1);
  EXPECT_TRUE(found->at("not_used").is_null());
  EXPECT_EQ(found->at("not_used_of"), 0);
  EXPECT_EQ(kinds("?sort=not_used", "ada"), all) << "the default";
  const json::value& finding = found->at("finding");
  EXPECT_EQ(finding.at("uuid"), "105");
  EXPECT_EQ(finding.at("rule"), "mem-excess");
  EXPECT_EQ(finding.at("runs"), 6);
  EXPECT_EQ(finding.at("saves_kwh").to_number<double>(), 0.4);
  for (const json::value& kind : kinds("", "eve")) {
    EXPECT_EQ(kind.at("user"), "eve");
  }
  EXPECT_EQ(kinds("/admin?user=ada&sort=units&top=1", "root").size(), 1U);
  EXPECT_TRUE(kinds("/admin", "sue").at(0).at("name").is_null());
  for (const char* wrong : {"?sort=name", "?top=0", "?top=101", "?top=x", "?state="}) {
    EXPECT_EQ(get(std::string("/api/v1/units/kinds") + wrong, "ada").status,
              std::string_view(wrong) == "?state=" ? 200 : 400)
        << wrong;
  }
  EXPECT_EQ(get("/api/v1/units/kinds/admin", "ada").status, 403);
}

}  // namespace
}  // namespace ceems::api
