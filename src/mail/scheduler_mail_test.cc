#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mail/spool_intake.h"

namespace ceems::mail {
namespace {

using ::testing::Optional;

/// As slurmctld 22.05 sends it.
SpoolMail mail_of(const std::string& type, const std::string& state) {
  return {.subject = "Slurm Job_id=7 Name=relax " + type + ", Run time 00:10:00",
          .job = {{"SLURM_CLUSTER_NAME", "alpha"},
                  {"SLURM_JOB_ID", "7"},
                  {"SLURM_JOB_MAIL_TYPE", type},
                  {"SLURM_JOB_NAME", "relax"},
                  {"SLURM_JOB_RUN_TIME", "00:10:00"},
                  {"SLURM_JOB_STATE", state},
                  {"SLURM_JOB_USER", "ada"}}};
}

TEST(SchedulerMail, OnlyTheEndOfAJobIsOne) {
  for (const char* state : {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL",
                            "CANCELLED", "PREEMPTED", "DEADLINE", "BOOT_FAIL", ""}) {
    EXPECT_FALSE(not_an_end(mail_of("Ended", state))) << state;
    EXPECT_FALSE(not_an_end(mail_of("Failed", state))) << state;
  }
  // All of them come with the time that the job has run.
  for (const char* type : {"Began", "Requeued", "Invalid dependency", "StageOut/Teardown",
                           "Reached time limit", "Reached 90% of time limit",
                           "Reached 80% of time limit", "Reached 50% of time limit", "unknown"}) {
    EXPECT_THAT(not_an_end(mail_of(type, "RUNNING")),
                Optional("its type is '" + std::string(type) + "'"));
  }
  for (const char* state : {"PENDING", "REQUEUED", "REQUEUE_HOLD", "RUNNING", "SUSPENDED"}) {
    EXPECT_THAT(not_an_end(mail_of("Ended", state)), Optional("the job is " + std::string(state)))
        << "as after each run of a job of scrontab";
  }
}

TEST(SchedulerMail, KnowsJobsThatNeverRan) {
  SpoolMail mail = mail_of("Ended", "CANCELLED");
  EXPECT_FALSE(never_ran(mail));
  mail.job["SLURM_JOB_RUN_TIME"] = "00:00:00";
  EXPECT_TRUE(never_ran(mail)) << "SLURM gives it a start, which is its end";
  EXPECT_THAT(not_an_end(mail), Optional(std::string("the job never ran")));
  mail.job["SLURM_JOB_STATE"] = "DEADLINE";
  EXPECT_TRUE(never_ran(mail)) << "it could not start in time";
  mail.job["SLURM_JOB_RUN_TIME"] = "00:10:00";
  EXPECT_FALSE(never_ran(mail));
  mail.job["SLURM_JOB_RUN_TIME"] = "00:00:00";
  mail.job["SLURM_JOB_STATE"] = "FAILED";
  EXPECT_FALSE(not_an_end(mail)) << "it was short";
  mail.job.erase("SLURM_JOB_RUN_TIME");
  EXPECT_TRUE(never_ran(mail));
  mail.subject = "Slurm Array Summary Job_id=7_* (7) Name=relax Ended";
  EXPECT_FALSE(not_an_end(mail)) << "its other tasks decide";
}

TEST(SchedulerMail, ReadsTheSubjectWhereTheTypeIsMissing) {
  const auto why = [](const std::string& subject, const std::string& name) {
    SpoolMail mail = mail_of("Ended", "COMPLETED");
    mail.job.erase("SLURM_JOB_MAIL_TYPE");
    mail.job["SLURM_JOB_NAME"] = name;
    mail.subject = subject;
    return not_an_end(mail).value_or("");
  };
  EXPECT_EQ(
      why("Slurm Job_id=7 Name=relax Ended, Run time 00:10:00, COMPLETED, ExitCode 0", "relax"),
      "");
  EXPECT_EQ(why("Slurm Job_id=7 Name=relax Ended", "relax"), "");
  EXPECT_EQ(why("Slurm Job_id=7 Ended", "relax"), "");
  EXPECT_EQ(why("Slurm Array Task Job_id=9_1 (7) Name=a b Failed, Run time 00:10:00", "a b"), "");
  EXPECT_EQ(why("Slurm Array Summary Job_id=9_* (9) Name=x Ended, Mixed, ExitCode [0-1]", "x"), "");
  EXPECT_EQ(why("Slurm Job_id=7 Name=x Ended, Began, Queued time 00:00:01", "x Ended,"),
            "its type is 'Began'")
      << "the user chooses the name";
  EXPECT_EQ(why("Slurm Job_id=7 Name=x Requeued, Run time 00:00:05", "x"),
            "its type is 'Requeued'");
  EXPECT_EQ(why("Job 7 Ended", "x"), "it does not say what happened");
}

TEST(SchedulerMail, FindsTheClusterByTheNameThatSlurmGivesIt) {
  const SpoolMail mail = mail_of("Ended", "COMPLETED");  // of alpha
  EXPECT_EQ(cluster_of(mail, {{.id = "hpc-a", .slurm_name = "alpha"}, {.id = "hpc-b"}}), "hpc-a");
  EXPECT_EQ(cluster_of(mail, {{.id = "hpc-b"}, {.id = "Alpha"}}), "Alpha");
  EXPECT_EQ(cluster_of(mail, {{.id = "alpha", .slurm_name = "beta"},
                              {.id = "hpc-a", .slurm_name = "alpha"}}),
            "hpc-a");
  EXPECT_EQ(cluster_of(mail, {{.id = "hpc-a"}}), "hpc-a") << "the only one, without a name";
  EXPECT_EQ(cluster_of(mail, {{.id = "hpc-a", .slurm_name = "beta"}}), "");
  EXPECT_EQ(cluster_of(mail, {{.id = "hpc-a"}, {.id = "hpc-b"}}), "");
  EXPECT_EQ(cluster_of(mail, {}), "");
}

}  // namespace
}  // namespace ceems::mail
