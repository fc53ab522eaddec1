#include "exporter/unit/process_facts.h"

#include <array>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

constexpr std::array kPids{7};

/// /proc with one process.
class Proc {
 public:
  Proc(const std::string& title, const std::string& uid) {
    dir_.write("7/cmdline", title);
    dir_.write("7/status", "Name:\tx\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid + "\n");
  }
  void runs(const std::string& program) const {
    std::filesystem::create_symlink(program, dir_.path() / "7/exe");
  }
  [[nodiscard]] std::optional<std::uint64_t> job() const {
    return slurm_job_of(dir_.path(), kPids);
  }

 private:
  testing::TempDir dir_;
};

TEST(SlurmJobOf, BelievesAStepDaemonOfRoot) {
  const Proc proc("slurmstepd: [4711.0]", "0");
  EXPECT_EQ(proc.job(), 4711U);  // a file that stands in for /proc has no links
  proc.runs("/usr/sbin/slurmstepd");
  EXPECT_EQ(proc.job(), 4711U);
}

TEST(SlurmJobOf, RecognizesADaemonWhosePackageWasUpdated) {
  const Proc proc("slurmstepd: [4711.batch]", "0");
  proc.runs("/usr/sbin/slurmstepd (deleted)");
  EXPECT_EQ(proc.job(), 4711U);
}

TEST(SlurmJobOf, DoesNotBelieveTheTitleOfASetUidProgram) {
  const Proc proc("slurmstepd: [4711.0]", "0");
  proc.runs("/usr/bin/sudo");
  EXPECT_EQ(proc.job(), std::nullopt);
}

TEST(SlurmJobOf, DoesNotBelieveAUser) {
  const Proc proc("slurmstepd: [4711.0]", "1000");
  proc.runs("/home/u/slurmstepd");
  EXPECT_EQ(proc.job(), std::nullopt);
}

}  // namespace
}  // namespace ceems::exporter
