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

TEST(OldestAge, IsThatOfTheOldestProcess) {
  const testing::TempDir proc;
  const auto stat = [](int start) {
    return "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " + std::to_string(start) +
           " 20\n";
  };
  proc.write("uptime", "100.25 5.00\n");
  proc.write("7/stat", stat(9000));
  proc.write("8/stat", stat(9925));
  constexpr std::array kBoth{8, 7, 9};
  constexpr std::array kYounger{8};
  constexpr std::array kGone{9};
  EXPECT_EQ(oldest_age(proc.path(), kBoth), std::chrono::milliseconds(10250));
  EXPECT_EQ(oldest_age(proc.path(), kYounger), std::chrono::milliseconds(1000));
  EXPECT_EQ(oldest_age(proc.path(), kGone), std::nullopt);
  proc.write("8/stat", stat(10026));  // after now
  EXPECT_EQ(oldest_age(proc.path(), kYounger), std::nullopt);
  proc.write("uptime", "soon");
  EXPECT_EQ(oldest_age(proc.path(), kBoth), std::nullopt);
}

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
