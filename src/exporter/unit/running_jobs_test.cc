#include "exporter/unit/running_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using std::chrono::seconds;

class SlurmdSpool : public ::testing::Test {
 protected:
  SlurmdSpool() {
    root_.write("spool/n1/cred_state", "");
    root_.write("map/7", "0\n");
    set_mode("spool/n1", 0755);
    set_mode("map", 0755);
    set_mode("map/7", 0644);
  }

  [[nodiscard]] std::string at(const std::string& path) const {
    return (root_.path() / path).string();
  }
  void set_mode(const std::string& path, mode_t mode) const {
    ASSERT_EQ(::chmod(at(path).c_str(), mode), 0);
  }
  JobEvidence look(const std::string& id, const std::string& host = "n1") {
    now_ += RunningJobs::kPause;
    return jobs_.look(id, host, now_);
  }

  testing::TempDir root_;
  Clock::SteadyTime now_{seconds(1000)};
  RunningJobs jobs_{{.spools = {at("none"), at("spool/%n")},
                     .map_directory = at("map"),
                     .trusted_uid = ::geteuid()}};
};

TEST_F(SlurmdSpool, ShowsBatchJobsAndSteps) {
  EXPECT_EQ(look("42"), JobEvidence::kNone);
  root_.write("spool/n1/job00042/slurm_script", "");
  root_.write("spool/n1/n1_43.0", "");
  root_.write("spool/n1/n1_44.4294967292", "");
  EXPECT_EQ(look("42"), JobEvidence::kJob);
  EXPECT_EQ(look("43"), JobEvidence::kStep);
  EXPECT_EQ(look("44"), JobEvidence::kJob);
  EXPECT_EQ(look("42", "n2"), JobEvidence::kNone);
}

TEST_F(SlurmdSpool, ShowsJobsOfPrologs) {
  EXPECT_EQ(look("7", ""), JobEvidence::kJob);
  root_.write("map/n1.8", "1\n");
  set_mode("map/n1.8", 0644);
  EXPECT_EQ(look("8"), JobEvidence::kJob);
  EXPECT_EQ(look("8", "n2"), JobEvidence::kNone);
  EXPECT_EQ(look("7", "n2"), JobEvidence::kJob)
      << "SLURM of Debian names nodes, the prolog does not";
  ASSERT_EQ(jobs_.listed(now_).size(), 2U);
  EXPECT_EQ(jobs_.listed(now_)[1].host, "n1");
  EXPECT_EQ(jobs_.listed(now_)[1].id, "8");
  EXPECT_GT(jobs_.listed(now_)[1].since.time_since_epoch(), seconds(0));
}

TEST_F(SlurmdSpool, OfOneDirectoryIsThatOfEachVirtualNode) {
  root_.write("spool/n1/job00042/slurm_script", "");
  RunningJobs one({.spools = {at("spool/n1")}, .map_directory = {}, .trusted_uid = ::geteuid()});
  EXPECT_EQ(one.look("42", "n9", now_), JobEvidence::kJob);
  EXPECT_EQ(one.look("42", "", now_), JobEvidence::kJob);
  EXPECT_EQ(one.look("43", "n9", now_), JobEvidence::kNone);
}

TEST_F(SlurmdSpool, BelievesNothingThatOthersMayWrite) {
  root_.write("spool/n1/job00042/slurm_script", "");
  set_mode("spool/n1", 0777);
  EXPECT_EQ(look("42"), JobEvidence::kNone);
  set_mode("map/7", 0666);
  EXPECT_EQ(look("7", ""), JobEvidence::kNone);
  set_mode("map/7", 0644);
  EXPECT_EQ(look("7", ""), JobEvidence::kJob);
  set_mode("map", 0775);
  EXPECT_EQ(look("7", ""), JobEvidence::kNone);
  EXPECT_TRUE(jobs_.listed(now_).empty());
}

TEST(StepSocket, IsNamedByNodeJobAndStep) {
  const auto socket = parse_step_socket("gpu_node-1_4711.4294967291");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->node, "gpu_node-1");
  EXPECT_EQ(socket->job, "4711");
  EXPECT_TRUE(socket->lasts);
  EXPECT_FALSE(parse_step_socket("n_1.0")->lasts);
  EXPECT_FALSE(parse_step_socket("n_1.4294967289")->lasts);
  EXPECT_TRUE(parse_step_socket("n_1.2.1"));
  for (const char* const name : {"", "_1.0", "n_1", "n_x.0", "n_1.x", "n_1.0.x", "n_1.4294967296",
                                 "n_123456789012345678901.0", "cred_state", "job00042"}) {
    EXPECT_FALSE(parse_step_socket(name)) << name;
  }
}

}  // namespace
}  // namespace ceems::exporter
