#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/doctor/doctor_test_support.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;

/// The finding of this collector.
Finding finding_of(const Host& host, const std::string& collector) {
  Findings findings;
  examine_filesystems(host.context, findings);
  for (const Finding& finding : findings) {
    if (finding.collector == collector) {
      return finding;
    }
  }
  ADD_FAILURE() << "no finding of " << collector;
  return {};
}

TEST(DoctorLustre, SaysThatServersCannotTellJobsApart) {
  Host host;
  host.context.wanted.insert("lustre");
  host.write("sys/fs/lustre/jobid_var", "disable\n");
  const Finding finding = finding_of(host, "lustre");
  EXPECT_EQ(finding.state, Finding::State::kCannot);
  EXPECT_THAT(finding.cause, HasSubstr("jobid_var is disable"));
  EXPECT_THAT(finding.fix, HasSubstr("lctl set_param -P jobid_var=SLURM_JOB_ID jobid_name=%j"));
}

TEST(DoctorLustre, RecommendsJobsInsteadOfPrograms) {
  Host host;
  host.context.wanted.insert("lustre");
  host.write("proc/fs/lustre/jobid_var", "procname_uid\n");
  const Finding finding = finding_of(host, "lustre");
  EXPECT_EQ(finding.state, Finding::State::kWorks);
  EXPECT_THAT(finding.cause, HasSubstr("programs instead of jobs"));
  EXPECT_THAT(finding.fix, HasSubstr("lctl set_param"));
}

TEST(DoctorLustre, NamesTheVariable) {
  Host host;
  host.context.wanted.insert("lustre");
  host.write("sys/fs/lustre/jobid_var", "SLURM_JOB_ID\n");
  Finding finding = finding_of(host, "lustre");
  EXPECT_EQ(finding.state, Finding::State::kWorks);
  EXPECT_EQ(finding.cause, "Lustre is loaded; jobid_var is SLURM_JOB_ID");
  EXPECT_EQ(finding.fix, "");
  host.write("sys/fs/lustre/jobid_var", "\x01\n");
  EXPECT_EQ(finding_of(host, "lustre").cause, "Lustre is loaded; jobid_var is \\x01");
  host.privileged = false;
  finding = finding_of(host, "lustre");
  EXPECT_EQ(finding.state, Finding::State::kCannot);
  EXPECT_THAT(finding.fix, HasSubstr("CAP_DAC_READ_SEARCH"));
}

TEST(DoctorLustre, IsOffUnlessWanted) {
  Host host;
  EXPECT_EQ(finding_of(host, "lustre").state, Finding::State::kOff);
  host.context.wanted.insert("lustre");
  EXPECT_EQ(finding_of(host, "lustre").state, Finding::State::kCannot);
  host.context.wanted.erase("lustre");
  host.write("sys/fs/lustre/jobid_var", "disable\n");
  EXPECT_EQ(finding_of(host, "lustre").state, Finding::State::kOff);
}

TEST(DoctorNfs, CountsMounts) {
  Host host;
  EXPECT_EQ(finding_of(host, "nfs").state, Finding::State::kOff);
  host.context.wanted.insert("nfs");
  Finding finding = finding_of(host, "nfs");
  EXPECT_EQ(finding.state, Finding::State::kCannot);
  EXPECT_THAT(finding.cause, HasSubstr("self/mountstats"));
  host.write("proc/self/mountstats", "device /dev/sda1 mounted on / with fstype ext4\n");
  finding = finding_of(host, "nfs");
  EXPECT_EQ(finding.state, Finding::State::kCannot);
  EXPECT_THAT(finding.cause, HasSubstr("has no NFS mount"));
  host.write("proc/self/mountstats",
             "device s:/a mounted on /a with fstype nfs statvers=1.1\n"
             "device s:/b mounted on /b with fstype nfs4 statvers=1.1\n");
  finding = finding_of(host, "nfs");
  EXPECT_EQ(finding.state, Finding::State::kWorks);
  EXPECT_EQ(finding.cause, "2 NFS mounts");
  host.context.wanted.erase("nfs");
  EXPECT_EQ(finding_of(host, "nfs").state, Finding::State::kOff);
}

}  // namespace
}  // namespace ceems::exporter
