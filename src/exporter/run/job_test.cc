#include "exporter/run/job.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

TEST(RunJob, IsTheProcessWithoutAManager) {
  const Job job = describe_job(variables({}), "laptop", 4242);
  EXPECT_FALSE(job.managed());
  EXPECT_EQ(job.manager, "run");
  EXPECT_EQ(job.id, "4242");
  EXPECT_EQ(job.node, "laptop");
  EXPECT_TRUE(job.on_node);
  EXPECT_EQ(job.node_count, 1U);
  EXPECT_TRUE(job.first_task);
  EXPECT_EQ(job.id_variable, "");
}

TEST(RunJob, IsThatOfSlurm) {
  const Job job = describe_job(variables({{"SLURM_JOB_ID", "4711"},
                                          {"SLURM_JOB_NAME", "water"},
                                          {"SLURM_CLUSTER_NAME", "hpc-a"},
                                          {"SLURM_JOB_NUM_NODES", "3"},
                                          {"SLURM_JOB_NODELIST", "n[07-09]"},
                                          {"SLURMD_NODENAME", "n07"},
                                          {"SLURM_JOB_GPUS", "0,2"},
                                          {"CUDA_VISIBLE_DEVICES", "0,1"}}),
                               "n07.example.org", 1);
  EXPECT_EQ(job.manager, "slurm");
  EXPECT_EQ(job.id, "4711");
  EXPECT_EQ(job.name, "water");
  EXPECT_EQ(job.cluster, "hpc-a");
  EXPECT_EQ(job.node, "n07");
  EXPECT_THAT(job.nodes, ElementsAre("n07", "n08", "n09"));
  EXPECT_EQ(job.node_count, 3U);
  EXPECT_THAT(job.gpus, ElementsAre("0", "2"));
  EXPECT_TRUE(job.on_node);
  EXPECT_EQ(job.id_variable, "SLURM_JOB_ID");
}

TEST(RunJob, OfSallocIsNotOnItsNodes) {
  std::map<std::string, std::string> values{{"SLURM_JOB_ID", "4711"},
                                            {"SLURM_JOB_NODELIST", "n[1-2]"}};
  EXPECT_FALSE(describe_job(variables(values), "login1", 1).on_node);
  EXPECT_EQ(describe_job(variables(values), "login1", 1).node_count, 2U);
  const Job job = describe_job(variables(values), "n2.example.org", 1);
  EXPECT_TRUE(job.on_node);
  EXPECT_EQ(job.node, "n2");
}

TEST(RunJob, KnowsTheFirstTaskOfAStep) {
  std::map<std::string, std::string> values{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "1"}};
  EXPECT_TRUE(describe_job(variables(values), "n1", 1).first_task);  // of the batch script
  values["SLURM_STEP_ID"] = "0";
  EXPECT_FALSE(describe_job(variables(values), "n1", 1).first_task);
  values["SLURM_PROCID"] = "0";
  EXPECT_TRUE(describe_job(variables(values), "n1", 1).first_task);
}

TEST(RunJob, IsThatOfPbsAndLsf) {
  const Job pbs = describe_job(
      variables({{"PBS_JOBID", "12.server"}, {"PBS_JOBNAME", "x"}, {"PBS_NODEFILE", "/f"}}), "n1",
      1);
  EXPECT_EQ(pbs.manager, "pbs");
  EXPECT_EQ(pbs.id, "12.server");
  EXPECT_EQ(pbs.node_file, "/f");
  const Job lsf = describe_job(variables({{"LSB_JOBID", "13"}}), "n1", 1);
  EXPECT_EQ(lsf.manager, "lsf");
  EXPECT_EQ(lsf.id, "13");
}

TEST(RunJob, ReadsAFileOfSlots) {
  EXPECT_THAT(nodes_in_file("n2\nn2\nn1 4\n\nn2\n"), ElementsAre("n2", "n1"));
}

TEST(RunJob, MakesNamesOfFiles) {
  EXPECT_EQ(file_name_of("n07.example.org"), "n07.example.org");
  EXPECT_EQ(file_name_of("../../etc/passwd"), "_.._.._etc_passwd");
  EXPECT_EQ(file_name_of(".."), "_..");
  EXPECT_EQ(file_name_of("a/b c\nd\xff"), "a_b_c_d_");
  EXPECT_EQ(file_name_of(""), "_");
  EXPECT_EQ(file_name_of(std::string(100, 'x')), std::string(64, 'x'));
}

TEST(RunJob, FindsTheCgroupOfTheWholeJob) {
  Job job;
  set_manager(job, "slurm", "4711");
  EXPECT_EQ(
      job_directory("0::/system.slice/slurmstepd.scope/job_4711/step_3/user/task_0\n", "", job),
      "/system.slice/slurmstepd.scope/job_4711");
  EXPECT_EQ(job_directory("5:cpu,cpuacct:/slurm/uid_7/job_4711/step_batch\n2:memory:/x\n",
                          "cpuacct", job),
            "/slurm/uid_7/job_4711");
  EXPECT_EQ(job_directory("0::/slurm/job_4712\n", "", job), std::nullopt);
  EXPECT_EQ(job_directory("0::/slurm/job_47110\n", "", job), std::nullopt);
  EXPECT_EQ(job_directory("0::/\n", "", job), std::nullopt);
  EXPECT_EQ(job_directory("", "", job), std::nullopt);
  set_manager(job, "pbs", "12.server");
  EXPECT_EQ(job_directory("0::/pbs_jobs.service/jobid/12.server/x\n", "", job),
            "/pbs_jobs.service/jobid/12.server");
  set_manager(job, "run", "4711");
  EXPECT_EQ(job_directory("0::/slurm/job_4711\n", "", job), std::nullopt);
}

}  // namespace
}  // namespace ceems::exporter::run
