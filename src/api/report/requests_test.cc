// What jobs of each manager asked for, and the lines that their reports suggest.
#include "api/report/requests.h"

#include <boost/json.hpp>
#include <gmock/gmock.h>

#include "api/report/measurements.h"
#include "api/server_test_support.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kRequestGiB = 1024.0 * 1024 * 1024;

StoredUnit requested_unit(const std::string& manager,
                          const std::string& state,
                          const std::string& tags = "{}",
                          const std::string& allocation = "{}") {
  StoredUnit unit;
  unit.unit.resource_manager = manager;
  unit.unit.state = state;
  unit.unit.tags = tags;
  unit.unit.allocation = allocation;
  return unit;
}

TEST(CommonState, IsThatOfSlurm) {
  const auto state = [](const std::string& manager, const std::string& said,
                        const std::string& tags = "{}", double elapsed = 100) {
    const StoredUnit unit = requested_unit(manager, said, tags, R"({"time_limit":3600})");
    return std::string(common_state(unit, elapsed));
  };
  EXPECT_EQ(state("slurm", "COMPLETED"), "COMPLETED");
  EXPECT_EQ(state("slurm", "DONE"), "DONE");
  EXPECT_EQ(state("lsf", "DONE"), "COMPLETED");
  EXPECT_EQ(state("lsf", "RUN"), "RUN");
  EXPECT_EQ(state("lsf", "EXIT"), "EXIT");
  EXPECT_EQ(state("lsf", "EXIT", R"({"exit_reason":"TERM_RUNLIMIT"})"), "TIMEOUT");
  EXPECT_EQ(state("lsf", "EXIT", R"({"exit_reason":"TERM_MEMLIMIT"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("lsf", "EXIT", R"({"exit_reason":"TERM_OWNER"})"), "EXIT");
  EXPECT_EQ(state("openpbs", "FINISHED", R"({"exit_status":"0"})"), "COMPLETED");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"1"})", 3600), "FAILED");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-29"})"), "TIMEOUT");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-27"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"-26"})"), "OUT_OF_MEMORY");
  // Ended by a signal: at its limit, or by somebody.
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"271"})", 3600), "TIMEOUT");
  EXPECT_EQ(state("openpbs", "FAILED", R"({"exit_status":"271"})", 3599), "FAILED");
  EXPECT_EQ(state("openpbs", "FAILED", "no JSON", 3600), "FAILED");
  EXPECT_EQ(state("k8s", "Succeeded"), "COMPLETED");
  EXPECT_EQ(state("k8s", "Failed"), "Failed");
  EXPECT_EQ(state("k8s", "Failed", R"({"exit_reason":"OOMKilled"})"), "OUT_OF_MEMORY");
  EXPECT_EQ(state("k8s", "Succeeded", R"({"exit_reason":"OOMKilled"})"), "COMPLETED");
}

TEST(Requests, OfAPodWithoutLimitsAreNotKnown) {
  const StoredUnit bare = requested_unit("k8s", "Running", "{}", R"({"vcpus":0.001,"mem":1})");
  EXPECT_EQ(cpus_of(bare), std::nullopt);
  EXPECT_EQ(memory_of(bare), std::nullopt);
  EXPECT_FALSE(memory_is_reserved(bare));
  EXPECT_EQ(gpus_of(bare), std::nullopt);
  StoredUnit pod = requested_unit("k8s", "Running", "{}", R"({"vcpus":2,"mem":1024,"a.b/gpu":2})");
  pod.unit.total_time_seconds = {{"walltime", 900}, {"alloc_gputime", 1800}};
  EXPECT_EQ(cpus_of(pod), 2);
  EXPECT_EQ(memory_of(pod), 1024);
  EXPECT_TRUE(memory_is_reserved(pod));
  EXPECT_EQ(gpus_of(pod), 2);
}

TEST(Requests, AreNotWhatWasUsed) {
  EXPECT_FALSE(memory_is_reserved(requested_unit("lsf", "DONE", "{}", R"({"mem":1024})")));
  EXPECT_TRUE(memory_is_reserved(requested_unit("lsf", "DONE", "{}", R"({"mem":9,"req_mem":9})")));
  EXPECT_FALSE(memory_is_reserved(requested_unit("openpbs", "FINISHED", "{}", R"({"mem":0})")));
  EXPECT_TRUE(memory_is_reserved(requested_unit("openpbs", "FINISHED", "{}", R"({"mem":1024})")));
  EXPECT_TRUE(memory_is_reserved(requested_unit("slurm", "COMPLETED")));
  EXPECT_EQ(memory_of(requested_unit("openstack", "ACTIVE", "{}", R"({"mem":2})")),
            2 * 1024 * 1024);
}

/// The facts pbs.mem, pbs.gpus and pbs.more of a job with 2 nodes and 32 CPUs, or "unknown".
std::string chunk_of(const std::string& select) {
  json::object tags;
  tags["select"] = select;
  advice::Facts facts;
  add_requests(
      requested_unit("openpbs", "FINISHED", json::serialize(tags), R"({"cpus":32,"nodes":2})"),
      facts);
  std::string all;
  for (const char* name : {"pbs.mem", "pbs.gpus", "pbs.more"}) {
    const advice::Value value = facts.value_of(name);
    const auto* text = std::get_if<std::string_view>(&value);
    if (text == nullptr) {
      return "unknown";
    }
    all += '[' + std::string(*text) + ']';
  }
  return all;
}

TEST(Requests, OfOpenPbsHaveTheirChunks) {
  EXPECT_EQ(chunk_of("2:ncpus=16"), "[][][]");
  EXPECT_EQ(chunk_of("2:ncpus=16:mem=128gb:mpiprocs=16"), "[:mem=128gb][][:mpiprocs=16]");
  EXPECT_EQ(chunk_of("2:mpiprocs=4:ompthreads=4:ncpus=16:ngpus=2:mem=134217728kb"),
            "[:mem=134217728kb][:ngpus=2][:mpiprocs=4:ompthreads=4]");
  // Several kinds, other sizes, and words that a user chooses.
  for (const char* select :
       {"", "2", "2:", "ncpus=16", "1:ncpus=16", "2:ncpus=8", "4:ncpus=8", "2:ncpus=16+1:ncpus=1",
        "2:ncpus=16:host=n1", "2:ncpus=16:mem=$(reboot)", "2:ncpus=16:mem=", "2:ncpus=16:mem=1gbx",
        "2:ncpus=16:mem=1111111111111111gb", "2:ncpus=16:mpiprocs=-1", "2:ncpus=16:mpiprocs=x",
        "2:ncpus=16:x\n#PBS -o /etc", "0:ncpus=16", "99999999999999999999:ncpus=16",
        "2:ncpus=16:mem=1gb\n"}) {
    EXPECT_EQ(chunk_of(select), "unknown") << select;
  }
}

/// A TSDB that knows one thing.
class FixedMeasurements final : public MeasurementSource {
 public:
  Result<UnitMeasurements> measure(const std::string& /*cluster_id*/,
                                   const UnitRun& /*run*/) override {
    return unit;
  }
  Result<std::vector<RunMeasurements>> measure_runs(const std::string& /*cluster_id*/,
                                                    const std::vector<UnitRun>& runs) override {
    return std::vector<RunMeasurements>(runs.size());
  }
  UnitMeasurements unit;
};

/// Runs of two hours of which each node used 16 busy CPUs and 8 GiB.
class ReportLines : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(kNow + kHour)));
    ApiOptions options;
    options.measurements = &measurements_;
    make(std::move(options));
    set_nodes(1);
  }
  void set_nodes(std::size_t count) {
    measurements_.unit = {.method = "measured"};
    for (std::size_t i = 0; i < count; ++i) {
      measurements_.unit.nodes.push_back({.node = fmt::format("n{}", i),
                                          .cpus = 16,
                                          .cpu_seconds = 15.5 * 7200,
                                          .cpu_used_max = 16,
                                          .mem_peak = 8 * kRequestGiB,
                                          .idle_seconds = 0,
                                          .node_cpus = 64,
                                          .node_mem = 256 * kRequestGiB,
                                          .covered_seconds = 7200});
    }
  }
  static model::Unit run(const std::string& state,
                         const std::string& allocation,
                         const std::string& tags) {
    model::Unit unit = job("7", "ada", "fluids");
    unit.name = "#PBS -o /etc/passwd";
    unit.state = state;
    unit.started_at_ts = kNow - 2 * kHour;
    unit.ended_at_ts = unit.started_at_ts + 2 * kHour;
    unit.allocation = allocation;
    unit.tags = tags;
    unit.total_time_seconds = {{"walltime", 7200}, {"alloc_gputime", 0}};
    unit.metric(model::Metric::kAvgCpuUsage) = {{"global", 95.5}};
    unit.has_metric[0] = true;
    return unit;
  }
  /// "rule: line (was); line" of each finding of the unit, as its report has them.
  std::vector<std::string> lines_of(const std::string& manager, model::Unit unit) {
    store::ClusterUpdate update;
    const std::string cluster = fmt::format("{}-{}", manager, ++clusters_);
    update.cluster = {.id = cluster, .manager = manager, .updaters = {}};
    update.window = {kNow, kNow + kHour};
    unit.resource_manager = manager;
    unit.cluster_id = cluster;
    update.units = {unit};
    write(update);
    const auto response = get("/api/v1/units/report?cluster_id=" + cluster + "&uuid=7", "ada");
    EXPECT_EQ(response.status, 200) << response.body;
    std::vector<std::string> all;
    const json::value report = json::parse(response.body).at("data").at(0);
    for (const json::value& finding : report.at("findings").as_array()) {
      std::string text(finding.at("rule").as_string());
      for (const json::value& line : finding.at("lines").as_array()) {
        text +=
            fmt::format("; {} ({})", std::string(line.at("type").as_string()),
                        line.at("was").is_null() ? "" : std::string(line.at("was").as_string()));
      }
      EXPECT_EQ(finding.at("sbatch").as_array().empty(),
                manager != "slurm" || finding.at("lines").as_array().empty());
      EXPECT_THAT(text, Not(HasSubstr("passwd")));
      all.push_back(std::move(text));
    }
    return all;
  }
  FixedMeasurements measurements_;
  int clusters_ = 0;
};

constexpr const char* kSixteen =
    R"({"cpus":16,"gpus":0,"mem":137438953472,"nodes":1,"req_mem":137438953472,"time_limit":86400})";

TEST_F(ReportLines, AreThoseOfTheManager) {
  EXPECT_THAT(lines_of("slurm", run("COMPLETED", kSixteen, "{}")),
              ElementsAre("time-limit; #SBATCH --time=03:00:00 (--time=1-00:00:00)",
                          "mem-excess; #SBATCH --mem=10G (--mem=128G)"));
  EXPECT_THAT(lines_of("lsf", run("DONE", kSixteen, R"({"queue":"normal"})")),
              ElementsAre("time-limit; #BSUB -W 3:00 (-W 24:00)",
                          R"(mem-excess; #BSUB -R "rusage[mem=10GB/host]" )"
                          R"((-R "rusage[mem=128GB/host]"); #BSUB -M 10GB (-M 128GB))"));
  EXPECT_THAT(lines_of("local", run("COMPLETED", kSixteen, "{}")),
              ElementsAre("time-limit", "mem-excess"));
  EXPECT_THAT(lines_of("openstack",
                       run("COMPLETED", R"({"vcpus":16,"mem":131072,"name":"m1.large"})", "{}")),
              IsEmpty());
}

TEST_F(ReportLines, OfOpenPbsRepeatTheSelect) {
  set_nodes(2);
  constexpr const char* kTwo =
      R"({"cpus":32,"gpus":0,"mem":274877906944,"nodes":2,"req_cpus":32,"time_limit":86400})";
  EXPECT_THAT(
      lines_of("openpbs", run("FINISHED", kTwo,
                              R"({"select":"2:ncpus=16:mem=128gb:mpiprocs=16","queue":"q"})")),
      ElementsAre("time-limit; #PBS -l walltime=03:00:00 (-l walltime=24:00:00)",
                  "mem-excess; #PBS -l select=2:ncpus=16:mem=10gb:mpiprocs=16 "
                  "(-l select=2:ncpus=16:mem=128gb:mpiprocs=16)",
                  "nodes-many"));
  // A select that has more than that is left alone.
  EXPECT_THAT(
      lines_of("openpbs", run("FINISHED", kTwo, R"({"select":"2:ncpus=16:host=a;reboot"})")),
      ElementsAre("time-limit; #PBS -l walltime=03:00:00 (-l walltime=24:00:00)", "mem-excess",
                  "nodes-many"));
}

TEST_F(ReportLines, OfPodsAreTheirResources) {
  EXPECT_THAT(lines_of("k8s", run("Succeeded",
                                  R"({"vcpus":16,"mem":137438953472,"req_cpus":16,)"
                                  R"("req_mem":68719476736})",
                                  R"({"qos":"Burstable"})")),
              ElementsAre("mem-excess; resources.limits.memory: 10Gi "
                          "(resources.limits.memory: 128Gi); resources.requests.memory: 10Gi "
                          "(resources.requests.memory: 64Gi)"));
  // Without a limit there is nothing to reduce.
  EXPECT_THAT(lines_of("k8s", run("Deleted", R"({"vcpus":0.001,"mem":1})", "{}")), IsEmpty());
  EXPECT_THAT(lines_of("k8s", run("Failed", R"({"vcpus":16,"mem":8589934592})",
                                  R"({"qos":"Guaranteed","exit_reason":"OOMKilled"})")),
              ElementsAre("oom; resources.limits.memory: 12Gi (resources.limits.memory: 8Gi)"));
}

TEST_F(ReportLines, OfPodsNameTheirKindOfGpus) {
  measurements_.unit.nodes.front().gpus = {
      {.uuid = "a", .busy_seconds = 6000, .mem_peak = kRequestGiB},
      {.uuid = "b", .busy_seconds = 0, .mem_peak = 0}};
  const auto lines = [this](const std::string& gpus) {
    model::Unit pod =
        run("Succeeded", R"({"vcpus":16,"mem":8589934592,"req_cpus":16)" + gpus + "}", "{}");
    pod.total_time_seconds["alloc_gputime"] = 2 * pod.total_time_seconds["walltime"];
    return lines_of("k8s", std::move(pod));
  };
  EXPECT_THAT(lines(R"(,"nvidia.com/gpu":2)"),
              Contains("gpu-unused; resources.limits.nvidia.com/gpu: 1 "
                       "(resources.limits.nvidia.com/gpu: 2)"));
  // Of several kinds it is not known which one was not used.
  EXPECT_THAT(lines(R"(,"nvidia.com/gpu":1,"amd.com/gpu":1)"), Contains("gpu-unused"));
  EXPECT_THAT(lines(R"(,"nvidia.com/gpu: 0 #":2)"), Contains("gpu-unused"));
}

TEST_F(ReportLines, HelpWhereTimeOrMemoryRanOut) {
  constexpr const char* kTwoHours =
      R"({"cpus":16,"gpus":0,"mem":137438953472,"nodes":1,"req_mem":137438953472,"time_limit":7200})";
  EXPECT_THAT(lines_of("lsf", run("EXIT", kTwoHours, R"({"exit_reason":"TERM_MEMLIMIT"})")),
              ElementsAre(R"(oom; #BSUB -R "rusage[mem=200GB/host]" )"
                          R"((-R "rusage[mem=128GB/host]"); #BSUB -M 200GB (-M 128GB))"));
  const std::vector<std::string> longer =
      lines_of("openpbs", run("FAILED", kTwoHours, R"({"exit_status":"-29"})"));
  ASSERT_FALSE(longer.empty());
  EXPECT_EQ(longer.front(), "timeout; #PBS -l walltime=03:00:00 (-l walltime=02:00:00)");
  // What LSF knows of a job without reservation is what it used, which is never too little.
  EXPECT_THAT(
      lines_of("lsf", run("DONE", R"({"cpus":16,"gpus":0,"mem":8589934592,"nodes":1})", "{}")),
      ElementsAre("good"));
}

}  // namespace
}  // namespace ceems::api
