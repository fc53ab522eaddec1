#include "api/check/job_request.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/value.h"
#include "api/report/requests.h"
#include "api/report/slurm_request.h"

namespace ceems::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::string& body) {
  const auto request = parse_job_request(body);
  return request ? "" : request.error().message;
}

std::string text_of(const advice::Facts& facts, std::string_view name) {
  const advice::Value value = facts.value_of(name);
  const auto* const text = std::get_if<std::string_view>(&value);
  return text == nullptr ? "(none)" : std::string(*text);
}

TEST(JobRequest, HasWhatIsAskedFor) {
  const auto request = parse_job_request(
      R"({"cluster_id":"slurm-0","form":"pbs","request":{"name":"train-7","project":"p",)"
      R"("partition":"gpu","nodes":1,"cpus":32,"gpus":4,"memory_bytes":137438953472,)"
      R"("time_limit_s":43200,"array_tasks":10,"executable":"train.py"},)"
      R"("directives":["--nodes=1","--gres=gpu:4"],"deadline_ts":1794949200000})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->cluster_id, "slurm-0");
  EXPECT_EQ(request->form, "pbs");
  EXPECT_EQ(request->name, "train-7");
  EXPECT_EQ(request->project, "p");
  EXPECT_EQ(request->partition, "gpu");
  EXPECT_EQ(request->nodes, 1);
  EXPECT_EQ(request->cpus, 32);
  EXPECT_EQ(request->gpus, 4);
  EXPECT_EQ(request->memory, 137438953472);
  EXPECT_EQ(request->time_limit, 43200);
  EXPECT_EQ(request->array_tasks, 10);
  EXPECT_THAT(request->directives, ElementsAre("--nodes=1", "--gres=gpu:4"));
  EXPECT_EQ(request->deadline_ms, 1794949200000);
}

TEST(JobRequest, NeedsOnlyTheCluster) {
  const auto request = parse_job_request(
      R"({"cluster_id":"a","request":{"executable":"/opt/x/run.sh","cpus":0,"gpus":0}})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->name, "run.sh");
  EXPECT_FALSE(request->cpus);
  EXPECT_EQ(request->gpus, 0);
  EXPECT_EQ(request->array_tasks, 1);
}

TEST(JobRequest, RefusesWhatItDoesNotKnowByName) {
  EXPECT_EQ(error_of(R"({"cluster_id":"a","colour":1})"),
            "unknown member 'colour', expected one of cluster_id, form, request, directives, "
            "deadline_ts");
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":{"user":"bob"}})"),
              HasSubstr("unknown member 'request.user'"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","\u001b[31m":1})"), HasSubstr("'\\x1b[31m'"));
  EXPECT_EQ(error_of("{}"), "cluster_id missing in the request");
  EXPECT_EQ(error_of(R"({"cluster_id":"a","form":"sge"})"),
            "form: expected sbatch, pbs, lsf or k8s");
  for (const char* body : {"", "[]", "1", "{", "\xff", R"({"cluster_id":"a"}x)"}) {
    EXPECT_EQ(error_of(body), "expected a JSON object as the body of the request") << body;
  }
  EXPECT_THAT(error_of(std::string(kMaxJobRequest + 1, ' ')), HasSubstr("more than 65536 bytes"));
}

TEST(JobRequest, RefusesWrongValues) {
  EXPECT_THAT(error_of(R"({"cluster_id":1})"), HasSubstr("cluster_id: expected a text"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a\u0000b"})"), HasSubstr("cluster_id: expected a text"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":[]})"), HasSubstr("an object"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":{"cpus":-1}})"),
              HasSubstr("request.cpus: expected a number"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":{"cpus":1e300}})"), HasSubstr("cpus"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":{"cpus":"8"}})"), HasSubstr("cpus"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","request":{"array_tasks":0}})"),
              HasSubstr("from 1 to"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","directives":"--mem=1G"})"), HasSubstr("a list"));
  EXPECT_THAT(error_of(R"({"cluster_id":"a","directives":[1]})"), HasSubstr("directives"));
  EXPECT_THAT(
      error_of(R"({"cluster_id":"a","request":{"name":")" + std::string(2000, 'x') + "\"}}"),
      HasSubstr("at most 1024 bytes"));
}

TEST(JobRequest, IsAUnitForThoseWhoKnowTheManagers) {
  JobRequest request{.cluster_id = "a", .nodes = 1, .cpus = 8, .gpus = 2, .memory = 4e9};
  request.directives = {"--gres=gpu:a100:2", "--mem 4G", "--comment='x --mem-per-cpu=1'", "job.sh"};
  advice::Facts facts;
  add_slurm_request(unit_of(request, "slurm"), facts);
  EXPECT_EQ(text_of(facts, "slurm.gpus_option"), "--gres=gpu:a100:");
  EXPECT_EQ(text_of(facts, "slurm.mem"), "node");
  // Without lines, it is as sbatch would be asked by most.
  request.directives.clear();
  advice::Facts plain;
  add_slurm_request(unit_of(request, "slurm"), plain);
  EXPECT_EQ(text_of(plain, "slurm.gpus_option"), "--gres=gpu:");
  request.directives = {"-l select=1:ncpus=8:ngpus=2:mem=4gb,place=pack"};
  advice::Facts pbs;
  add_requests(unit_of(request, "openpbs"), pbs);
  EXPECT_EQ(text_of(pbs, "pbs.mem"), ":mem=4gb");
  EXPECT_EQ(text_of(pbs, "pbs.gpus"), ":ngpus=2");
}

}  // namespace
}  // namespace ceems::api
