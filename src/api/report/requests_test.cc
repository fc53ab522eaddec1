// What jobs of each manager asked for.
#include "api/report/requests.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

namespace json = boost::json;

StoredUnit unit_of(const std::string& manager,
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
    const StoredUnit unit = unit_of(manager, said, tags, R"({"time_limit":3600})");
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
}

TEST(Requests, OfAPodWithoutLimitsAreNotKnown) {
  const StoredUnit bare = unit_of("k8s", "Running", "{}", R"({"vcpus":0.001,"mem":1})");
  EXPECT_EQ(cpus_of(bare), std::nullopt);
  EXPECT_EQ(memory_of(bare), std::nullopt);
  EXPECT_FALSE(memory_is_reserved(bare));
  EXPECT_EQ(gpus_of(bare), std::nullopt);
  StoredUnit pod = unit_of("k8s", "Running", "{}", R"({"vcpus":2,"mem":1024,"a.b/gpu":2})");
  pod.unit.total_time_seconds = {{"walltime", 900}, {"alloc_gputime", 1800}};
  EXPECT_EQ(cpus_of(pod), 2);
  EXPECT_EQ(memory_of(pod), 1024);
  EXPECT_TRUE(memory_is_reserved(pod));
  EXPECT_EQ(gpus_of(pod), 2);
}

TEST(Requests, AreNotWhatWasUsed) {
  EXPECT_FALSE(memory_is_reserved(unit_of("lsf", "DONE", "{}", R"({"mem":1024})")));
  EXPECT_TRUE(memory_is_reserved(unit_of("lsf", "DONE", "{}", R"({"mem":9,"req_mem":9})")));
  EXPECT_FALSE(memory_is_reserved(unit_of("openpbs", "FINISHED", "{}", R"({"mem":0})")));
  EXPECT_TRUE(memory_is_reserved(unit_of("openpbs", "FINISHED", "{}", R"({"mem":1024})")));
  EXPECT_TRUE(memory_is_reserved(unit_of("slurm", "COMPLETED")));
  EXPECT_EQ(memory_of(unit_of("openstack", "ACTIVE", "{}", R"({"mem":2})")), 2 * 1024 * 1024);
}

/// The facts pbs.mem, pbs.gpus and pbs.more of a job with 2 nodes and 32 CPUs, or "unknown".
std::string chunk_of(const std::string& select) {
  json::object tags;
  tags["select"] = select;
  advice::Facts facts;
  add_requests(unit_of("openpbs", "FINISHED", json::serialize(tags), R"({"cpus":32,"nodes":2})"),
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

}  // namespace
}  // namespace ceems::api
